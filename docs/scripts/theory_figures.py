"""Draw the pictures of docs/design/theory.md:  python docs/scripts/theory_figures.py  (one to two minutes on one core).

Every picture is computed by the library; nothing is drawn by hand. Name pictures to draw only those.
"""

import csv
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import tyro
from matplotlib.figure import Figure
from torch import nn

from ssno.layers.spectral import SpectralConvolution
from ssno.models.registry import model_config
from ssno.plots.style import COLOURS, look, save
from ssno.ssm.discretise import ComplexPair
from ssno.ssm.kernel import continuous_kernel
from ssno.theory import field_of_view, plot_field_of_view, recover_fno, spectral_matrices

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
BLUE, ORANGE, GREEN, PINK = COLOURS[:4]


def some_modes() -> tuple[torch.Tensor, torch.Tensor, ComplexPair]:
    """A small system that shows what modes do: damping, frequency and weight of four modes of one channel."""
    damping = torch.tensor([[1.2, 2.0, 5.0, 9.0]], dtype=torch.float64)
    frequency = torch.tensor([[0.0, 11.0, 27.0, 52.0]], dtype=torch.float64)
    weight = ComplexPair(
        torch.tensor([[0.30, 0.25, 0.35, 0.15]], dtype=torch.float64),
        torch.tensor([[0.00, 0.20, -0.30, 0.20]], dtype=torch.float64),
    )
    return damping, frequency, weight


