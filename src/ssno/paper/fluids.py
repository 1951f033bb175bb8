"""The 2D table: SS-NO and five baselines on Navier-Stokes (three tori) and on compressible Euler (two gases).

At scale `cpu` models have half their width and train for equal time, about 80 seconds of one core, on 96 trajectories
of `small` data on 32 x 32 points, as many times as that allows (`EPOCHS`).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ssno.data.datasets import DATASETS
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.ssno import SSNOConfig
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.reference import FLUIDS
from ssno.paper.results import Results
from ssno.paper.table import Claim, compared
from ssno.paper.trial import (
    CE_RM,
    CPU_2D,
    GCE_RT,
    TORUS_LI,
    TORUS_VIS,
    TORUS_VIS_FORCE,
    Benchmark,
    Budget,
    Trial,
    trial,
)

MODELS: dict[str, type[OperatorConfig]] = {
    "SS-NO": SSNOConfig,
    "FFNO": FFNOConfig,
    "FNO2D": FNOConfig,
    "U-Net": UNetConfig,
    "GKT": GKTConfig,
    "Factformer": FactformerConfig,
}
HALF: dict[str, dict[str, Any]] = {
    "SS-NO": {"hidden_channels": 32, "head_channels": 128},
    "FFNO": {"hidden_channels": 32, "head_channels": 64},
    "FNO2D": {"hidden_channels": 32, "head_channels": 128},
    "U-Net": {"hidden_channels": 16},
    "GKT": {"hidden_channels": 16, "head_channels": 64},
    "Factformer": {"hidden_channels": 32, "head_channels": 64},
}
"""Half the width of each model, for scale `cpu`."""
BF16 = ("SS-NO", "U-Net", "Factformer")
"""Models that train in bf16 at scales `cpu` and `tenth`: 1.7, 1.9 and 2 times as fast; others at most 1.2 times."""
EPOCHS = {"SS-NO": 10, "FFNO": 5, "FNO2D": 4, "U-Net": 19, "GKT": 7, "Factformer": 2}
"""At scale `cpu`, for equal time. A step of four trajectories takes 0.35, 0.68, 0.83, 0.18, 0.53 and 2.6 s of an idle
core (AMD EPYC with AVX512-BF16, one thread)."""
FEW = {"Factformer": 64}
"""Trajectories at scale `cpu` of a model whose time does not suffice for all of them."""
RATES = {"SS-NO": 1e-2, "FFNO": 1e-2, "FNO2D": 1e-2, "U-Net": 1e-3, "GKT": 1e-2, "Factformer": 1e-3}
"""Peak learning rates at scales `cpu` and `tenth`, chosen by `ssno reproduce learning-rates`."""


class FluidTable(Experiment):
    """Rows and verdicts that the tables of both equations share."""

    cpu: ClassVar[Budget] = CPU_2D
    problems: ClassVar[tuple[Benchmark, ...]]
    seeded: ClassVar[tuple[str, ...]]
    """Models that get every seed at scale `cpu`; the others one."""

    def models(self) -> tuple[str, ...]:
        return self.by_scale(tiny=self.seeded, cpu=tuple(MODELS), tenth=("SS-NO", "FFNO"), paper=tuple(MODELS))

    def problems_here(self) -> tuple[Benchmark, ...]:
        return self.problems[:1] if self.scale == "tiny" else self.problems

    def runs(self) -> list[Trial]:
        return [
            self.cell(name, problem, seed)
            for seed in self.seed_range()
            for problem in self.problems_here()
            for name in self.models()
            if self.scale != "cpu" or not seed or name in self.seeded
        ]

    def cell(
        self,
        name: str,
        problem: Benchmark,
        seed: int,
        *,
        epochs: int | None = None,
        rate: float | None = None,
        case: str | None = None,
    ) -> Trial:
        """One run; with the epochs and the rate of its model, unless others are given."""
        points = self.points(self.by_scale(cpu=32, tenth=64, paper=64))
        width = HALF[name] if self.scale == "cpu" else {}
        config = self.with_modes(self.model(MODELS[name], n_dims=2, **width), problem, [points, points])
        budget = self.budget
        if self.scale == "cpu":
            budget = replace(budget, epochs=epochs or EPOCHS[name], train=FEW.get(name, budget.train))
        changes: dict[str, Any] = self.precision() if name in BF16 else {"precision": "float32"}
        if rate is not None or not self.published_recipe:
            changes["learning_rate"] = rate or RATES[name]
        return trial(
            name, problem, self.recommended(config), points=points, seed=seed, budget=budget, case=case, **changes
        )

    def judge(self, results: Results) -> Finding:
        claims = [
            Claim(problem.title, "SS-NO", name)
            for problem in self.problems
            for name in self.models()
            if name != "SS-NO"
        ]
        return compared(self.name, results, claims=claims, printed=FLUIDS)


@dataclass(frozen=True, kw_only=True)
class NavierStokes(FluidTable):
    """Vorticity on the torus."""

    name: ClassVar[str] = "navier-stokes"
    title: ClassVar[str] = "Navier-Stokes on the torus, 2D"
    paper_location: ClassVar[str] = "Table of 2D results: TorusLi, TorusVis, TorusVisForce"
    published: ClassVar[str] = (
        "SS-NO lowest on TorusLi (0.0345, FFNO 0.0409), TorusVis (0.0218, FFNO 0.0231) and TorusVisForce (0.0263, FFNO "
        "0.0326), with the fewest parameters."
    )
    cpu_seeds: ClassVar[int] = 3
    problems: ClassVar[tuple[Benchmark, ...]] = (TORUS_LI, TORUS_VIS, TORUS_VIS_FORCE)
    seeded: ClassVar[tuple[str, ...]] = ("SS-NO", "FFNO", "U-Net", "FNO2D")


@dataclass(frozen=True, kw_only=True)
class EulerTable(FluidTable):
    """Compressible gases with shocks and interfaces."""

    name: ClassVar[str] = "euler"
    title: ClassVar[str] = "Compressible Euler, 2D"
    paper_location: ClassVar[str] = "Table of 2D results: CE-RM, GCE-RT"
    published: ClassVar[str] = (
        "SS-NO lowest on CE-RM (0.0583, U-Net and Factformer 0.064, FFNO 0.0688) and GCE-RT (0.0138, FNO2D 0.0155)."
    )
    cpu_seeds: ClassVar[int] = 3
    problems: ClassVar[tuple[Benchmark, ...]] = (CE_RM, GCE_RT)
    seeded: ClassVar[tuple[str, ...]] = ("SS-NO", "FFNO", "U-Net")

    def judge(self, results: Results) -> Finding:
        """The usual tables, and one for each field of the gas."""
        conclusion = super().judge(results)
        fields = DATASETS[CE_RM.dataset].problem.fields
        sheets = (
            results.sheet(f"rel_l2 of {field} alone; mean ± standard deviation over seeds", metric=f"rel_l2/{field}")
            for field in fields
        )
        return replace(conclusion, sheets=(*conclusion.sheets, *sheets))
