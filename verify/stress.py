"""Numbers at the edge: tiny and huge, constant, empty, single, odd, not a number. Every command works or says why.

A case is a small file with something strange in it, and the commands that a user would give: inspect, train, evaluate,
predict, report. Each must end with 0, with 2 and a sentence, or with 3 (diverged); what a finished run left is finite.
"""

import itertools
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import torch

from ssno.runs.checkpoint import LAST, has_checkpoint, load_checkpoint
from verify.campaign import Counts
from verify.commands import Command, finish

MAGNITUDES = (1e-40, 1e-38, 1e-30, 1e-20, 1e-10, 1e-3, 1e10, 1e20, 1e30, 1e37)
FIELDS = ("noise", "constant", "zero", "one trajectory constant", "one frame constant", "a spike", "growing")
SHAPES = ((10, 6, 16), (10, 6, 7), (3, 6, 16), (1, 6, 16), (10, 1, 16), (10, 2, 16), (10, 6, 1), (10, 6, 2))
SHAPES += ((10, 6, 3), (10, 6, 5), (10, 6, 8, 8), (10, 6, 1, 8), (10, 6, 3, 5), (10, 6, 4, 4, 3))
BROKEN = (np.nan, np.inf, -np.inf)
ENDS = {0: "worked", 2: "refused in words", 3: "diverged, and said so"}
OPTIONS = "--train.epochs 2 --train.batch-size 4 --train.save-seconds 0"


@cache
def cases() -> list[tuple[str, str, float, tuple[int, ...]]]:
    """Magnitudes with every field; shapes with every field; broken values at every place of a file."""
    found = [("magnitude", kind, size, SHAPES[0]) for size, kind in itertools.product(MAGNITUDES, FIELDS)]
    found += [("shape", kind, 1.0, shape) for shape, kind in itertools.product(SHAPES, FIELDS[:3])]
    found += [("broken", str(place), value, SHAPES[0]) for value, place in itertools.product(BROKEN, range(8))]
    found += [("model", name, 1.0, SHAPES[6]) for name in ("ffno", "fno", "unet", "gkt", "factformer", "linear")]
    return found


def drawn(kind: str, size: float, shape: tuple[int, ...]) -> np.ndarray:
    """A field of this kind."""
    values = np.random.default_rng(0).normal(size=shape)
    if kind == "constant":
        values[:] = 1.0
    elif kind == "zero":
        values[:] = 0.0
    elif kind == "one trajectory constant":
        values[0] = 1.0
    elif kind == "one frame constant":
        values[:, 0] = 1.0
    elif kind == "a spike":
        values *= 1e-6
        values.flat[3] = 1.0
    elif kind == "growing":
        values *= 10.0 ** np.arange(shape[1]).reshape(1, -1, *[1] * (len(shape) - 2))
    with np.errstate(under="ignore", over="ignore"):
        return (values * size).astype(np.float32)


def trial(number: int, place: Path) -> Counts:
    """One case: all commands, one after the other."""
    case, kind, size, shape = cases()[number]
    values = drawn(kind if kind in FIELDS else "noise", size if case != "broken" else 1.0, shape)
    axes = "batch,time," + ",".join("xyz"[: len(shape) - 2])
    np.save(place / "healthy.npy", drawn("noise", 1.0, shape))
    if case == "broken":
        values[int(kind), int(kind) % shape[1]].flat[0] = size
    np.save(place / "strange.npy", values)
    model = f"{kind if case == 'model' else 'ssno'}:tiny"
    run = f"--data.axes {axes} --model {model} {OPTIONS} --name run"
    words = [
        f"data inspect strange.npy --axes {axes}",
        f"train strange.npy {run}",
        "train --resume always --name run",
        "evaluate runs/run --device cpu",
        f"predict runs/run --input strange.npy --axes {axes} --output out.h5 --steps 20",
        f"predict runs/run --input healthy.npy --axes {axes} --output healthy.h5 --steps 5",
    ]
    counts: Counter[str] = Counter()
    told = place / "told.txt"
    for line in words:
        told.write_text("")
        code = finish(Command(line), place, told=told)[0]
        said = told.read_text()
        what = f"{case} {kind} {size:g} {shape}: `ssno {line}`"
        assert code in ENDS, f"{what} ended with {code}: {said[-700:]}"
        assert not code or "ssno: " in said, f"{what} ended with {code} and said nothing: {said[-300:]}"
        if code == 3 and line.startswith("train"):
            assert re.search("diverged at step .* trajectories", said), f"{what} did not say where: {said[-500:]}"
        counts[ENDS[code]] += 1
    last = place / "runs" / "run" / LAST
    if has_checkpoint(last):
        tensors, progress = load_checkpoint(last)
        broken = [name for name, one in tensors.items() if not bool(torch.isfinite(one.double()).all())]
        assert not broken, (
            f"{case} {kind} {size:g} {shape}: the last checkpoint (step {progress.step}) holds {broken[:3]}"
        )
        counts["runs with a whole checkpoint"] += 1
    for path in place.rglob("evaluation*.json"):
        json.loads(path.read_text())
    return counts
