"""Measure what solving a trajectory of every dataset costs:  python docs/scripts/dataset_costs.py [name ...]

Processor seconds of one batch of `preferred_batch` trajectories, divided by their number, for each preset, on one
thread; a batch that takes longer than `PATIENCE` is stopped and extrapolated from the solver's own progress. Writes
results/dataset-costs.json, which the gallery shows.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from ssno.base import provenance, read_json, write_json
from ssno.data.datasets import DATASETS, PRESETS, build_problem
from ssno.pde.problems.problem import Problem

RESULTS = Path(__file__).parents[2] / "results" / "dataset-costs.json"
PATIENCE = 4.0


class Enough(Exception):
    """The batch has run for long enough to be extrapolated."""


def seconds_per_trajectory(problem: Problem) -> float:
    """Processor seconds, extrapolated where a batch takes long."""
    rng = np.random.Generator(np.random.Philox(0))
    batch = [problem.draw(rng) for _ in range(min(16, problem.preferred_batch))]
    begin, share = time.process_time(), 1.0

    def watch(done: int, total: int) -> None:
        nonlocal share
        if time.process_time() - begin > PATIENCE and done:
            share = done / total
            raise Enough

    with suppress(Enough):
        problem.solve(batch, progress=watch)
    return (time.process_time() - begin) / share / len(batch)


def main() -> None:
    torch.set_num_threads(1)
    known = read_json(RESULTS, remedy="Delete it.")["seconds"] if RESULTS.exists() else {}
    for name in sys.argv[1:] or DATASETS:
        seconds_per_trajectory(build_problem(name, "tiny"))  # compiles, fills caches
        known[name] = {preset: seconds_per_trajectory(build_problem(name, preset)) for preset in PRESETS}
        print(name, {preset: f"{value:.3g} s" for preset, value in known[name].items()})
        what = "processor seconds per trajectory, one thread, by dataset and preset"
        write_json(RESULTS, {"what": what, "seconds": known, "provenance": provenance()})


if __name__ == "__main__":
    main()
