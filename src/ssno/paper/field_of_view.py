"""The criterion for universality, computed: which outputs can depend on which inputs, model by model."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ssno.evaluation.tables import ResultTable
from ssno.models.registry import model_config
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, fact
from ssno.paper.trial import Trial
from ssno.theory.field_of_view import FieldOfView, field_of_view, seen_in_jacobian
from ssno.theory.figures import plot_field_of_view

MODELS = {"ssno": "SS-NO", "ssno-uni": "one-way SS-NO", "ffno": "FFNO", "fno": "FNO"}


@dataclass(frozen=True, kw_only=True)
class FieldOfViewExperiment(Experiment):
    """Read off the kernels and checked by differentiation; no training, so no scale matters."""

    name: ClassVar[str] = "field-of-view"
    title: ClassVar[str] = "Field of view of every model"
    paper_location: ClassVar[str] = "Theorem on universality"
    published: ClassVar[str] = "A theorem: universal if every output sees every input; with one-way scans it does not."

    def grid(self) -> tuple[int, ...]:
        return (16,) if self.scale == "tiny" else (64,)

    def runs(self) -> list[Trial]:
        return []

    def judge(self, results: Results) -> Finding:
        views = {name: self.views(name) for name in MODELS}
        rows = tuple(
            (
                MODELS[name],
                f"{100 * read.fraction:.4g} %",
                "yes" if read.full else "no",
                "yes" if agree(read, seen) else "no",
            )
            for name, (read, seen) in views.items()
        )
        full = {name: read.full for name, (read, _) in views.items()}
        blind = 1 - views["ssno-uni"][0].fraction
        return Finding(
            (
                ResultTable(
                    "pairs of output and input that are connected", ("model", "share", "full", "Jacobian agrees"), rows
                ),
            ),
            (
                fact(
                    "two-way SS-NO, FFNO and FNO have a full field of view",
                    all(full[n] for n in MODELS if n != "ssno-uni"),
                    str(full),
                ),
                fact("one-way SS-NO has not", not full["ssno-uni"], f"{100 * blind:.3g} % of all pairs are blind"),
                fact(
                    "kernels and derivatives tell the same", all(agree(*pair) for pair in views.values()), "all models"
                ),
            ),
            {"field-of-view": lambda: plot_field_of_view({MODELS[name]: read for name, (read, _) in views.items()})},
            tuple({"model": name, "fraction": read.fraction} for name, (read, _) in views.items()),
        )

    def views(self, name: str) -> tuple[FieldOfView, FieldOfView]:
        """By kernels and by differentiation."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = model_config(f"{name}:tiny").for_grid(self.grid()).build()
        return field_of_view(model, self.grid()), seen_in_jacobian(model, self.grid())


def agree(first: FieldOfView, second: FieldOfView) -> bool:
    """Whether two views connect the same pairs."""
    return bool((first.reached == second.reached).all())
