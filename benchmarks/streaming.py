"""Frames per second of our streaming reader beside The Well's own loader (`the-well`), on the same files.

    python -m benchmarks.streaming --python PYTHON              compare and print
    python -m benchmarks.streaming --python PYTHON --store      also write results/streaming.json

PYTHON is an interpreter with ssno's packages and `the-well` (installed without its dependencies: they are ssno's).
The files are in The Well's published layout (density, pressure, velocity; float32, contiguous), made of noise. Both
hand out batches of windows through one loader process, shuffled: The Well's as it does (a window begins at any frame;
the grid and boundary conditions that it would also hand out are switched off), ours from pieces that follow each other.
Whoever reads does so in a process of its own, in turn, files in the system's cache. Counted are frames handed out per
second, of processor time (loader and main process together; busy machines do not spoil it) and of the clock, and the
memory of both processes that is theirs alone, at the first and at the last of the batches that are timed.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import h5py
import numpy as np
import tyro

ROOT = Path(__file__).parents[1]
Reader = Literal["ssno", "the-well"]
FIELDS = (("t0_fields", "density", ()), ("t0_fields", "pressure", ()), ("t1_fields", "velocity", (2,)))


@dataclass(frozen=True)
class Case:
    """Files, and what is asked of them."""

    grid: tuple[int, int]
    window: int
    """Frames of a sample."""
    batch: int = 8
    files: int = 4
    trajectories: int = 4
    frames: int = 80
    buffer: int = 64
    batches: int = 60
    """As many are timed, after a few that start everything."""


CASES = (Case((64, 64), 5), Case((64, 64), 16), Case((128, 128), 5), Case((128, 384), 5, trajectories=2, batches=30))
FIRST = 6


def make(folder: Path, case: Case) -> None:
    """Write the files of a case: `folder/data/train/*.hdf5`."""
    place = folder / "data" / "train"
    place.mkdir(parents=True)
    noise = np.random.default_rng(0).standard_normal((case.frames, *case.grid, 2), np.float32)
    text = h5py.string_dtype()
    for number in range(case.files):
        with h5py.File(place / f"layer_{number}.hdf5", "w") as file:
            file.attrs.update({"dataset_name": "layer", "grid_type": "cartesian", "n_spatial_dims": 2})
            file.attrs.update({"n_trajectories": case.trajectories, "simulation_parameters": np.array([], dtype=text)})
            dimensions = file.create_group("dimensions")
            dimensions.attrs["spatial_dims"] = np.array(["x", "y"], dtype=object)
            for name, count in zip(("time", "x", "y"), (case.frames, *case.grid), strict=True):
                values = dimensions.create_dataset(name, data=np.arange(count, dtype=np.float32) / count)
                values.attrs.update({"sample_varying": False, "time_varying": False})
            file.create_group("scalars").attrs["field_names"] = np.array([], dtype=text)
            conditions = file.create_group("boundary_conditions")
            for axis, count in zip("xy", case.grid, strict=True):
                group = conditions.create_group(f"{axis}_boundary")
                group.attrs["associated_dims"] = np.array([axis], dtype=object)
                group.attrs.update({"bc_type": "periodic", "sample_varying": False, "time_varying": False})
                group["mask"] = np.isin(np.arange(count), (0, count - 1))
            names: dict[str, list[str]] = {f"t{order}_fields": [] for order in range(3)}
            for group_name, name, more in FIELDS:
                names[group_name].append(name)
                shape = (case.trajectories, case.frames, *case.grid, *more)
                stored = file.require_group(group_name).create_dataset(name, shape, np.float32)
                stored.attrs.update({"dim_varying": [True, True], "sample_varying": True, "time_varying": True})
                for row in range(case.trajectories):
                    stored[row] = noise if more else noise[..., row % 2]
            for group_name, listed in names.items():
                file.require_group(group_name).attrs["field_names"] = np.array(listed, dtype=text)


def ours(folder: Path, case: Case) -> Iterator[tuple[int, int]]:
    """Frames and channels of batch after batch of our reader, epoch after epoch."""
    from ssno.data.load import load_dataset
    from ssno.training.batches import BatchSource

    data = load_dataset(folder, "train", segment=case.window)
    source = BatchSource(data, batch_size=case.batch, seed=0, buffer=case.buffer, workers=1)
    epoch = 0
    while True:
        for batch in source.epoch(epoch):
            state = batch.frames.state
            yield state.shape[0] * state.shape[1], state.shape[2]
        epoch += 1


def theirs(folder: Path, case: Case) -> Iterator[tuple[int, int]]:
    """The same of The Well's loader."""
    from the_well.data import WellDataset
    from torch.utils.data import DataLoader

    windows = {"n_steps_input": case.window - 1, "n_steps_output": 1}
    data = WellDataset(str(folder), well_split_name="train", **windows, return_grid=False, boundary_return_type=None)
    loader = DataLoader(data, batch_size=case.batch, shuffle=True, num_workers=1, persistent_workers=True)
    while True:
        for batch in loader:
            inputs, outputs = batch["input_fields"], batch["output_fields"]
            yield inputs.shape[0] * (inputs.shape[1] + outputs.shape[1]), inputs.shape[-1]


def processes() -> list[int]:
    """This process and the ones that it started."""
    mine = os.getpid()
    return [mine, *map(int, Path(f"/proc/{mine}/task/{mine}/children").read_text().split())]


def processor_seconds() -> float:
    """Of all our processes so far."""
    ticks = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in processes()]
    return sum(int(tick) for pair in ticks for tick in pair) / os.sysconf("SC_CLK_TCK")


def memory() -> int:
    """Bytes of all our processes, what they share counted once and mapped files of the cache left out."""
    lines = [line for pid in processes() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def read(reader: Reader, folder: Path, case: Case) -> dict[str, Any]:
    """One round of one reader, in this process."""
    source = (ours if reader == "ssno" else theirs)(folder, case)
    channels = {next(source)[1] for _ in range(FIRST)}
    held, frames, began, used = [memory()], 0, time.perf_counter(), processor_seconds()
    for number in range(case.batches):
        frames += next(source)[0]
        if number == case.batches // 2:
            held.append(memory())
    rates = {
        "per_second": frames / (time.perf_counter() - began),
        "per_cpu_second": frames / (processor_seconds() - used),
    }
    return {**rates, "channels": channels.pop(), "bytes_first": held[0], "bytes_last": max(held[1], memory())}


def compare(case: Case, *, python: str, rounds: int) -> dict[str, Any]:
    """Both readers in turn; the ratio of each kind of rate is the median over rounds."""
    found: dict[Reader, list[dict[str, Any]]] = {"ssno": [], "the-well": []}
    with TemporaryDirectory() as folder:
        make(Path(folder), case)
        for _ in range(rounds):
            for reader, rows in found.items():
                words = [
                    "-m",
                    "benchmarks.streaming",
                    "--read",
                    reader,
                    "--folder",
                    folder,
                    "--case",
                    json.dumps(asdict(case)),
                ]
                done = subprocess.run([python, *words], cwd=ROOT, check=True, capture_output=True, text=True)
                rows.append(json.loads(done.stdout.splitlines()[-1]))
    result: dict[str, Any] = {"case": asdict(case), "rounds": found}
    for rate in ("per_cpu_second", "per_second"):
        ratios = [mine[rate] / other[rate] for mine, other in zip(*found.values(), strict=True)]
        result[f"ratio_{rate}"] = {"median": statistics.median(ratios), "all": ratios}
    for reader, rows in found.items():
        growth = statistics.median(row["bytes_last"] - row["bytes_first"] for row in rows)
        print(
            f"{reader}: {statistics.median(row['per_cpu_second'] for row in rows):.0f} frames per CPU second, "
            f"{statistics.median(row['bytes_last'] for row in rows) / 2**20:.0f} MiB, grew by {growth / 2**20:.0f} MiB"
        )
    print(
        f"{case.grid}, {case.window} frames: {result['ratio_per_cpu_second']['median']:.2f} times as many frames per "
        f"second of processor time, {result['ratio_per_second']['median']:.2f} per second",
        flush=True,
    )
    return result


def main(
    *,
    python: str = sys.executable,
    rounds: int = 3,
    store: bool = False,
) -> None:
    """Compare both readers in all cases.

    Args:
        python: an interpreter with ssno's packages and the-well.
        rounds: how often each reader takes its turn.
        store: write results/streaming.json.
    """
    from ssno.base.provenance import provenance

    rows = [compare(case, python=python, rounds=rounds) for case in CASES]
    if store:
        document = {
            "rows": rows,
            "load": os.getloadavg()[0],
            "cores": len(os.sched_getaffinity(0)),
            "provenance": provenance(),
        }
        (ROOT / "results" / "streaming.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        fields = json.loads(sys.argv[6])
        print(json.dumps(read(sys.argv[2], Path(sys.argv[4]), Case(**{**fields, "grid": tuple(fields["grid"])}))))
    else:
        tyro.cli(main)
