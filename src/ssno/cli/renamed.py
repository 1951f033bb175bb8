"""Options that had another name before 0.2: the error for an old one names the new one."""

from collections.abc import Sequence
from itertools import pairwise

RENAMED = {
    "data generate": {"--workers": "--jobs"},
    "data animate": {"--index": "--trajectories"},
    "data inspect": {"--everything": "--no-sample"},
    "train": {"--processes": "--nproc"},
    "sweep": {"--workers": "--jobs"},
    "evaluate": {"--trajectories": "--max-trajectories"},
    "predict": {"--indices": "--trajectories"},
    "rollout": {"--index": "--trajectories"},
    "reproduce": {"--until": "--stop-at", "--cores": "--jobs", "--so-far": "--partial"},
}


def refuse_old_names(verb: str, words: Sequence[str]) -> None:
    """Refuse an option that a verb had under another name."""
    if verb == "reproduce" and ("--scale=night" in words or ("--scale", "night") in pairwise(words)):
        raise ValueError("The scale 'night' is called 'tenth' now: a tenth of the published training.")
    for word in words:
        option = word.partition("=")[0]
        if new := RENAMED.get(verb, {}).get(option):
            raise ValueError(f"`ssno {verb}` has no `{option}` any more: use `{new}`.")
