"""How a continuous mode becomes one of a grid: which choice learns best, and which carries over to a finer grid.

    zoh        the input is held between points: the paper's choice
    bilinear   the trapezoidal rule
    exact      every wave of the grid meets what the continuous mode does to it

Runs differ in nothing else and share their seeds. Each is scored on its own grid and on one twice as fine, there with
the learned spectrum (`transfer = "spectrum"`) and with kernels sampled anew: only exact modes should not care.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, get_args

from ssno.data.trajectories import Trajectories
from ssno.evaluation.statistics import summarise
from ssno.evaluation.tables import ResultTable
from ssno.forecasting.scores import score
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, Verdict, below, shown
from ssno.paper.table import NARROW
from ssno.paper.trial import BURGERS, CPU, KS, Trial, trial
from ssno.paper.trivial import PERSISTENCE, persistence_scores
from ssno.plots.summary import seed_dots
from ssno.runs.load import load_forecaster
from ssno.ssm.discretise import Discretisation as Rule
from ssno.ssm.resolution import Transfer
from studies.transfer import carry_over

RULES: tuple[Rule, ...] = get_args(Rule)
PROBLEMS = (KS[0.1], BURGERS)
TRAINED, FINER, ANEW = "as trained", "twice as fine", "twice as fine, sampled anew"


class Discretisations:
    """Three discretisations on KS 0.1 and Burgers. At scale `cpu` half the width on 512 trajectories, three seeds."""

    def runs(self, at: Experiment) -> list[Trial]:
        model = at.model("ssno", **(NARROW if at.scale == "cpu" else {}))
        model = model.recommended(periodic=True)  # at every scale: exact modes require a periodic axis
        return [
            trial(
                rule,
                problem,
                replace(model, modes=replace(model.modes, discretisation=rule)),
                points=32 if at.scale == "tiny" else 64,
                seed=seed,
                budget=at.budget,
            )
            for seed, problem, rule in product(at.seed_range(), PROBLEMS, RULES)
        ]

    def judge(self, at: Experiment, results: Results) -> Finding:
        rows, still = list(self.scores(results)), list(self.persistence(results))
        cases = [problem.title for problem in PROBLEMS]
        where, names = (TRAINED, FINER, ANEW), (*RULES, PERSISTENCE)
        tables = tuple(
            ResultTable(
                f"{metric} on test trajectories; {case}, mean ± standard deviation over seeds",
                ("", *where),
                tuple((name, *(told([*rows, *still], case, name, place, metric) for place in where)) for name in names),
            )
            for metric in ("rel_l2", "rel_l2_onestep")
            for case in cases
        )
        trained = {case: {str(rule): values(rows, case, rule, TRAINED) for rule in RULES} for case in cases}
        dots = {case: {rule: list(by.values()) for rule, by in found.items() if by} for case, found in trained.items()}
        draw = {"discretisation": lambda: seed_dots(dots, ylabel="rel_l2 of rollouts")}
        return Finding(tables, tuple(self.verdicts(rows)), draw, tuple(rows))

    def scores(self, results: Results) -> Iterator[dict[str, Any]]:
        """Errors of every run on both grids."""
        for one in results.outcomes:
            points, test = finer_test(one)
            kinds: dict[str, tuple[int, Transfer]] = {
                TRAINED: (points, "spectrum"),
                FINER: (2 * points, "spectrum"),
                ANEW: (2 * points, "resample"),
            }
            for place, (wanted, transfer) in kinds.items():
                forecaster = load_forecaster(results.folder / one.name)
                carry_over(forecaster, transfer)
                means = score(forecaster, test.select(resolution=wanted), batch_size=16).means
                errors = {metric: means[metric] for metric in ("rel_l2", "rel_l2_onestep")}
                yield {"case": one.case, "row": one.label, "seed": one.seed, "grid": place, **errors}

    def persistence(self, results: Results) -> Iterator[dict[str, Any]]:
        """Errors of the forecast that nothing changes, on both grids."""
        for one in {one.case: one for one in results.outcomes}.values():
            points, test = finer_test(one)
            errors = {n: persistence_scores(test.select(resolution=n), one.run.window) for n in (points, 2 * points)}
            for place, wanted in ((TRAINED, points), (FINER, 2 * points), (ANEW, 2 * points)):
                yield {"case": one.case, "row": PERSISTENCE, "grid": place, **errors[wanted]}

    def verdicts(self, rows: list[dict[str, Any]]) -> Iterator[Verdict]:
        """Each other choice against zero-order hold, on both grids, in pairs of equal seeds."""
        for problem in PROBLEMS:
            for rule in RULES[1:]:
                for place in (TRAINED, ANEW):
                    own, other = (values(rows, problem.title, one, place) for one in (rule, RULES[0]))
                    both = [[found[seed] for seed in own if seed in other] for found in (own, other)]
                    if both[0]:
                        yield below(f"{problem.title}, {place}: {rule} below {RULES[0]}", *both, paired=True)


def finer_test(one: Trial) -> tuple[int, Trajectories]:
    """The points of a run's grid, and its test trajectories on one twice as fine."""
    points = one.run.data.resolution or 64
    test = replace(one.run.data, resolution=2 * points).load("test")
    return points, test.select(indices=range(min(len(test), one.tested or len(test)))).in_memory()


def values(rows: list[dict[str, Any]], case: str, rule: str, place: str, metric: str = "rel_l2") -> dict[int, float]:
    """A metric by seed."""
    wanted = {"case": case, "row": rule, "grid": place}
    return {one.get("seed", 0): one[metric] for one in rows if all(one[key] == wanted[key] for key in wanted)}


def told(rows: list[dict[str, Any]], case: str, rule: str, place: str, metric: str) -> str:
    """Mean and spread over seeds."""
    found = values(rows, case, rule, place, metric)
    return shown(summarise(list(found.values()))) if found else ""


DISCRETISATION = Experiment(
    name="discretisation",
    title="From continuous modes to a grid",
    paper_location="Nowhere: our own study",
    published="Nothing; it takes zero-order hold from S4.",
    cpu=replace(CPU, train=512, valid=32, tested=64),
    cpu_seeds=3,
    compare_recipes=False,
    content=Discretisations(),
)
