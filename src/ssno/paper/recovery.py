"""An undamped linear state-space layer with harmonic frequencies is a Fourier layer: build it, and compare the outputs.

The layer is `ssno.layers.linear_ssm`: several channels in and out, no gate. SS-NO's own scans have one channel each and
a gate behind them; of those the construction says nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from ssno.evaluation.tables import ResultTable
from ssno.layers.spectral import SpectralConvolution
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, fact
from ssno.paper.trial import Trial
from ssno.plots.style import Figure, look, palette
from ssno.theory.fno_recovery import recover_fno

EXACT = 1e-12
CHANNELS = 16


@dataclass(frozen=True, kw_only=True)
class FourierRecovery(Experiment):
    """Random Fourier layers in float64, recovered exactly and with fewer states; no training, so no scale matters."""

    name: ClassVar[str] = "recovery"
    title: ClassVar[str] = "Linear state-space layers contain Fourier layers"
    paper_location: ClassVar[str] = "Proposition: Fourier layers are state-space layers"
    published: ClassVar[str] = (
        "A proof: equal kernels for zero damping, harmonic frequencies and enough states per frequency."
    )

    def grids(self) -> tuple[int, ...]:
        return (32,) if self.scale == "tiny" else (32, 64, 127, 512)

    def runs(self) -> list[Trial]:
        return []

    def judge(self, results: Results) -> Finding:
        rows, records = [], []
        for seed in self.seed_range():
            for points in self.grids():
                for modes in (8, points // 2):
                    error = difference(points, modes, seed)
                    records.append({"points": points, "modes": modes, "seed": seed, "relative_difference": error})
        for points in self.grids():
            errors = [record["relative_difference"] for record in records if record["points"] == points]
            rows.append((f"{points} points", f"{max(errors):.1e}"))
        worst = max(float(record["relative_difference"]) for record in records)
        fewer = {rank: lower_rank(rank) for rank in (1, 2, 4, 8, CHANNELS)}
        records += [
            {"rank": rank, "relative_difference": error, "bound": bound} for rank, (error, bound) in fewer.items()
        ]
        good = all(abs(error - bound) <= 0.05 * bound + EXACT for error, bound in fewer.values())
        told = ", ".join(f"{rank}: {error:.3g} ({bound:.3g})" for rank, (error, bound) in fewer.items())
        return Finding(
            (
                ResultTable(
                    "largest relative difference of outputs on white noise, float64",
                    ("grid", "difference"),
                    tuple(rows),
                ),
            ),
            (
                fact(
                    "a linear state-space layer of several channels equals any Fourier layer",
                    worst < EXACT,
                    f"at most {worst:.1e} apart",
                ),
                fact(
                    "with fewer states per frequency the error is that of the best approximation (Eckart-Young)",
                    good,
                    f"states: error (bound) {told}",
                ),
            ),
            {"recovery": lambda: rank_figure(fewer)},
            tuple(records),
        )


def layer_of(modes: int, seed: int) -> SpectralConvolution:
    """A Fourier layer with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SpectralConvolution(CHANNELS, n_modes=modes, axes=1).double()


def difference(points: int, modes: int, seed: int, rank: int | None = None, lines: int = 8) -> float:
    """Relative difference of the outputs of a random Fourier layer and its recovery."""
    fourier = layer_of(modes, seed)
    layer = recover_fno(fourier, points=points, rank=rank).layer
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(CHANNELS, points, lines, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected, found = fourier(noise), layer.columns(noise)
    return float((found - expected).norm() / expected.norm())


def lower_rank(rank: int) -> tuple[float, float]:
    """Error of the recovery with so many states per frequency, measured on noise, and its theoretical value."""
    modes, points = 16, 64
    return difference(points, modes, 0, rank, lines=256), recover_fno(
        layer_of(modes, 0), points=points, rank=rank
    ).relative_error


def rank_figure(fewer: dict[int, tuple[float, float]]) -> Figure:
    """Error against states per frequency."""
    with look():
        figure = Figure(figsize=(5, 3.4))
        axes = figure.subplots()
        shown = {rank: pair for rank, pair in fewer.items() if pair[1] > EXACT}
        axes.plot(list(shown), [bound for _, bound in shown.values()], "-", color=palette()[0], label="best possible")
        axes.plot(
            list(shown), [error for error, _ in shown.values()], "o", color=palette()[1], label="measured on noise"
        )
        axes.set(
            xlabel="states per frequency", ylabel="relative error", title=f"a Fourier layer of {CHANNELS} channels"
        )
        axes.legend()
        return figure
