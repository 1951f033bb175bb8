"""What a trajectory of each fluid costs, and what the small grid loses:  python docs/scripts/fluid_cost.py [name ...]

The same trajectories are solved by the `paper` and by the `small` preset on one thread. Processor time counts, not time
on the clock, but neighbours that share the cache still cost a factor of up to two: measure on an idle machine. The
prototype is what the specification of the data measured (GCE-RT on 128^2 cells). The loss is the relative distance of
the small solution from the paper's, whose cells are averaged to the small ones (points on the torus coincide), and the
ratio of standard deviations. Minutes on one core. Writes results/cost-fluids.json; other names keep their entry.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from ssno.base.provenance import provenance
from ssno.data.datasets import DATASETS, build_problem

RESULT = Path(__file__).parents[2] / "results" / "cost-fluids.json"
PROTOTYPE = {"torus-li": 37.0, "torus-vis": 37.0, "torus-vis-force": 37.0, "ce-rm": 48.0, "gce-rt": 70.0}
GASES = ("ce-rm", "gce-rt")


def compare(name: str) -> dict[str, object]:
    """Seconds for each trajectory at both sizes, and the distance between the two."""
    small = build_problem(name, "small")
    paper = build_problem(name, "paper", **({"points": 128} if name in GASES else {}))
    rng = np.random.default_rng(0)
    parameters = [paper.draw(rng) for _ in range(max(2, paper.preferred_batch))]
    costs, states = {}, {}
    for preset, problem in (("small", small), ("paper", paper)):
        clock, processor = time.perf_counter(), time.process_time()
        states[preset] = problem.solve(parameters).state
        processor, clock = time.process_time() - processor, time.perf_counter() - clock
        size = DATASETS[name].sizes[preset]
        trajectories = size.train + size.valid + size.test
        costs[preset] = {
            "problem": repr(problem),
            "solver": problem.solver_options,
            "solved": len(parameters),
            "cpu_seconds_per_trajectory": round(processor / len(parameters), 3),
            "seconds_per_trajectory": round(clock / len(parameters), 3),
            "trajectories": trajectories,
            "cpu_hours": round(trajectories * processor / len(parameters) / 3600, 3),
        }
    costs["paper"]["prototype_seconds"] = PROTOTYPE[name]
    truth = states["paper"]
    if name in GASES:
        truth = truth.reshape(*truth.shape[:3], 64, 2, 64, 2).mean(axis=(4, 6))
    return {**costs, "loss": loss(states["small"], truth, small.fields)}


def loss(found: np.ndarray, truth: np.ndarray, fields: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """For each field: distance over all frames, at the last one, and the standard deviation's ratio."""
    result = {}
    for channel, field in enumerate(fields):
        a, b = found[:, :, channel], truth[:, :, channel]
        result[field] = {
            "rel_l2": round(float(np.linalg.norm(a - b) / np.linalg.norm(b)), 4),
            "rel_l2_last": round(float(np.linalg.norm(a[:, -1] - b[:, -1]) / np.linalg.norm(b[:, -1])), 4),
            "std_ratio": round(float(a.std() / b.std()), 4),
        }
    return result


def main() -> None:
    torch.set_num_threads(1)
    stored = json.loads(RESULT.read_text())["fluids"] if RESULT.exists() else {}
    for name in sys.argv[1:] or PROTOTYPE:
        stored[name] = compare(name)
        entry = {"fluids": stored, "date": time.strftime("%Y-%m-%d"), "provenance": provenance()}
        RESULT.write_text(json.dumps(entry, indent=2) + "\n")
        seconds = {preset: stored[name][preset]["cpu_seconds_per_trajectory"] for preset in ("small", "paper")}
        print(name, seconds, stored[name]["loss"], flush=True)


if __name__ == "__main__":
    main()
