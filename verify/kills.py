"""SIGKILL at random moments over every command that writes, given again until it ends: nothing is lost or left over."""

import random
from collections import Counter
from pathlib import Path

from verify.campaign import Counts
from verify.commands import (
    COMMANDS,
    HEAVY,
    ORDER,
    assert_nothing_was_lost,
    ended,
    finish_well,
    in_processes,
    kill,
    supply,
    unreadable,
    warm_up,
    whole,
)

MOST_KILLS = 4  # of one run
LOST_SECONDS = 60.0  # until a process notices that its fellow is gone


def prepare() -> None:
    """What undisturbed commands leave behind; those that take long are given when they are needed."""
    warm_up()
    for name in set(ORDER) - HEAVY:
        whole(name)


def trial(number: int, place: Path) -> Counts:
    """One command, killed up to four times, then run to its end. Every fourth round kills before much was done."""
    name = ORDER[number % len(ORDER)]
    command, uncut = COMMANDS[name], whole(name)
    moment = random.Random(number)
    early = number // len(ORDER) % 4 == 3
    counts: Counter[str] = Counter()
    supply(command, place)
    told = place.with_suffix(".txt")
    notes = []
    for _ in range(moment.randint(1, MOST_KILLS)):
        seconds = moment.uniform(0.0, uncut.seconds * (0.3 if early else 1.0))
        children = in_processes(command, place, told=told)
        first = moment.randrange(len(children))
        code = ended(children[first], seconds)
        if code is not None:
            others = [ended(child, LOST_SECONDS) for at, child in enumerate(children) if at != first]
            assert not any([code, *others]), f"ended with {code}, {others}: {told.read_text()[-600:]}"
            break
        kill(children[first])
        ended(children[first], 10.0)
        counts["kills"] += 1
        counts[name] += 1
        for at, child in enumerate(children):
            if at != first:
                lonely = ended(child, LOST_SECONDS)
                kill(child)
                assert lonely is not None, f"a process did not notice within {LOST_SECONDS:g} s that another was killed"
        notes.append(f"killed {name!r} after {seconds:.3f} s")
        assert not (bad := unreadable(place)), f"unreadable: {bad[:3]} ({notes[-1]})"
    finish_well(command, place, told)
    assert not (bad := unreadable(place)), f"unreadable: {bad[:3]}"
    assert_nothing_was_lost(place, uncut.folder, notes=notes)
    told.unlink(missing_ok=True)
    return counts + Counter(runs=1)