def modes_figure() -> Figure:
    """One mode, a sum of modes sampled on two grids, and both directions."""
    damping, frequency, weight = some_modes()
    fine = torch.linspace(0, 1, 601, dtype=torch.float64)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.2))
    for n, colour in enumerate(COLOURS[:4]):
        unit = ComplexPair(torch.full((1, 1), 0.5, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
        wave = continuous_kernel(damping[:, n : n + 1], frequency[:, n : n + 1], unit, positions=fine)[0]
        name = f"damping {damping[0, n]:g}, frequency {frequency[0, n]:g}"
        left.plot(fine, wave, color=colour, label=name, lw=1.5)
    left.set(title="Each mode is a damped wave", xlabel="distance x", ylabel="Re exp(λx)", ylim=(-1.05, 2.1))
    left.legend(fontsize=8, loc="upper right")

    whole = continuous_kernel(damping, frequency, weight, positions=fine)[0]
    middle.plot(fine, whole, color=BLUE)
    for points, marker, colour, size in ((16, "o", ORANGE, 7), (64, ".", "black", 5)):
        places = torch.arange(points, dtype=torch.float64) / points
        samples = continuous_kernel(damping, frequency, weight, positions=places)[0]
        middle.plot(places, samples, marker, color=colour, ms=size, label=f"grid of {points}", zorder=3)
    middle.set(title="Their weighted sum is the kernel", xlabel="distance x", ylabel="κ(x)")
    middle.legend()

    other = ComplexPair(weight.re.flip(1), weight.im)
    mirrored = continuous_kernel(damping * 1.5, frequency, other, positions=fine)[0]
    right.plot(fine, whole, color=BLUE, label="forward scan: what lies behind")
    right.plot(-fine, mirrored, color=ORANGE, label="backward scan: what lies ahead")
    right.axvline(0, color="#999", lw=0.8)
    top = max(whole.max().item(), mirrored.max().item())
    right.set(title="Two scans see both sides", xlabel="x − y", ylabel="κ(x − y)", ylim=(None, 1.75 * top))
    right.legend(fontsize=8, loc="upper center")
    return figure


def damping_figure() -> Figure:
    """The same waves under growing damping: from a Fourier series to a stencil."""
    harmonics = torch.arange(8, dtype=torch.float64)[None]
    weight = ComplexPair(torch.full((1, 8), 1 / 16, dtype=torch.float64), torch.zeros(1, 8, dtype=torch.float64))
    distance = torch.linspace(-1, 1, 801, dtype=torch.float64)
    figure, panels = plt.subplots(1, 4, figsize=(11, 2.7), sharey=True)
    captions = ("a Fourier layer: global", "fading", "local", "a stencil, as in a CNN")
    for panel, strength, caption in zip(panels, (0.0, 2.0, 10.0, 50.0), captions, strict=True):
        rate = torch.full((1, 8), strength, dtype=torch.float64)
        kernel = continuous_kernel(rate, 2 * torch.pi * harmonics, weight, positions=distance.abs())[0]
        panel.fill_between(distance, kernel, color=BLUE, alpha=0.25, lw=0)
        panel.plot(distance, kernel, color=BLUE, lw=1.4)
        panel.set(title=f"damping {strength:g}\n{caption}", xlabel="x − y")
    panels[0].set_ylabel("κ(x − y)")
    return figure


def recovery_figure() -> Figure:
    """A Fourier layer and its state-space copy; then the error of copies with fewer modes."""
    torch.manual_seed(1)
    points, channels = 64, 8
    layer = SpectralConvolution(channels, n_modes=12, axes=1).double()
    nn.init.normal_(layer.weight)
    with torch.no_grad():  # spectra of smooth kernels fade, and so do singular values
        fade = torch.linspace(1, 0.1, 12, dtype=torch.float64)[None, :, None, None, None]
        left_basis, values, right_basis = torch.linalg.svd(torch.view_as_complex(layer.weight))
        values *= 0.6 ** torch.arange(channels)
        layer.weight.copy_(torch.view_as_real((left_basis * values[..., None, :]) @ right_basis) * fade)
    impulse = torch.zeros(channels, points, 1, dtype=torch.float64)
    impulse[0, 0] = 1
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.5), width_ratios=(1.2, 1))
    position = torch.arange(points) / points
    with torch.no_grad():
        truth = layer(impulse)
        copy = recover_fno(layer, points=points).layer.columns(impulse)
        difference = (copy - truth).abs().max().item()
        for channel, colour in enumerate((BLUE, ORANGE, GREEN)):
            name = "Fourier layer, three of its kernels" if channel == 0 else None
            left.plot(position, truth[channel, :, 0], color=colour, label=name)
        left.plot(position, copy[:3, :, 0].T, "k.", ms=3.5, label=["state-space layer", None, None])
    left.set(title=f"Equal to {difference:.0e} in float64", xlabel="x", ylabel="kernel")
    left.set_ylim(top=1.5 * truth[:3].max().item())
    left.legend(loc="upper right")

    ranks = range(1, channels + 1)
    recoveries = [recover_fno(layer, points=points, rank=rank) for rank in ranks]
    noise = torch.randn(channels, points, 200, dtype=torch.float64)
    with torch.no_grad():
        measured = [
            ((recovery.layer.columns(noise) - layer(noise)).norm() / layer(noise).norm()).item()
            for recovery in recoveries
        ]
    promised = [recovery.relative_error for recovery in recoveries]
    largest = torch.linalg.svdvals(spectral_matrices(layer)).max().item()
    right.semilogy(ranks[:-1], [r.operator_error / largest for r in recoveries[:-1]], "s--", color="#666", ms=5)
    right.semilogy(ranks[:-1], promised[:-1], "o-", color=BLUE, ms=6)
    right.semilogy(ranks[:-1], measured[:-1], "x", color="black", ms=6, mew=1.5)
    right.legend(["worst input, promised", "white noise, promised", "white noise, measured"])
    right.set(title="Fewer modes per frequency: best low rank", xlabel="modes per frequency (full rank is 8)")
    right.set_ylabel("relative error")
    return figure


def short_kernels(depth: int, *, reach: int) -> nn.Sequential:
    """A stack of convolutions that each reach `reach` points to either side."""
    return nn.Sequential(*(nn.Conv1d(2, 2, 2 * reach + 1, padding=reach) for _ in range(depth)))


def view_figure() -> Figure:
    """Who sees what on a line."""
    torch.manual_seed(0)
    grid = (24,)
    models: dict[str, nn.Module] = {
        "SS-NO": model_config("ssno:tiny").build(),
        "FNO": model_config("fno:tiny").build(),
        "F-FNO": model_config("ffno:tiny").build(),
        "one-way SS-NO": model_config("ssno-uni:tiny", n_layers=8).build(),
        "4 short kernels": short_kernels(4, reach=2),
        "12 short kernels": short_kernels(12, reach=2),
    }
    return plot_field_of_view({name: field_of_view(model, grid) for name, model in models.items()})


