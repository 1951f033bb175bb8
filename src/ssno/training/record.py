"""The log of a run: one JSON object per line in metrics.jsonl.

    {"kind": "step", "step": 120, "epoch": 3, "loss": 0.031, "rate": 0.0012}
    {"kind": "epoch", "step": 128, "epoch": 3, "train_loss": 0.034, "rel_l2": 0.41, ..., "seconds": 52.1}

A resumed run first drops the lines that were written after its checkpoint, so the log of an interrupted run equals that
of an uninterrupted one, seconds apart.
"""

import json
from pathlib import Path
from typing import Any

from ssno.data.wholefile import write_whole


class Record:
    """Appends to metrics.jsonl; without a path, does nothing."""

    def __init__(self, path: Path | None, *, step: int = 0):
        self.path = path
        if path is not None and path.exists():
            kept = [line for line in read_record(path) if line["step"] <= step]
            write_whole(path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def write(self, kind: str, **values: Any) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, **values}) + "\n")


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line cut short by a kill is left out."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines
