"""Going on with a run: its description must be the one it began with, except for what may change on the way.

    train.epochs        longer or shorter, but not less than what is done; the rate then follows the new schedule
    train.workers, train.save_seconds, train.keep_every        how it is done, not what

Whatever changed is written to config.json: the new description, and under "resumed" what it was before and when.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ssno.base import description_from_json, from_text, to_text, write_document
from ssno.models.pretrained import FORMAT, VERSION, read_model_document
from ssno.runs.checkpoint import Progress
from ssno.runs.layout import CONFIG
from ssno.runs.options import TrainOptions
from ssno.runs.run import Run, migrated

MAY_CHANGE = ("train.epochs", "train.workers", "train.save_seconds", "train.keep_every")


def record_changes(folder: Path, description: Mapping[str, Any], progress: Progress) -> dict[str, list[Any]]:
    """Compare a description with that of the run in `folder`; refuse what may not change, write down what may.

    Returns what changed: dotted names with the value before and the value now.
    """
    document = read_model_document(folder)
    before, now = (dict(leaves(complete(values))) for values in (document.get("run") or {}, description))
    changed = {
        name: [before.get(name), now.get(name)] for name in {**before, **now} if before.get(name) != now.get(name)
    }
    if refused := [f"{name} (was {old}, now {new})" for name, (old, new) in changed.items() if name not in MAY_CHANGE]:
        raise ValueError(
            f"The run in {folder} began with other options, and resuming cannot change these: {', '.join(refused)}. "
            f"Leave them as they were, or start another run. What may change: {', '.join(MAY_CHANGE)}."
        )
    epochs = now["train.epochs"]
    if epochs < progress.epoch + (not progress.finished):
        raise ValueError(
            f"`train.epochs` is {epochs}, but the run in {folder} is already in epoch {progress.epoch + 1}."
        )
    if changed:
        resumed = [*document.get("resumed", []), {"step": progress.step, "changed": changed}]
        kept = {key: value for key, value in document.items() if key not in ("format", "version")}
        content = {**kept, "run": dict(description), "resumed": resumed}
        write_document(folder / CONFIG, content, format=FORMAT, version=VERSION)
    return changed


def complete(description: Mapping[str, Any]) -> Any:
    """A description of any version with every option that this one knows, as plain JSON values."""
    if "model" in description:
        return from_text(to_text(Run.from_json(description).to_json()))
    values = migrated(description)
    options = description_from_json(TrainOptions, values.get("train", {}), where="train.")
    return from_text(to_text({**values, "train": asdict(options)}))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects, by dotted name."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
