"""The best of our family beside the best of the others: test data, equal processor time, three seeds of the first two.

    python -m benchmarks.contest                     run what is missing, all problems
    python -m benchmarks.contest torus-li --seeds 1
    python -m benchmarks.contest --page docs/evidence/contest.md     put verdict and table of stored trials there

A trial is one of `benchmarks.design` (narrow models, one thread, the processor time of `SECONDS`), scored on the test
split. `ENTRIES` are the optimiser, peak rate and precision of every model that ended lowest on validation data among
those tried there (results/design.jsonl). Every trial is a line of results/contest.jsonl at once, also a failed one.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.design import PROBLEMS, ROOT, trial
from ssno.base.atomic_write import write_whole
from ssno.evaluation.statistics import LEVEL, compare_seeds

STORE = ROOT / "results" / "contest.jsonl"
BEGIN, END = "<!-- contest -->", "<!-- end -->"
OURS: dict[str, Any] = {"precision": "bf16"}
ON_LINES: dict[str, dict[str, Any]] = {"ssno-warp": OURS, "ffno": {"batch_size": 2}, "gkt": {}, "fno": {}}
ON_TORI: dict[str, dict[str, Any]] = {
    "ssno-warp": OURS | {"batch_size": 1},
    "ffno": {"precision": "bf16", "batch_size": 1},
    "unet": {"precision": "bf16"},
    "gkt": {"learning_rate": 1e-2},
}
ON_SPHERE: dict[str, dict[str, Any]] = {"ssno-sphere-product": {}, "sfno": {}}
ENTRIES = {
    **dict.fromkeys(("torus-vis-force", "torus-li", "torus-vis"), ON_TORI),
    **dict.fromkeys(("ks-0.1", "ks-0.075", "burgers"), ON_LINES),
    **dict.fromkeys(("swe", "swe-vortical"), ON_SPHERE),
}
"""Models of every problem, ours first, then the others as they came out on validation data; with the options of
training in which they differ from the recipe `fast`."""
CLOSE = 2
"""So many models of a problem are run with every seed; the rest were far behind and have one."""
SECONDS = {problem: 30.0 if PROBLEMS[problem].n_dims == 1 else 60.0 for problem in ENTRIES}
BAR, NEVER = 1.5, 1 / 1.1
"""Best of the others / ours: reached by five problems of eight, and undercut by none."""


def stored() -> dict[tuple[str, str, int], dict[str, Any]]:
    """Trials on disk by problem, model and seed."""
    lines = STORE.read_text(encoding="utf-8").splitlines() if STORE.exists() else []
    return {(one["dataset"], one["entry"], one["seed"]): one for one in map(json.loads, lines)}


def run(problem: str, seeds: int) -> None:
    """The missing trials of a problem, seed after seed, so that those of a seed see the same hour of the machine."""
    for seed in range(seeds):
        for place, (model, options) in enumerate(ENTRIES[problem].items()):
            if seed and place >= CLOSE:
                continue
            if (problem, model, seed) in stored():
                continue
            found = trial(model, problem, seconds=SECONDS[problem], seed=seed, split="test", **options)
            with STORE.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"entry": model, **found}) + "\n")
            print(problem, model, f"seed {seed}:", found.get("rel_l2", found.get("failed")), flush=True)


def errors(problem: str, model: str) -> list[float]:
    """The test errors of all seeds; infinite where a training failed."""
    found = [one for (dataset, entry, _), one in sorted(stored().items()) if (dataset, entry) == (problem, model)]
    return [float(one.get("rel_l2", math.inf)) for one in found]


@dataclass(frozen=True)
class Score:
    """A problem with trials of ours and of another model: errors by model, ours first, and the best of the others."""

    problem: str
    found: dict[str, list[float]]
    best: str
    ratio: float
    """Mean error of the best of the others / ours."""
    p: float

    def row(self) -> str:
        """A line of the table."""
        told = {model: f"{model} {', '.join(f'{one:.3g}' for one in values)}" for model, values in self.found.items()}
        ours, *rest = (f"**{text}**" if model == self.best else text for model, text in told.items())
        p = "one seed" if math.isnan(self.p) else f"{self.p:.2g}"
        return f"| {self.problem} | {SECONDS[self.problem]:g} | {ours} | {'; '.join(rest)} | {self.ratio:.2f} | {p} |"


def scores() -> list[Score]:
    """Every problem that has trials of ours and of another model."""
    made = []
    for problem, entries in ENTRIES.items():
        found = {model: errors(problem, model) for model in entries if errors(problem, model)}
        ours, *others = entries
        rivals = [model for model in others if model in found]
        if ours not in found or not rivals:
            continue
        mean = {model: sum(values) / len(values) for model, values in found.items()}
        best = min(rivals, key=lambda model: mean[model])
        made.append(Score(problem, found, best, mean[best] / mean[ours], compare_seeds(found[ours], found[best]).p))
    return made


def verdict() -> str:
    """The table in two sentences."""
    known = scores()
    if not known:
        return "Verdict: not measured yet."
    below = [one for one in known if one.ratio > 1]
    sure = sum(one.p < LEVEL for one in below)
    far, behind = [one for one in known if one.ratio >= BAR], [one.problem for one in known if one.ratio < NEVER]
    return (
        f"Verdict: on {len(below)} of {len(known)} problems our best model's mean error is below that of the best of "
        f"the others (decided on {sure}), {BAR:g} times or more on {len(far)}. The bar was {BAR:g} times on five "
        f"of {len(ENTRIES)}, and nowhere more than 1.1 times above: {', '.join(behind) or 'none'} is."
    )


def table() -> str:
    """One line per problem: our errors, those of every other model, and how far ours are below the best of these."""
    lines = ["| problem | CPU s | ours | others | best of the others / ours | p |", "|---|--:|---|---|--:|---|"]
    return "\n".join([*lines, *(one.row() for one in scores())])


def block() -> str:
    """What stands on the page."""
    return f"{BEGIN}\n{verdict()}\n\n{table() if scores() else ''}\n{END}"


def main(
    problems: Annotated[tuple[str, ...], tyro.conf.Positional] = (), *, seeds: int = 3, page: Path | None = None
) -> None:
    """Run what is missing of these problems (all by default), and print the table; or put it into a page."""
    if page is not None:
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        write_whole(page, f"{before}{block()}{rest.split(END)[1]}".encode())
        return
    torch.set_num_threads(1)
    for problem in problems or tuple(ENTRIES):
        run(problem, seeds)
    print(table())


if __name__ == "__main__":
    tyro.cli(main)