def view_in_2d_figure() -> Figure:
    """Who sees what on a square."""
    torch.manual_seed(0)
    models = {
        "SS-NO, 1 block": ("ssno", 1),
        "SS-NO-FF, 1 block": ("ssno-ff", 1),
        "SS-NO-FF, 2 blocks": ("ssno-ff", 2),
        "one-way, 8 blocks": ("ssno-uni", 8),
    }
    views = {
        label: field_of_view(model_config(f"{name}:tiny", n_dims=2, n_layers=layers).build(), (15, 15))
        for label, (name, layers) in models.items()
    }
    return plot_field_of_view(views)


def depth_figure() -> Figure:
    """Share of pairs reached over depth, for short kernels of three lengths and a one-way scan."""
    torch.manual_seed(0)
    points, depths = 32, range(1, 34)
    figure, panel = plt.subplots(figsize=(6.4, 3.6))
    for reach, colour in zip((1, 2, 4), (BLUE, GREEN, PINK), strict=True):
        shares = [100 * field_of_view(short_kernels(depth, reach=reach), (points,)).fraction for depth in depths]
        sharp = -(-(points - 1) // reach)
        panel.plot(depths, shares, color=colour, label=f"{2 * reach + 1} taps: full view from {sharp} layers on")
        panel.plot(sharp, 100, "o", color=colour, ms=8, mec="white", zorder=3)
    one_way = [
        100 * field_of_view(model_config("ssno-uni:tiny", n_layers=depth).build(), (points,)).fraction
        for depth in depths
    ]
    panel.plot(depths, one_way, "--", color=ORANGE, label="one-way scan: never")
    panel.set(xlabel="number of layers", ylabel="pairs of points connected, %", ylim=(0, 104), xlim=(0.5, 33))
    panel.set_title(f"Short kernels see everything once (layers) × (reach) ≥ {points - 1}")
    panel.legend(loc="lower right")
    return figure


def long_axes_figure() -> Figure:
    """Time and memory of the chunked scan and of the FFT, from the rows of benchmarks/long_axes.py."""
    with (ROOT / "benchmarks" / "long_axes.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["case"].endswith("-b1-n64-zero-training")]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4))
    for method, colour, name in (("fft", ORANGE, "FFT"), ("chunked", BLUE, "chunked scan")):
        mine = [row for row in rows if row["method"] == method]
        length = [int(row["case"].split("-")[0][1:]) for row in mine]
        left.loglog(length, [float(row["median_ms"]) for row in mine], "o-", color=colour, label=name)
        right.loglog(length, [float(row["saved_mb"]) for row in mine], "o-", color=colour, label=name)
    left.set(title="Forward and backward, one line of 64 channels", ylabel="milliseconds")
    right.set(title="Kept for the backward pass", ylabel="megabytes")
    for panel in (left, right):
        panel.set_xscale("log", base=2)
        panel.set_xlabel("points on the axis")
        panel.legend()
    return figure


def universality_figure() -> Figure:
    """The picture of the example, trained a little longer."""
    spec = importlib.util.spec_from_file_location("universality", ROOT / "examples" / "universality.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules["universality"] = example
    spec.loader.exec_module(example)
    return example.draw(example.experiment(widths=(2, 4, 8, 16), steps=800))


FIGURES: dict[str, Callable[[], Figure]] = {
    "modes": modes_figure,
    "damping": damping_figure,
    "fno-recovery": recovery_figure,
    "field-of-view": view_figure,
    "field-of-view-2d": view_in_2d_figure,
    "sharp-depth": depth_figure,
    "long-axes": long_axes_figure,
    "universality": universality_figure,
}


def main(names: tuple[str, ...] = tuple(FIGURES), folder: Path = IMAGES) -> None:
    """Draw the named pictures, all by default, into `folder`."""
    with look():
        for name in names:
            figure = FIGURES[name]()
            print(save(figure, folder / f"theory-{name}.png"))
            plt.close(figure)


if __name__ == "__main__":
    torch.set_num_threads(1)
    tyro.cli(main)
