"""Options that had another name before 0.2: the error for an old one names the new one."""

from collections.abc import Sequence

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
    for word in words:
        option = word.partition("=")[0]
        if new := RENAMED.get(verb, {}).get(option):
            raise ValueError(f"`ssno {verb}` has no `{option}` any more: use `{new}`.")
