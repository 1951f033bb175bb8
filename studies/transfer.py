"""Forecasts on grids that a model was not trained on: trained on one grid, scored on coarser and finer ones.

Two rows need no training of their own: SS-NO whose kernels are sampled anew on the other grid
(`modes.resolution_transfer`), and FFNO on the interleaved copies of its grid, which is what SS-NO does inside its
scans. On a finer grid neither knows more than on its own: equal errors say that all copies are forecast alike, not
that finer scales are learned. One more SS-NO is trained on several grids at once, beside models that were trained on
each of them alone: with as many batches as that one spends on the grid, so that all of them together take the same
time, and with all batches.

Fields on every grid are every n-th point of the stored ones. Fourier models that keep all modes of their grid refuse
coarser ones.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from ssno.data.trajectories import Trajectories
from ssno.evaluation.statistics import summarise
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.scores import score
from ssno.models.ssno import SSNO
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import OPEN, Results, Verdict, below, fact, shown
from ssno.paper.tables_2d import HALF
from ssno.paper.trial import BURGERS, CPU, KS, TORUS_LI, Benchmark, Budget, Trial, trial
from ssno.paper.trivial import PERSISTENCE, persistence_scores
from ssno.plots.summary import seed_lines
from ssno.runs.load import load_forecaster
from ssno.ssm.resolution import Transfer as KernelTransfer

# Any model on a grid that is several times as fine as its own: the interleaved copies of its grid, each by itself.
#
# With copies r, point l of an axis belongs to copy l mod r. SS-NO does this inside its scans (`ssno.ssm.resolution`);
# here the whole network sees one copy at a time, so that every model can be compared on equal terms.
#
# Axes: b trajectory, t frame, c field, then the grid.


class OnSublattices(nn.Module):
    """A model that streams, on a grid whose axes fall into `copies` copies of its own each."""

    def __init__(self, model: Any, *, copies: int, n_dims: int):
        super().__init__()
        self.model, self.copies, self.n_dims = model, copies, n_dims
        self.frames_as_channels = getattr(model, "frames_as_channels", 0)

    def forward(self, frames: Float[Tensor, "b t c *fine"], *, spacing: Any = None) -> Float[Tensor, "b s c *fine"]:
        """All time steps."""
        return self.joined(self.model(self.split(frames)))

    def start(self, frames: Float[Tensor, "b t c *fine"], *, spacing: Any = None) -> Any:
        """Begin streaming."""
        return self.model.start(self.split(frames))

    def step(self, frame: Float[Tensor, "b c *fine"], state: Any) -> tuple[Float[Tensor, "b d *fine"], Any]:
        """One step."""
        answer, state = self.model.step(self.split(frame[:, None])[:, 0], state)
        return self.joined(answer[:, None])[:, 0], state

    def split(self, frames: Float[Tensor, "b t c *fine"]) -> Float[Tensor, "n t c *grid"]:
        """Every copy as a trajectory of its own."""
        for dim in range(3, 3 + self.n_dims):
            frames = frames.unflatten(dim, (-1, self.copies)).movedim(dim + 1, 0).flatten(0, 1)
        return frames

    def joined(self, frames: Float[Tensor, "n t c *grid"]) -> Float[Tensor, "b t c *fine"]:
        """The inverse of `split`."""
        for dim in reversed(range(3, 3 + self.n_dims)):
            frames = frames.unflatten(0, (self.copies, -1)).movedim(0, dim + 1).flatten(dim, dim + 1)
        return frames


def on_sublattices(forecaster: Forecaster, *, copies: int, spacing: Sequence[float]) -> Forecaster:
    """The forecaster on a grid of this spacing, `copies` times as fine as its own."""
    return Forecaster(
        OnSublattices(forecaster.model, copies=copies, n_dims=len(spacing)),
        normalisers=forecaster.normalisers,
        predict_increment=forecaster.predict_increment,
        window=forecaster.window,
        context_time=forecaster.context_time,
        spacing=spacing,
        mask=forecaster.mask,
    ).eval()


# Forecasts on grids that a model was not trained on: trained on one grid, scored on coarser and finer ones.

BAND, SAMPLED, FFNO_APART = "SS-NO", "SS-NO, kernels sampled anew", "FFNO on sublattices"
MODELS = {
    BAND: "ssno",
    "FFNO": "ffno",
    "FNO": "fno",
    "U-Net": "unet",
}
SIZES: dict[str, dict[str, Any]] = {
    BAND: HALF[BAND],
    "FFNO": HALF["FFNO"],
    "FNO": HALF["FNO2D"],
    "U-Net": HALF["U-Net"],
}
METRICS = {"rel_l2": "rollouts", "rel_l2_onestep": "one step from true frames"}
SHARE = "of the batches"
ALLOWED = 1.25
"""How much larger an error may be on a finer grid than on that of training."""
SHARED = 1.15
"""How much larger the error of one model for several grids may be than that of a model for each."""


class Grids(NamedTuple):
    """The grids of a problem: trained on, sets of them in one model, and scored on."""

    trained: tuple[int, ...]
    mixed: tuple[tuple[int, ...], ...]
    scored: tuple[int, ...]


LINE = Grids((64, 128), ((32, 64, 128), (64, 128)), (32, 64, 128, 256, 512))
SQUARE = Grids((32,), ((16, 32),), (16, 32, 64))

ByPoints = dict[int, list[Mapping[str, float]]]
"""Errors on every grid; an entry per seed."""
Errors = dict[str, dict[str, ByPoints]]
"""The same by case and row."""


def case_of(problem: Benchmark, points: int) -> str:
    """How tables call a grid that was trained on."""
    return f"{problem.title}, trained on {points}"


def mixed_row(grids: Sequence[int]) -> str:
    """The row of one model for several grids."""
    return f"SS-NO, grids {' '.join(map(str, grids))}"


def single_row(count: int) -> str:
    """The row of a model for one grid that sees as many batches of it as one model for several does."""
    return f"SS-NO, 1/{count} {SHARE}"


class OtherGrids:
    """Errors against points without new training."""

    def runs(self, at: Experiment) -> list[Trial]:
        return GridsAt(at).runs()

    def judge(self, at: Experiment, results: Results) -> Finding:
        return GridsAt(at).judge(results)


@dataclass(frozen=True)
class GridsAt:
    """The same at one scale. At `cpu` half the width, few trajectories, one seed."""

    at: Experiment

    def problems(self) -> dict[Benchmark, Grids]:
        if self.at.scale == "tiny":
            return {KS[0.1]: Grids((32,), ((16, 32),), (16, 32, 64))}
        return {KS[0.1]: LINE, BURGERS: LINE, TORUS_LI: SQUARE}

    def models(self) -> tuple[str, ...]:
        return (BAND, "FFNO") if self.at.scale == "tiny" else tuple(MODELS)

    def runs(self) -> list[Trial]:
        return [
            cell
            for seed in self.at.seed_range()
            for problem, plan in self.problems().items()
            for cell in (
                *(self.cell(name, problem, points, seed) for points in plan.trained for name in self.models()),
                *(self.cell(mixed_row(grids), problem, max(grids), seed, grids=grids) for grids in plan.mixed),
                *(
                    self.cell(single_row(len(grids)), problem, points, seed, part=len(grids))
                    for grids in plan.mixed
                    for points in grids
                ),
            )
        ]

    def cell(
        self, name: str, problem: Benchmark, points: int, seed: int, *, grids: tuple[int, ...] = (), part: int = 1
    ) -> Trial:
        """One run; `part` sees only the first 1 / `part` of the trajectories."""
        kind = name if name in MODELS else BAND
        width = SIZES[kind] if self.at.scale == "cpu" else {}
        config = self.at.model(MODELS[kind], n_dims=problem.n_dims, **width)
        config = self.at.with_modes(config, problem, [points] * problem.n_dims)
        changes: dict[str, Any] = {"grids": grids} if grids else {}
        return trial(
            name,
            problem,
            config if self.at.published_recipe else config.recommended(periodic=True),
            points=points,
            seed=seed,
            budget=self.budget_of(problem, part),
            case=case_of(problem, points),
            **changes,
        )

    def budget_of(self, problem: Benchmark, part: int = 1) -> Budget:
        """In 2D a few trajectories, several times."""
        budget = self.at.budget
        if self.at.scale == "cpu" and problem.n_dims == 2:
            budget = replace(budget, preset="small", train=32, epochs=3, valid=8, tested=16)
        there = min(budget.train or 10**9, problem.available(budget.preset)["train"])
        return replace(budget, train=there // part) if part > 1 else budget

    def judge(self, results: Results) -> Finding:
        errors, still = self.errors(results), self.persistence(results)
        drawn = {
            case: {name: by_points for name, by_points in rows.items() if not name.endswith(SHARE)}
            for case, rows in errors.items()
            if BAND in rows
        }
        tables = [self.table(case, rows, still[case], metric) for metric in METRICS for case, rows in drawn.items()]
        panels = {
            case: {
                name: {float(points): [one["rel_l2"] for one in found] for points, found in by_points.items()}
                for name, by_points in rows.items()
            }
            for case, rows in drawn.items()
        }
        records = [
            {"case": case, "row": name, "points": points, "seed": seed, **one}
            for case, rows in errors.items()
            for name, by_points in rows.items()
            for points, found in by_points.items()
            for seed, one in enumerate(found)
        ]
        ticks = sorted({float(points) for plan in self.problems().values() for points in plan.scored})
        return Finding(
            (*tables, *self.shared_tables(errors, still)),
            (*self.finer(errors), *self.lowest(errors), *self.shared(errors)),
            {
                "transfer": lambda: seed_lines(
                    panels, xlabel="points", ylabel="rel_l2 of rollouts", xscale="log", ticks=ticks
                )
            },
            tuple(records),
            (
                "Fields on every grid are every n-th point of the stored ones; nothing is trained anew.",
                "On a finer grid SS-NO forecasts interleaved copies of its trained grid, which exchange nothing: that "
                "an error carries over says that more points are served, not that finer physics is.",
            ),
        )

    def errors(self, results: Results) -> Errors:
        """Every run on every grid that it takes."""
        found: Errors = {}
        for problem, plan in self.problems().items():
            cases = {
                case_of(problem, points) for points in {*plan.trained, *(n for grids in plan.mixed for n in grids)}
            }
            for one in results.outcomes:
                if one.case not in cases:
                    continue
                test = finest_test(one, plan)
                grids = plan.scored if not one.label.endswith(SHARE) else (one.run.data.resolution or 0,)
                versions = versions_of(one.label, results.folder / one.name)
                for name, points, scores in scored(versions, test, grids):
                    found.setdefault(one.case, {}).setdefault(name, {}).setdefault(points, []).append(scores)
        return found

    def persistence(self, results: Results) -> dict[str, ByPoints]:
        """The forecast that nothing changes, on every grid that runs of a case are scored on."""
        plans = {case_of(problem, n): plan for problem, plan in self.problems().items() for n in plan.scored}
        found: dict[str, ByPoints] = {}
        for one in {one.case: one for one in results.outcomes}.values():
            test = finest_test(one, plans[one.case])
            found[one.case] = {
                points: [persistence_scores(test.select(resolution=points), one.run.window)]
                for points in plans[one.case].scored
            }
        return found

    def table(self, case: str, rows: dict[str, ByPoints], still: ByPoints, metric: str) -> ResultTable:
        """A metric of every row on every grid, persistence last."""
        grids = sorted({points for by_points in rows.values() for points in by_points})
        lines = tuple(
            (name, *(cell(by_points.get(points), metric) for points in grids))
            for name, by_points in {**rows, PERSISTENCE: still}.items()
        )
        return ResultTable(f"{metric}: {METRICS[metric]}; {case}", ("", *(f"{n} points" for n in grids)), lines)

    def shared_tables(self, errors: Errors, still: Mapping[str, ByPoints]) -> Iterator[ResultTable]:
        """One model for several grids beside a model for each."""
        for problem, plan in self.problems().items():
            for grids in plan.mixed:
                one, apart = self.one_and_each(errors, problem, grids)
                alone = self.alone(errors, problem, grids, BAND)
                nothing = still.get(case_of(problem, max(grids)), {})
                rows = tuple((str(n), *(cell(found.get(n)) for found in (one, apart, alone, nothing))) for n in grids)
                each = f"a model for each, 1/{len(grids)} {SHARE}"
                headings = ("points", "one model", each, "a model for each, all batches", PERSISTENCE)
                yield ResultTable(f"{problem.title}: {mixed_row(grids)}, rel_l2", headings, rows)

    def one_and_each(self, errors: Errors, problem: Benchmark, grids: Sequence[int]) -> tuple[ByPoints, ByPoints]:
        """One model for several grids, and models for each that took as long together."""
        one = errors.get(case_of(problem, max(grids)), {}).get(mixed_row(grids), {})
        return one, self.alone(errors, problem, grids, single_row(len(grids)))

    def alone(self, errors: Errors, problem: Benchmark, grids: Sequence[int], label: str) -> ByPoints:
        """Models on the grids that they were trained on."""
        found = {n: errors.get(case_of(problem, n), {}).get(label, {}).get(n) for n in grids}
        return {points: values for points, values in found.items() if values}

    def finer(self, errors: Errors) -> Iterator[Verdict]:
        """On interleaved copies of the trained grid hardly worse than on one: no claim about finer physics."""
        for problem, plan in self.problems().items():
            for trained in plan.trained:
                rows = errors.get(case_of(problem, trained), {}).get(BAND, {})
                for points in (n for n in plan.scored if n > trained and n in rows):
                    own, other = mean(rows[trained]), mean(rows[points])
                    copies = f"{points // trained} interleaved copies of {trained} points"
                    claim = f"{problem.title}, {copies}: error of SS-NO within {ALLOWED:g} times"
                    yield within(claim, other, own, factor=ALLOWED)

    def lowest(self, errors: Errors) -> Iterator[Verdict]:
        """On finer grids below every other model, and below kernels sampled anew."""
        for problem, plan in self.problems().items():
            for trained in plan.trained:
                rows = errors.get(case_of(problem, trained), {})
                points = 2 * trained
                for name in (SAMPLED, FFNO_APART, *self.models()[1:]):
                    by_points = rows.get(name, {})
                    if points not in by_points or BAND not in rows:
                        continue
                    ours, theirs = values(rows[BAND][points]), values(by_points[points])
                    claim = f"{problem.title}, {trained} to {points} points: SS-NO below {name}"
                    yield below(claim, ours, theirs, paired=name == SAMPLED)

    def shared(self, errors: Errors) -> Iterator[Verdict]:
        """One model for several grids: hardly worse than one for each that together took the same time."""
        for problem, plan in self.problems().items():
            for grids in plan.mixed:
                one, apart = self.one_and_each(errors, problem, grids)
                for points in (n for n in grids if n in one and n in apart):
                    ours, theirs = mean(one[points]), mean(apart[points])
                    claim = f"{problem.title}, {points} points: {mixed_row(grids)}, within {SHARED:g} times"
                    yield within(claim, ours, theirs, factor=SHARED)


def finest_test(one: Trial, plan: Grids) -> Trajectories:
    """The test trajectories of a run on the finest grid that it is scored on."""
    test = replace(one.run.data, resolution=max(plan.scored)).load("test")
    return test.select(indices=range(min(len(test), one.tested or len(test)))).in_memory()


def within(claim: str, ours: float, theirs: float, *, factor: float) -> Verdict:
    """Whether one error is at most `factor` times another; a run that diverged leaves nothing to compare."""
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        return Verdict(claim, OPEN, f"{ours:.3g} against {theirs:.3g}: a run diverged")
    return fact(claim, ours <= factor * theirs, f"{ours:.3g} against {theirs:.3g}: {ours / theirs:.3g} times")


def scored(
    versions: Mapping[str, Forecaster], test: Trajectories, grids: Sequence[int]
) -> Iterator[tuple[str, int, dict[str, float]]]:
    """TableRow, points and errors of a run's versions on every grid that they take."""
    for name, version in versions.items():
        for points in grids:
            data = test.select(resolution=points)
            copies = round(version.spacing[0] / data.spacing[0]) if version.spacing else 1
            if name == FFNO_APART and copies < 2:
                continue
            one = on_sublattices(version, copies=copies, spacing=data.spacing) if name == FFNO_APART else version
            try:
                means = score(one, data, batch_size=16).means
            except ValueError:  # a model may refuse a grid that is too coarse for it
                continue
            yield name, points, {metric: means[metric] for metric in METRICS}


