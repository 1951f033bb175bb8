"""Which operator learns most in a given time? Trials of equal processor time, scored on validation data.

    python -m benchmarks.design ssno ks-0.1 --seconds 30 --seed 0      train, score and store one trial
    python -m benchmarks.design --page docs/operator.md                put the table of all stored trials into that page

A trial trains a narrow model for so many seconds of its own processor time on one thread, however busy the machine is:
the learning rate follows the time spent, and batches go on until it is over. Making kernels, batches and noise counts;
reading data and scoring do not. Every trial is a file in results/design, whether it went well or not; files whose
`code` is "scratch" come from blocks that were tried and not kept, described by their `change`.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.normalise import fit
from ssno.data.options import DataOptions
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.models.config import OperatorConfig
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.paper.trial import BURGERS, CE_RM, KS, TORUS_LI, TORUS_VIS, Benchmark
from ssno.runs.options import Stage, TrainOptions, recipe
from ssno.training.batches import epoch_batches, prepare
from ssno.training.objective import Objective
from ssno.training.optimiser import make_optimiser, rate_factor, set_rate

ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "design"
PROBLEMS: dict[str, Benchmark] = {
    "ks-0.1": KS[0.1],
    "ks-0.075": KS[0.075],
    "burgers": BURGERS,
    "torus-li": TORUS_LI,
    "torus-vis": TORUS_VIS,
    "ce-rm": CE_RM,
}
NARROW: dict[str, dict[str, Any]] = {"ffno": {"hidden_channels": 32, "head_channels": 64}}
"""Settings of the narrow models; state-space models share the last line."""
NARROW_SCANS = {"hidden_channels": 32, "d_state": 32, "head_channels": 128}
BEGIN, END = "<!-- trials by `python -m benchmarks.design --page` -->", "<!-- end of trials -->"
TICKS = 10_000
"""Resolution of the schedule in time."""


def narrow(name: str, problem: Benchmark, points: int) -> OperatorConfig:
    """A model at half of its usual width, as our recipe completes it on periodic data."""
    config = model_config(name, **NARROW.get(name, NARROW_SCANS), **problem.channels())
    return config.recommended(periodic=True).for_grid([points] * problem.n_dims)


def trained(
    config: OperatorConfig, data: Trajectories, options: TrainOptions, *, seconds: float
) -> tuple[Forecaster, int]:
    """A model after so much processor time, and how many steps that were."""
    torch.manual_seed(options.seed)
    forecaster = Forecaster(
        config.build(),
        normalisers=fit(data, options.normalisation),
        predict_increment=options.predict_increment,
        window=Window(protocol="first_k", size=config.frames_seen()),
        context_time=dataset_conventions(data.name).context_time,
        spacing=data.spacing,
    )
    objective, optimiser = Objective(forecaster, compile=False), make_optimiser(forecaster.model, options)
    parameters = [p for p in forecaster.model.parameters() if p.requires_grad]
    forecaster.train()
    began, step = time.process_time(), 0
    for epoch, batch in batches(len(data), options):
        spent = (time.process_time() - began) / seconds
        if spent >= 1:
            break
        key = (options.seed, epoch, step)
        ready = prepare(forecaster, data.read(batch), batch, stage=Stage(), key=key, noise=options.noise)
        losses, _ = objective(ready)
        optimiser.zero_grad()
        losses.mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, options.clip)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"The gradient of step {step + 1} is not finite: {norm.item()}.")
        set_rate(optimiser, rate_factor(int(spent * TICKS), TICKS, schedule=options.schedule, warmup=options.warmup))
        optimiser.step()
        step += 1
    return forecaster.eval(), step


def batches(count: int, options: TrainOptions) -> Iterator[tuple[int, list[int]]]:
    """Epoch after epoch, without end."""
    epoch = 0
    while True:
        for batch in epoch_batches(count, options.batch_size, seed=options.seed, epoch=epoch):
            yield epoch, batch
        epoch += 1


def trial(model: str, dataset: str, *, seconds: float, seed: int) -> dict[str, Any]:
    """Train and score; what went wrong is part of the answer."""
    problem = PROBLEMS[dataset]
    plane = problem.n_dims > 1
    points = 32 if plane else 64
    described = DataOptions(
        name=problem.dataset,
        viscosity=problem.viscosity,
        preset="small" if plane else "paper",
        resolution=points,
        valid=16 if plane else 64,
    )
    data, valid = described.load("train").in_memory(), described.load("valid")
    config = narrow(model, problem, points)
    options = recipe("fast", n_dims=problem.n_dims, dataset=problem.dataset, seed=seed)
    found: dict[str, Any] = {"label": model, "change": "", "dataset": dataset, "seed": seed, "seconds": seconds}
    found["began"] = time.time()
    try:
        forecaster, steps = trained(config, data, options, seconds=seconds)
        scores = score(forecaster, valid, batch_size=32).means
        found |= {"steps": steps, "parameters": count_parameters(forecaster.model)}
        found |= {name: scores[name] for name in ("rel_l2", "rel_l2_onestep")}
    except FloatingPointError as error:
        found["failed"] = str(error)
    described_model = {"name": config.name, **asdict(config)}
    rest = {
        "wall": time.time() - found["began"],
        "code": "benchmarks.design",
        "model": described_model,
        "train": asdict(options),
    }
    return found | rest | {"provenance": provenance()}


def stored() -> list[dict[str, Any]]:
    """All trials on disk, in the order in which they were run."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in STORE.glob("*.json")]
    return sorted(found, key=lambda one: one["began"])


def table(trials: Sequence[dict[str, Any]]) -> str:
    """One line for each model, dataset and time; seeds side by side."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in trials:
        groups.setdefault((one["dataset"], one["seconds"], one["label"]), []).append(one)
    lines = ["| data | CPU s | trial | what differs | steps | rel_l2 | one step |", "|---|--:|---|---|--:|---|---|"]
    for (dataset, seconds, label), alike in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1])):
        alike = sorted(alike, key=lambda one: one["seed"])
        steps = sum(one.get("steps", 0) for one in alike) // len(alike)
        errors = ", ".join(f"{one['rel_l2']:.3g}" if "rel_l2" in one else one["failed"] for one in alike)
        single = ", ".join(f"{one['rel_l2_onestep']:.3g}" for one in alike if "rel_l2_onestep" in one)
        lines.append(f"| {dataset} | {seconds:g} | {label} | {alike[0]['change']} | {steps} | {errors} | {single} |")
    return "\n".join(lines)


def main(
    model: Annotated[str, tyro.conf.Positional] = "",
    dataset: Annotated[str, tyro.conf.Positional] = "",
    *,
    seconds: float = 30.0,
    seed: int = 0,
    page: Path | None = None,
) -> None:
    """Run one trial, or print the table of all, or put it into a page."""
    if model:
        torch.set_num_threads(1)
        found = trial(model, dataset, seconds=seconds, seed=seed)
        STORE.mkdir(parents=True, exist_ok=True)
        path = STORE / f"{model}-{dataset}-{seconds:g}s-seed{seed}.json"
        write_whole(path, (json.dumps(found, indent=1) + "\n").encode())
        print(model, dataset, f"seed {seed}:", found.get("rel_l2", found.get("failed")), f"{found.get('steps')} steps")
        return
    rows = table(stored())
    if page is None:
        print(rows)
        return
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    write_whole(page, f"{before}{BEGIN}\n\n{rows}\n\n{END}{rest.split(END)[1]}".encode())


if __name__ == "__main__":
    tyro.cli(main)
