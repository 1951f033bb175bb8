"""Which operator learns most in a given time? Trials of equal processor time, scored on validation data.

    python -m benchmarks.design ssno ks-0.1 --seconds 30 --seed 0      train, score and store one trial
    python -m benchmarks.design ssno ks-0.1 --optimizer soap --learning-rate 2e-2 --noise-std 1e-2
    python -m benchmarks.design ssno ks-attractor --seconds 60         also forecasts of 2,000 steps
    python -m benchmarks.design --page docs/operator.md                put the table of all stored trials into that page

A trial trains a narrow model for a fixed processor time on one thread, whatever the load of the machine: the learning
rate is a function of the time spent. Kernels, batches, noise and the optimiser are included, reading data and scoring
are not. Options of training are those of the recipe `fast` unless given. Every trial is a line of
results/design.jsonl, also failed ones; those whose `code` is "scratch" come from blocks that were not kept, described
by their `change`.

On `ks-attractor` (`ssno data generate ks-attractor --preset small`) models learn segments of 26 frames, and forecasts
of 2,000 steps from the 32 validation states are compared with the statistics of the solver's own frames.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.load import DataOptions
from ssno.data.normalise import fit
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.forecasting.divergence import NEVER, divergence_step, largest_values
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import energy_spectrum, valid_time
from ssno.forecasting.rollout import rollout
from ssno.forecasting.scores import score
from ssno.models.config import OperatorConfig
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.paper.trial import BURGERS, CE_RM, KS, TORUS_LI, TORUS_VIS, Benchmark
from ssno.runs.options import Optimizer, Schedule, Stage, TrainOptions, recipe
from ssno.runs.run import Run
from ssno.training.batches import epoch_batches, prepare
from ssno.training.objective import Objective
from ssno.training.optimiser import make_optimiser, rate_factor, set_rate

ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "design.jsonl"
PROBLEMS: dict[str, Benchmark] = {
    "ks-0.1": KS[0.1],
    "ks-0.075": KS[0.075],
    "ks-attractor": Benchmark("KS attractor", "ks-attractor", 0.1),
    "burgers": BURGERS,
    "torus-li": TORUS_LI,
    "torus-vis": TORUS_VIS,
    "ce-rm": CE_RM,
}
NARROW: dict[str, dict[str, Any]] = {"ffno": {"hidden_channels": 32, "head_channels": 64}}
"""Settings of the narrow models; state-space models share the last line."""
NARROW_SCANS = {"hidden_channels": 32, "d_state": 32, "head_channels": 128}
BEGIN, END = "<!-- trials by `python -m benchmarks.design --page` -->", "<!-- end of trials -->"
SEGMENT, LONG_STEPS = 26, 2000
"""On the attractor: frames of a training segment, and steps of a forecast."""
TICKS = 10_000
"""Resolution of the schedule in time."""


def narrow(name: str, problem: Benchmark, points: int) -> OperatorConfig:
    """A model at half of its usual width, as our recipe completes it on periodic data."""
    config = model_config(name, **NARROW.get(name, NARROW_SCANS))
    return Run(model=config).completed(problem.shape(points)).model.recommended(periodic=True)


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
        ready = prepare(forecaster, data.read(batch), batch, stage=Stage(), key=key, noise=options.noise_std)
        losses, _ = objective(ready)
        optimiser.zero_grad()
        losses.mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, options.grad_clip or float("inf"))
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


def trial(
    model: str, dataset: str, *, seconds: float, seed: int, long_steps: int = LONG_STEPS, **changes: Any
) -> dict[str, Any]:
    """Train and score; what went wrong is part of the answer. `changes` are options of training."""
    problem = PROBLEMS[dataset]
    plane, attractor = problem.n_dims > 1, dataset == "ks-attractor"
    points = 32 if plane else 64
    described = DataOptions(
        name=problem.dataset,
        viscosity=problem.viscosity,
        preset="small" if plane or attractor else "paper",
        resolution=points,
        valid=16 if plane else 32 if attractor else 64,
    )
    learned = replace(described, segment=SEGMENT, valid=None) if attractor else described
    data, valid = learned.load("train").in_memory(), learned.load("valid")
    config = narrow(model, problem, points)
    options = recipe("fast", n_dims=problem.n_dims, dataset=problem.dataset, seed=seed, **changes)
    change = ", ".join(f"{name} {value}" for name, value in changes.items())
    found: dict[str, Any] = {"label": label(model, changes), "change": change, "dataset": dataset, "seed": seed}
    found |= {"seconds": seconds, "began": time.time()}
    try:
        forecaster, steps = trained(config, data, options, seconds=seconds)
        scores = score(forecaster, valid, batch_size=32).means
        found |= {"steps": steps, "parameters": count_parameters(forecaster.model)}
        found |= {name: scores[name] for name in ("rel_l2", "rel_l2_onestep")}
        if attractor:
            found["long"] = long_forecasts(forecaster, described.load("valid"), steps=long_steps)
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


def label(model: str, changes: dict[str, Any]) -> str:
    """The model and what was changed, as in `ssno-soap-learning_rate0.02`."""
    words = [str(value) if isinstance(value, str) else f"{name}{value:g}" for name, value in changes.items()]
    return "-".join([model, *words])


@torch.no_grad()
def long_forecasts(forecaster: Forecaster, data: Trajectories, *, steps: int) -> dict[str, float | int]:
    """How forecasts of `steps` steps from the first frames of all trajectories compare with the data as a whole.

    `diverged` counts those that are not finite or ten times larger than the data. `valid_time` is the mean time until
    the error of a frame exceeds its threshold, at most the length of the data. Of forecasts that do not diverge,
    after the length of the data if they are longer: `spread`, standard deviation / that of the data, and `spectrum`,
    the mean over wavenumbers of |ln(energy / energy of the data)|, energies averaged over time and trajectories.
    """
    frames = torch.as_tensor(data.read(range(len(data))).state)
    given = forecaster.window.size
    truth, times = frames[:, given:], torch.as_tensor(data.times[given:] - data.times[given - 1])
    forecast = rollout(forecaster, frames[:, :given], steps, spacing=data.spacing)
    usual = largest_values(frames).amax(0, keepdim=True).expand(len(frames), -1)
    gone = divergence_step(forecast, usual) != NEVER
    scored = min(steps, truth.shape[1])
    until = valid_time(forecast[:, :scored], truth[:, :scored], times[:scored]).clamp_max(float(times[scored - 1]))
    found: dict[str, float | int] = {
        "steps": steps,
        "trajectories": len(frames),
        "diverged": int(gone.sum()),
        "valid_time": until.mean().item(),
    }
    late = forecast[~gone, truth.shape[1] if steps > 2 * truth.shape[1] else 0 :]
    if len(late):
        ours, theirs = (energy_spectrum(f, spacing=data.spacing)[1].mean((0, 1, 2))[1:] for f in (late, frames))
        found["spread"] = (late.double().std(correction=0) / frames.double().std(correction=0)).item()
        found["spectrum"] = (ours / theirs).log().abs().mean().item()
    return found


def stored() -> list[dict[str, Any]]:
    """All trials on disk, in the order in which they were run; a repeated one takes the place of the older."""
    if not STORE.exists():
        return []
    trials = map(json.loads, STORE.read_text(encoding="utf-8").splitlines())
    return list({identity(one): one for one in trials}.values())


def identity(one: dict[str, Any]) -> tuple[Any, ...]:
    """A trial with the same model, data, time and seed takes the place of an older one."""
    return tuple(one[name] for name in ("label", "dataset", "seconds", "seed"))


def table(trials: Sequence[dict[str, Any]]) -> str:
    """One line for each model, dataset and time; seeds side by side."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in trials:
        groups.setdefault((one["dataset"], one["seconds"], one["label"]), []).append(one)
    lines = [
        "| data | CPU s | trial | what differs | steps | rel_l2 | one step | long forecasts |",
        "|---|--:|---|---|--:|---|---|---|",
    ]
    for (dataset, seconds, label), alike in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1])):
        alike = sorted(alike, key=lambda one: one["seed"])
        steps = sum(one.get("steps", 0) for one in alike) // len(alike)
        errors = ", ".join(f"{one['rel_l2']:.3g}" if "rel_l2" in one else one["failed"] for one in alike)
        single = ", ".join(f"{one['rel_l2_onestep']:.3g}" for one in alike if "rel_l2_onestep" in one)
        long = ", ".join(words_of(one["long"]) for one in alike if "long" in one)
        first = f"| {dataset} | {seconds:g} | {label} | {alike[0]['change']} | {steps} "
        lines.append(f"{first}| {errors} | {single} | {long} |")
    return "\n".join(lines)


