"""Which damping is learned: distributions over all modes of all scans, from the same runs as the ablation.

The paper compares coefficients: with thousands of them, any difference is significant. Seeds are what is independent,
so the verdict rests on the means of seeds; the paper's test is printed beside it.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ssno.evaluation.statistics import summarise, welch
from ssno.evaluation.tables import ResultTable
from ssno.layers.modes import Modes
from ssno.paper.ablation import Ablation, row
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import MEAN_DAMPING
from ssno.paper.results import Results, below, shown
from ssno.paper.trial import KS, Trial
from ssno.plots.summary import outlines
from ssno.runs.load import load_forecaster
from ssno.ssm.initialise import INITIAL_DAMPING

Variant = tuple[int, str, float]
"""States, setting, viscosity: a cell of the ablation."""


@dataclass(frozen=True, kw_only=True)
class Damping(Experiment):
    """Learned damping of the ablation's runs."""

    name: ClassVar[str] = "damping"
    title: ClassVar[str] = "Distributions of learned damping, KS"
    paper_location: ClassVar[str] = "Figures of damping distributions"
    published: ClassVar[str] = (
        "Mean damping, from 0.5: full 0.586, damping only 0.726 (nu = 0.075, 64 states); nu = 0.125 0.514; "
        "16 states 0.652."
    )
    cpu_seeds: ClassVar[int] = Ablation.cpu_seeds
    tenth_seeds: ClassVar[int] = Ablation.tenth_seeds
    cpu: ClassVar = Ablation.cpu

    def source(self) -> Ablation:
        """The experiment whose runs are looked into."""
        return Ablation(scale=self.scale, seeds=self.seeds, recipe=self.recipe)

    def comparisons(self) -> dict[str, tuple[Variant, Variant]]:
        """What is compared: first the one that should learn less damping."""
        many, few = max(self.source().states()), min(self.source().states())
        low, high = min(self.source().viscosities()), max(self.source().viscosities())
        full = (many, "All", low)
        found: dict[str, tuple[Variant, Variant]] = {"full against damping only": (full, (many, "Damping only", low))}
        if high > low:
            found[f"nu = {high:g} against {low:g}"] = ((many, "All", high), full)
        return found | {f"{many} against {few} states": (full, (few, "All", low))}

    def runs(self) -> list[Trial]:
        cells = dict.fromkeys(cell for pair in self.comparisons().values() for cell in pair)
        return [self.source().cell(*cell, seed) for seed in self.seed_range() for cell in cells]

    def judge(self, results: Results) -> Finding:
        rows, verdicts, drawn = [], [], {}
        learned = {cell: self.learned(cell, results) for pair in self.comparisons().values() for cell in pair}
        for name, (less, more) in self.comparisons().items():
            if not (learned[less] and learned[more]):
                continue
            per_seed = {cell: [float(values.mean()) for values in learned[cell]] for cell in (less, more)}
            verdicts.append(
                below(
                    f"{name}: {words(more)} learns stronger damping than {words(less)}", per_seed[less], per_seed[more]
                )
            )
            together = {cell: np.concatenate(learned[cell]) for cell in (less, more)}
            drawn[name] = {words(cell): values for cell, values in together.items()}
            p = welch(summarise(together[less].tolist()), summarise(together[more].tolist()))
            for cell in (less, more):
                mean, printed = summarise(per_seed[cell]), MEAN_DAMPING.get((cell[2], cell[0], cell[1]))
                change = 100 * (mean.mean / INITIAL_DAMPING - 1)
                rows.append(
                    (
                        name,
                        words(cell),
                        shown(mean),
                        f"{change:+.1f} %",
                        f"{np.median(together[cell]):.3g}",
                        "" if printed is None else f"{printed:g}",
                        f"{p:.1g}",
                    )
                )
        headings = ("comparison", "runs", "mean damping", "change from 0.5", "median", "paper", "p over coefficients")
        return Finding(
            (ResultTable("Learned damping, mean ± standard deviation over seeds", headings, tuple(rows)),),
            tuple(verdicts),
            {"damping": lambda: outlines(drawn, xlabel="damping", start=INITIAL_DAMPING)} if drawn else {},
            tuple(results.records()),
        )

    def learned(self, cell: Variant, results: Results) -> list[np.ndarray]:
        """The damping of every mode of every spatial scan, one array per seed."""
        states, setting, viscosity = cell
        folders = [results.folder / trial.name for trial, _ in results.find(row(states, setting), KS[viscosity].title)]
        return [spatial_damping(load_forecaster(folder).model) for folder in folders]


def words(cell: Variant) -> str:
    """A cell in a legend."""
    states, setting, viscosity = cell
    return f"{setting}, {states} states, nu = {viscosity:g}"


def spatial_damping(model: torch.nn.Module) -> np.ndarray:
    """Damping of all modes outside the temporal memory."""
    found = [
        module.damping().detach().flatten()
        for name, module in model.named_modules()
        if isinstance(module, Modes) and not name.startswith("memory")
    ]
    return torch.cat(found).double().numpy()
