#!/bin/bash
# One process of a training that torchrun started: what it says, and at last its exit code, go to $RANKS/rank-NNN.log.
log=$RANKS/rank-$(printf %03d "$RANK").log
echo "$(date -Is) rank $RANK of $WORLD_SIZE on $(hostname), restart ${TORCHELASTIC_RESTART_COUNT:-0}" >> "$log"
ssno "$@" >> "$log" 2>&1 &
child=$!
trap 'kill -TERM $child' TERM INT
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
echo "$(date -Is) rank $RANK: exit code $code" >> "$log"
exit $code