def versions_of(label: str, folder: Path) -> dict[str, Forecaster]:
    """A run under the names of all rows that it gives."""
    versions = {label: load_forecaster(folder)}
    if label == BAND:
        versions[SAMPLED] = load_forecaster(folder)
        carry_over(versions[SAMPLED], "resample")
    if label == "FFNO":
        versions[FFNO_APART] = versions[label]
    return versions


def carry_over(forecaster: Forecaster, transfer: KernelTransfer) -> None:
    """Choose how the kernels of a trained SS-NO get to other grids."""
    model = forecaster.model
    if isinstance(model, SSNO):
        model.config = replace(model.config, modes=replace(model.config.modes, resolution_transfer=transfer))
        for module in model.modules():
            if hasattr(module, "transfer"):
                module.transfer = transfer  # type: ignore[assignment]


def values(found: Sequence[Mapping[str, float]], metric: str = "rel_l2") -> list[float]:
    """A metric of every seed."""
    return [one[metric] for one in found]


def mean(found: Sequence[Mapping[str, float]]) -> float:
    """The error of rollouts, mean over seeds."""
    return summarise(values(found)).mean


def cell(found: Sequence[Mapping[str, float]] | None, metric: str = "rel_l2") -> str:
    """Mean and spread over seeds; nothing if the model refuses the grid."""
    return "" if not found else shown(summarise(values(found, metric)))


TRANSFER = Experiment(
    name="transfer",
    title="Forecasts on other grids without new training",
    paper_location="Nowhere: our own study",
    published="Nothing; its models are trained anew on every grid.",
    cpu=replace(CPU, train=512, valid=32, tested=32),
    compare_recipes=False,
    content=OtherGrids(),
)
