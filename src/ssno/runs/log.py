"""The log of a run: one JSON object per line in metrics.jsonl.

    {"kind": "step", "step": 120, "epoch": 3, "loss": 0.031, "rate": 0.0012}
    {"kind": "epoch", "step": 128, "epoch": 3, "train_loss": 0.034, "rel_l2": 0.41, ..., "seconds": 52.1}

A resumed run first drops the lines that were written after its checkpoint, so the log of an interrupted run equals that
of an uninterrupted one, seconds apart.
"""

import json
from pathlib import Path
from typing import Any

from ssno.base.whole import write_whole


class Record:
    """Appends to metrics.jsonl, and to TensorBoard's files if asked; without a folder, does nothing."""

    def __init__(self, folder: Path | None, *, step: int = 0, tensorboard: bool = False):
        self.path = None if folder is None else folder / "metrics.jsonl"
        self.board = None if folder is None or not tensorboard else open_board(folder / "tensorboard", step)
        if self.path is not None and self.path.exists():
            kept = [line for line in read_record(self.path) if line["step"] <= step]
            write_whole(self.path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def write(self, kind: str, *, step: int, **values: Any) -> None:
        """Log values of one step or epoch."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"kind": kind, "step": step, **values}) + "\n")
        if self.board is not None:
            for name, value in values.items():
                if isinstance(value, float):
                    self.board.add_scalar(f"{kind}/{name}", value, step)
            self.board.flush()


def open_board(folder: Path, step: int) -> Any:
    """TensorBoard's writer; steps after `step` of an interrupted run are hidden from view."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ImportError("TensorBoard is not installed. Install it with: pip install 'ssno[tensorboard]'") from None
    return SummaryWriter(folder, purge_step=step + 1 if step else None)


def read_record(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a last line cut short by a kill is left out."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines
