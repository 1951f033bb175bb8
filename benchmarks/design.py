"""Which operator learns most in a given time? Trials of equal processor time, scored on validation data.

    python -m benchmarks.design ssno ks-0.1 --seconds 30 --seed 0      train, score and store one trial
    python -m benchmarks.design ssno ks-0.1 --optimizer soap --learning-rate 2e-2 --noise-std 1e-2
    python -m benchmarks.design ssno ks-attractor --seconds 60         also forecasts of 2,000 steps
    python -m benchmarks.design --page docs/design/trials.md           put the table of all stored trials into that page

A trial trains a narrow model for a fixed processor time on one thread, whatever the load of the machine: the learning
rate is a function of the time spent. Kernels, batches, noise and the optimiser are included, reading data and scoring
are not. Options of training are those of the recipe `fast` unless given. Every trial is a line of
results/design.jsonl, also failed ones; those whose `code` is "scratch" come from blocks that were not kept, described
by their `change`.

On `ks-attractor` (`ssno data generate ks-attractor --preset small`) models learn segments of 26 frames, and forecasts
of 2,000 steps from the 32 validation states are compared with the statistics of the solver's own frames. Forecasts of
other problems are ten times as long as those of training. They are compared with the solver where it went as far:

    ssno data generate torus-li --preset small --frames 200 --train 1 --valid 32 --test 1 --out data/torus-li-long

On the sphere (`ssno data generate swe --preset small`, and `swe-vortical`) models are Markovian, learn ten steps and
are judged by `rel_l2_normalised` over ten steps, and by area-weighted errors at step 20.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.load import DataOptions
from ssno.data.manifest import MANIFEST
from ssno.data.normalise import fit
from ssno.data.splits import Split
from ssno.data.trajectories import Trajectories
from ssno.data.windows import Window, dataset_conventions
from ssno.evaluation.horizon import long_forecasts
from ssno.evaluation.sphere_baselines import score_on_sphere
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.models.baselines.sfno import SFNOConfig
from ssno.models.config import OperatorConfig
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.models.ssno_sphere import SphereSSNOConfig
from ssno.native.engine import Precision, computing
from ssno.paper.sphere import CASES, FIELDS, SEEN
from ssno.paper.tables_2d import CNEXT, HALF, MODELS
from ssno.paper.trial import BURGERS, CE_RM, KS, KS_ATTRACTOR, TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE, Benchmark
from ssno.runs.options import Optimizer, Schedule, TrainOptions, Unrolling, recipe
from ssno.runs.run import Run
from ssno.training.batches import epoch_batches, prepare
from ssno.training.objective import Objective, make_optimiser, rate_factor, set_rate

ROOT = Path(__file__).parents[1]
STORE = ROOT / "results" / "design.jsonl"
PROBLEMS: dict[str, Benchmark] = {
    "ks-0.1": KS[0.1],
    "ks-0.075": KS[0.075],
    "ks-attractor": KS_ATTRACTOR,
    "burgers": BURGERS,
    "torus-li": TORUS_LI,
    "torus-vis": TORUS_VIS,
    "torus-vis-force": TORUS_VIS_FORCE,
    "ce-rm": CE_RM,
    **{name: Benchmark(name, name, n_dims=2) for name in CASES.values()},
}
NARROW = {{**MODELS, CNEXT: "cnext-unet"}[name]: settings for name, settings in HALF.items() if name != "SS-NO"}
"""Settings of the narrow models, those of the 2D tables; state-space models share the last line."""
NARROW_SCANS = {"hidden_channels": 32, "d_state": 32, "head_channels": 128}
BEGIN, END = "<!-- trials by `python -m benchmarks.design --page` -->", "<!-- end of trials -->"
LONG_STEPS = {"ks-attractor": 2000, "burgers": 160, "torus-li": 160}
"""Steps of long forecasts, by problem."""
SPHERE_STEP = 20
"""Step of a forecast on the sphere whose error is stored too; training sees ten."""
ON_SPHERE = {"batch_size": 1, "noise_std": 0.01}
"""Options of training on the sphere, as in `ssno reproduce swe`."""
TICKS, STAGES = 10_000, 100
"""Resolution in time of the schedule, and of the stages of unrolling."""


def narrow(name: str, problem: Benchmark, points: int) -> OperatorConfig:
    """A model at half of its usual width, as our recipe completes it on periodic data."""
    if problem.dataset in CASES.values():
        if name == SFNOConfig.model_name:
            return SFNOConfig(grid=(32, 64), residual=False, **FIELDS)
        config = model_config(name, **FIELDS, **NARROW_SCANS)
        assert isinstance(config, SphereSSNOConfig)
        return config.recommended(periodic=False)
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
        conserve_mean=options.conserve_mean,
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
        ready = prepare(
            forecaster,
            data.read(batch),
            batch,
            stage=options.unroll.stage(int(spent * STAGES), STAGES),
            key=key,
            noise=options.noise_std,
        )
        with computing(forecaster.model, options.precision):
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
    model: str,
    dataset: str,
    *,
    seconds: float,
    seed: int,
    long_steps: int | None = None,
    settings: dict[str, Any] | None = None,
    split: Split = "valid",
    **changes: Any,
) -> dict[str, Any]:
    """Train and score; what went wrong is part of the answer.

    `changes` are options of training, `settings` those of the model; `long_steps` shortens long forecasts.
    """
    problem = PROBLEMS[dataset]
    plane, attractor, sphere = problem.n_dims > 1, dataset == "ks-attractor", problem.dataset in CASES.values()
    points = 32 if plane else 64
    described = DataOptions(
        name=problem.dataset,
        viscosity=problem.viscosity,
        preset="small" if plane or attractor else "paper",
        resolution=None if sphere else points,
        valid=12 if plane else 32 if attractor else 64,
    )
    learned = replace(described, segment=problem.segment, valid=None) if attractor else described
    learned = replace(learned, time_index=SEEN) if sphere else learned
    data, scored = learned.load("train").in_memory(), learned.load(split)
    config = replace(narrow(model, problem, points), **(settings or {}))
    own = {"n_dims": problem.n_dims, "dataset": problem.dataset, "suited": config.training, "seed": seed}
    options = recipe("fast", **own, **((ON_SPHERE if sphere else {}) | changes))
    changes |= settings or {}
    change = ", ".join(f"{name} {asdict(value) if is_dataclass(value) else value}" for name, value in changes.items())
    found: dict[str, Any] = {"label": label(model, changes), "change": change, "dataset": dataset, "seed": seed}
    found |= {"seconds": seconds, "began": time.time()}
    try:
        forecaster, steps = trained(config, data, options, seconds=seconds)
        scores = score(forecaster, scored, batch_size=32).means
        found |= {"steps": steps, "parameters": count_parameters(forecaster.model)}
        found |= {"rel_l2": scores["rel_l2_normalised" if sphere else "rel_l2"]}
        if sphere:
            found["at_step"] = score_on_sphere(forecaster, described.load(split)).at("rel_l2_area", SPHERE_STEP)
        else:
            found["rel_l2_onestep"] = scores["rel_l2_onestep"]
        if dataset in LONG_STEPS:
            data = long_data(described, split)
            found["long"] = asdict(long_forecasts(forecaster, data, steps=long_steps or LONG_STEPS[dataset]))
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
    return "-".join([model, *(word(name, value) for name, value in changes.items())])


def word(name: str, value: Any) -> str:
    """One change in a label."""
    if isinstance(value, Unrolling):
        return f"pushforward{''.join(map(str, value.pushforward))}"
    return str(value) if isinstance(value, str) else f"{name}{value:g}"


def long_data(described: DataOptions, split: Split) -> Trajectories:
    """The data to score on, from a folder in which they go on for longer if there is one."""
    longer = ROOT / "data" / f"{described.name}-long"
    if not (longer / MANIFEST).exists():
        return described.load(split)
    return replace(described, name=str(longer), preset=None, valid=None).load(split)


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
        single = ", ".join(
            f"{one['rel_l2_onestep']:.3g}" if "rel_l2_onestep" in one else f"{one['at_step']:.3g} (step {SPHERE_STEP})"
            for one in alike
            if "rel_l2" in one
        )
        long = ", ".join(words_of(one["long"]) for one in alike if "long" in one)
        first = f"| {dataset} | {seconds:g} | {label} | {alike[0]['change']} | {steps} "
        lines.append(f"{first}| {errors} | {single} | {long} |")
    return "\n".join(lines)


def words_of(long: dict[str, Any]) -> str:
    """Long forecasts in a few words."""
    words = f"{long['diverged']} of {long['trajectories']} diverged, valid {long['valid_time']:.2g}"
    if long["diverged"] == long["trajectories"]:
        return words
    return f"{words}, spread {long['spread']:.2f}, spectrum {long['spectrum']:.2g}"


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
    conserve_mean: bool | None = None,
    schedule: Schedule | None = None,
    warmup: float | None = None,
    precision: Precision | None = None,
    batch_size: int | None = None,
    pushforward: tuple[int, ...] | None = None,
    settings: str = "{}",
    page: Path | None = None,
) -> None:
    """Run one trial, or print the table of all, or put it into a page. `settings` of the model are JSON."""
    if model:
        torch.set_num_threads(1)
        options = {
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "ssm_learning_rate": ssm_learning_rate,
            "precondition_every": precondition_every,
            "noise_std": noise_std,
            "conserve_mean": conserve_mean,
            "schedule": schedule,
            "warmup": warmup,
            "precision": precision,
            "batch_size": batch_size,
            "unroll": None if pushforward is None else Unrolling(pushforward=pushforward),
        }
        changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        found = trial(model, dataset, seconds=seconds, seed=seed, settings=json.loads(settings), **changes)
        with STORE.open("a", encoding="utf-8") as lines:  # one write: trials may run side by side
            lines.write(json.dumps(found) + "\n")
        print(found["label"], dataset, f"seed {seed}:", found.get("rel_l2", found.get("failed")), end=" ")
        print(
            found.get("rel_l2_onestep", found.get("at_step", "")), f"{found.get('steps')} steps", found.get("long", "")
        )
        return
    rows = table(stored())
    if page is None:
        print(rows)
        return
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    write_whole(page, f"{before}{BEGIN}\n\n{rows}\n\n{END}{rest.split(END)[1]}".encode())


if __name__ == "__main__":
    tyro.cli(main)