def words_of(long: dict[str, Any]) -> str:
    """Long forecasts in a few words."""
    words = f"{long['diverged']} of {long['trajectories']} diverged, valid {long['valid_time']:.2g}"
    return f"{words}, spread {long['spread']:.2f}, spectrum {long['spectrum']:.2g}" if "spread" in long else words


def main(
    model: Annotated[str, tyro.conf.Positional] = "",
    dataset: Annotated[str, tyro.conf.Positional] = "",
    *,
    seconds: float = 30.0,
    seed: int = 0,
    optimizer: Optimizer | None = None,
    learning_rate: float | None = None,
    ssm_learning_rate: float | None = None,
    precondition_every: int | None = None,
    noise_std: float | None = None,
    schedule: Schedule | None = None,
    page: Path | None = None,
) -> None:
    """Run one trial, or print the table of all, or put it into a page."""
    if model:
        torch.set_num_threads(1)
        options = {
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "ssm_learning_rate": ssm_learning_rate,
            "precondition_every": precondition_every,
            "noise_std": noise_std,
            "schedule": schedule,
        }
        changes = {name: value for name, value in options.items() if value is not None}
        found = trial(model, dataset, seconds=seconds, seed=seed, **changes)
        with STORE.open("a", encoding="utf-8") as lines:  # one write: trials may run side by side
            lines.write(json.dumps(found) + "\n")
        print(label(model, changes), dataset, f"seed {seed}:", found.get("rel_l2", found.get("failed")), end=" ")
        print(found.get("rel_l2_onestep", ""), f"{found.get('steps')} steps", found.get("long", ""))
        return
    rows = table(stored())
    if page is None:
        print(rows)
        return
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    write_whole(page, f"{before}{BEGIN}\n\n{rows}\n\n{END}{rest.split(END)[1]}".encode())


if __name__ == "__main__":
    tyro.cli(main)
