"""What the paper proves, computed; nothing is trained, so no scale matters.

recovery       an undamped linear state-space layer with harmonic frequencies is a Fourier layer: build it and compare
field-of-view  the criterion for universality: which outputs can depend on which inputs, model by model

The layer of the first is `ssno.layers.linear_ssm`: several channels in and out, no gate. SS-NO's own scans have one
channel each and a gate behind them; the construction does not cover those.
"""

import torch

from ssno.evaluation.tables import ResultTable
from ssno.layers.spectral import SpectralConvolution
from ssno.models.registry import model_config
from ssno.paper.experiment import Experiment, Finding
from ssno.paper.results import Results, fact
from ssno.paper.trial import Trial
from ssno.plots.style import Figure, look, palette
from ssno.theory.field_of_view import FieldOfView, field_of_view, seen_in_jacobian
from ssno.theory.figures import plot_field_of_view
from ssno.theory.fno_recovery import recover_fno

EXACT = 1e-12
CHANNELS = 16
MODELS = {"ssno": "SS-NO", "ssno-uni": "one-way SS-NO", "ffno": "FFNO", "fno": "FNO"}


class FourierLayers:
    """Random Fourier layers in float64, recovered exactly and with fewer states."""

    def runs(self, at: Experiment) -> list[Trial]:
        return []

    def judge(self, at: Experiment, results: Results) -> Finding:
        grids = (32,) if at.scale == "tiny" else (32, 64, 127, 512)
        records: list[dict[str, float]] = [
            {"points": n, "modes": modes, "seed": seed, "relative_difference": difference(n, modes, seed)}
            for seed in at.seed_range()
            for n in grids
            for modes in (8, n // 2)
        ]
        worst = {n: max(one["relative_difference"] for one in records if one["points"] == n) for n in grids}
        fewer = {rank: lower_rank(rank) for rank in (1, 2, 4, 8, CHANNELS)}
        records += [
            {"rank": rank, "relative_difference": error, "bound": bound} for rank, (error, bound) in fewer.items()
        ]
        best = all(abs(error - bound) <= 0.05 * bound + EXACT for error, bound in fewer.values())
        told = ", ".join(f"{rank}: {error:.3g} ({bound:.3g})" for rank, (error, bound) in fewer.items())
        rows = tuple((f"{n} points", f"{error:.1e}") for n, error in worst.items())
        title = "largest relative difference of outputs on white noise, float64"
        equal = "a linear state-space layer of several channels equals any Fourier layer"
        bounded = "with fewer states per frequency the error is that of the best approximation (Eckart-Young)"
        return Finding(
            (ResultTable(title, ("grid", "difference"), rows),),
            (
                fact(equal, max(worst.values()) < EXACT, f"at most {max(worst.values()):.1e} apart"),
                fact(bounded, best, f"states: error (bound) {told}"),
            ),
            {"recovery": lambda: rank_figure(fewer)},
            tuple(records),
        )


def fourier_layer(modes: int, seed: int) -> SpectralConvolution:
    """A Fourier layer with random weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SpectralConvolution(CHANNELS, n_modes=modes, axes=1).double()


def difference(points: int, modes: int, seed: int, rank: int | None = None, lines: int = 8) -> float:
    """Relative difference of the outputs of a random Fourier layer and its recovery."""
    fourier = fourier_layer(modes, seed)
    layer = recover_fno(fourier, points=points, rank=rank).layer
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(CHANNELS, points, lines, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected, found = fourier(noise), layer.columns(noise)
    return float((found - expected).norm() / expected.norm())


def lower_rank(rank: int) -> tuple[float, float]:
    """Error of the recovery with `rank` states per frequency: measured on noise, and in theory."""
    modes, points = 16, 64
    bound = recover_fno(fourier_layer(modes, 0), points=points, rank=rank).relative_error
    return difference(points, modes, 0, rank, lines=256), bound


def rank_figure(fewer: dict[int, tuple[float, float]]) -> Figure:
    """Error against states per frequency."""
    with look():
        figure = Figure(figsize=(5, 3.4))
        axes = figure.subplots()
        ranks = [rank for rank, (_, bound) in fewer.items() if bound > EXACT]
        measured, bounds = zip(*(fewer[rank] for rank in ranks), strict=True)
        axes.plot(ranks, bounds, "-", color=palette()[0], label="best possible")
        axes.plot(ranks, measured, "o", color=palette()[1], label="measured on noise")
        title = f"a Fourier layer of {CHANNELS} channels"
        axes.set(xlabel="states per frequency", ylabel="relative error", title=title)
        axes.legend()
        return figure


class FieldsOfView:
    """Fields of view, read off the kernels and checked by differentiation."""

    def runs(self, at: Experiment) -> list[Trial]:
        return []

    def judge(self, at: Experiment, results: Results) -> Finding:
        grid = (16,) if at.scale == "tiny" else (64,)
        views = {name: two_views(name, grid) for name in MODELS}
        agree = {name: bool((read.reached == seen.reached).all()) for name, (read, seen) in views.items()}
        full = {name: read.full for name, (read, _) in views.items()}
        rows = tuple(
            (MODELS[name], f"{100 * read.fraction:.4g} %", "yes" if read.full else "no", "yes" if agree[name] else "no")
            for name, (read, _) in views.items()
        )
        headings = ("model", "share", "full", "Jacobian agrees")
        blind = f"{100 * (1 - views['ssno-uni'][0].fraction):.3g} % of all pairs are blind"
        two_way = all(full[name] for name in MODELS if name != "ssno-uni")
        return Finding(
            (ResultTable("pairs of output and input that are connected", headings, rows),),
            (
                fact("two-way SS-NO, FFNO and FNO have a full field of view", two_way, str(full)),
                fact("one-way SS-NO has not", not full["ssno-uni"], blind),
                fact("kernels and derivatives tell the same", all(agree.values()), "all models"),
            ),
            {"field-of-view": lambda: plot_field_of_view({MODELS[name]: read for name, (read, _) in views.items()})},
            tuple({"model": name, "fraction": read.fraction} for name, (read, _) in views.items()),
        )


def two_views(name: str, grid: tuple[int, ...]) -> tuple[FieldOfView, FieldOfView]:
    """The field of view of a model by its kernels and by differentiation."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = model_config(f"{name}:tiny").for_grid(grid).build()
    return field_of_view(model, grid), seen_in_jacobian(model, grid)


RECOVERY = Experiment(
    name="recovery",
    title="Linear state-space layers contain Fourier layers",
    paper_location="Proposition: Fourier layers are state-space layers",
    published="A proof: equal kernels for zero damping, harmonic frequencies and enough states per frequency.",
    content=FourierLayers(),
)
FIELD_OF_VIEW = Experiment(
    name="field-of-view",
    title="Field of view of every model",
    paper_location="Theorem on universality",
    published="A theorem: universal if every output sees every input; with one-way scans it does not.",
    content=FieldsOfView(),
)
