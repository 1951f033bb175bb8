"""Draw the pictures of docs/design/solvers.md:  python docs/scripts/solver_figures.py  (about a minute on one core)."""

from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import AsinhNorm, TwoSlopeNorm

from ssno.pde.finite_volume import BurgersLaw, FiniteVolume
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4, ifrk4
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.spectral import SpectralEquation, burgers, kuramoto_sivashinsky
from ssno.pde.stepping import integrate, march, one_thread

IMAGES = Path(__file__).parents[1] / "images"
INK, GREY = "#22272e", "#8a929c"
BLUE, ORANGE, GREEN = "#2166ac", "#d6602d", "#3a8f5c"
STYLE = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def space_time(ax: Axes, field: np.ndarray, *, length: float, time: float, norm: object) -> object:
    """u(x, t) as an image, time upwards."""
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_xlabel("x")
    return ax.imshow(
        field,
        origin="lower",
        extent=(0, length, 0, time),
        aspect="auto",
        cmap="RdBu_r",
        norm=norm,
        interpolation="bilinear",
    )


def kuramoto_sivashinsky_figure() -> None:
    """The same initial condition at three viscosities: the window of the data, and what follows it."""
    viscosities = (0.075, 0.1, 0.125)
    parameters = KuramotoSivashinsky().draw(np.random.Generator(np.random.Philox(3)))
    figure, axes = plt.subplots(2, 3, figsize=(10.2, 7.0), sharey="row", sharex=True)
    for row, end_time in zip(axes, (2.5, 12.5), strict=True):
        fields = [
            KuramotoSivashinsky(viscosity=v, frames=301, end_time=end_time).solve([parameters]).state[0, :, 0]
            for v in viscosities
        ]
        for ax, field, viscosity in zip(row, fields, viscosities, strict=True):
            norm = AsinhNorm(linear_width=2.0, vmin=-12, vmax=12)
            image = space_time(ax, field, length=64, time=end_time, norm=norm)
            rms = np.sqrt((field[[0, -1]] ** 2).mean(axis=1))
            if end_time == 2.5:
                ax.set_title(f"viscosity {viscosity}:  rms {rms[0]:.2f} → {rms[1]:.1f}")
                ax.set_xlabel("")
            else:
                ax.axhline(2.5, color=INK, lw=0.8, ls=(0, (4, 3)))
            ax.set_xticks(range(0, 65, 16))
    axes[0, 0].set_ylabel("time (stored frames)")
    axes[1, 0].set_ylabel("time (continued)")
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=40)
    bar.set_ticks([-10, -5, -2, -1, 0, 1, 2, 5, 10], labels=["−10", "−5", "−2", "−1", "0", "1", "2", "5", "10"])
    bar.ax.minorticks_off()
    bar.ax.set_title("u", fontsize=10)
    figure.savefig(IMAGES / "solver-ks.png", dpi=110)
    plt.close(figure)


def burgers_figure() -> None:
    """One trajectory of each kind of initial condition, in space-time and as profiles."""
    problem = Burgers()
    rng = np.random.Generator(np.random.Philox(12))
    pool = [problem.draw(rng) for _ in range(200)]
    kinds = {
        "ordinary": next(p for p in pool if not p["absolute"] and not p["window"] and p["wavenumber"].max() == 4),
        "absolute value": next(p for p in pool if p["absolute"] and not p["window"] and p["amplitude"].max() > 0.6),
        "window": next(p for p in pool if p["window"] and not p["absolute"]),
    }
    states = problem.solve(list(kinds.values())).state[:, :, 0]
    x = problem.axes[0].coordinates()
    figure, axes = plt.subplots(2, 3, figsize=(10.2, 6.0), sharex=True, height_ratios=(3, 2))
    for column, (kind, state) in enumerate(zip(kinds, states, strict=True)):
        limit = float(np.abs(state).max())
        norm = TwoSlopeNorm(0.0, vmin=-limit, vmax=limit)
        image = space_time(axes[0, column], state, length=1, time=1.4, norm=norm)
        axes[0, column].set_title(kind)
        axes[0, column].set_xlabel("")
        figure.colorbar(image, ax=axes[0, column], pad=0.02, aspect=24)
        for frame, colour in zip((0, 10, 35, 140), (GREY, GREEN, BLUE, ORANGE), strict=True):
            style = {"lw": 1.0, "ls": (0, (4, 2))} if frame == 0 else {"lw": 1.4}
            axes[1, column].plot(x, state[frame], color=colour, label=f"t = {problem.times[frame]:.2f}", **style)
        axes[1, column].set_xlabel("x")
        axes[1, column].set_xlim(0, 1)
    axes[0, 0].set_ylabel("time")
    axes[1, 0].set_ylabel("u")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncol=4)
    figure.savefig(IMAGES / "solver-burgers.png")
    plt.close(figure)


def shock_figure() -> None:
    """Where finite volumes and the exact solution differ: inside a shock."""
    shared = {"frames": 15, "initial_period": 1.0}
    fv = Burgers(**shared)
    exact = Burgers(solver="exact", points=1024, spectral_points=8192, step=2e-4, **shared)
    rng = np.random.Generator(np.random.Philox(12))
    parameters = next(p for p in (fv.draw(rng) for _ in range(99)) if p["wavenumber"].max() == 4)
    x = fv.axes[0].coordinates()
    cells, truth = (problem.solve([parameters]).state[0, -1, 0] for problem in (fv, exact))
    fine_problem = Burgers(solver="exact", points=8192, cells=8192, spectral_points=8192, step=2e-4, **shared)
    fine = fine_problem.solve([parameters]).state[0, -1, 0]
    fine_x = fine_problem.axes[0].coordinates()
    centre = x[np.argmin(np.diff(truth))] + 0.5 / 1024
    figure, (whole, zoom) = plt.subplots(1, 2, figsize=(9.4, 3.4), width_ratios=(3, 2))
    whole.plot(fine_x, fine, color=INK, lw=1.2, label="exact, 8192 points")
    whole.plot(x, cells, ".", color=ORANGE, ms=2.2, label="finite volumes, 1024 cells")
    whole.axvspan(centre - 0.012, centre + 0.012, color=BLUE, alpha=0.12, lw=0)
    error = np.linalg.norm(cells - truth) / np.linalg.norm(truth)
    whole.set(xlabel="x", ylabel="u", xlim=(0, 1), title=f"t = 0.14, relative difference {error:.1e}")
    whole.legend(loc="best")
    zoom.plot(fine_x, fine, color=INK, lw=1.2)
    zoom.plot(x, cells, "o", color=ORANGE, ms=4)
    zoom.set(xlabel="x", xlim=(centre - 0.012, centre + 0.012), title="the shaded shock: two to three cells")
    zoom.locator_params(axis="x", nbins=4)
    figure.savefig(IMAGES / "solver-shock.png")
    plt.close(figure)


def convergence_figure() -> None:
    """Measured order of the time integrators and of the finite-volume scheme."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.9))
    marks = {etdrk4: "o-", ifrk4: "s--"}
    for name, build, colour, length in (
        ("KS", lambda grid: kuramoto_sivashinsky(grid, viscosity=0.1), BLUE, 16.0),
        ("Burgers", lambda grid: burgers(grid, diffusivity=0.1), ORANGE, 16.0),
    ):
        grid = SpectralGrid([Axis("x", length, 96)], dealias=True)
        for integrator, mark in marks.items():
            steps = 2 ** np.arange(4, 12)
            errors = step_errors(build(grid), integrator, steps)
            label = f"{name}, {'ETDRK4' if integrator is etdrk4 else 'IF-RK4'}"
            left.loglog(1 / steps, errors, mark, color=colour, ms=4.5, lw=1.2, label=label)
    guide(left, np.array([8e-3, 6e-2]), 1e-11, order=4, offset=(10, -6))
    left.set(xlabel="time step", ylabel="relative error at t = 1", title="time integrators", ylim=(1e-14, 3e-2))
    left.legend(fontsize=8.5, loc="upper left")
    cells = 2 ** np.arange(5, 11)
    mean, largest = np.array([finite_volume_errors(int(n)) for n in cells]).T
    right.loglog(cells, mean, "o-", color=GREEN, ms=4.5, lw=1.2, label="mean over cells")
    right.loglog(cells, largest, "s--", color=GREEN, ms=4.5, lw=1.2, label="largest (at the limited extrema)")
    guide(right, np.array([64, 400]), 4e-5, order=-2, offset=(-48, -10))
    right.set(xlabel="cells", ylabel="error at t = 0.1", title="finite volumes, Burgers before the shock")
    right.set_xticks(cells, [str(n) for n in cells])
    right.minorticks_off()
    right.legend(fontsize=8.5)
    figure.savefig(IMAGES / "solver-convergence.png")
    plt.close(figure)


def step_errors(equation: SpectralEquation, integrator: Callable, steps: np.ndarray) -> list[float]:
    """Relative errors at t = 1 against ETDRK4 with four times as many steps as the most."""
    x = torch.from_numpy(equation.grid.axes[0].coordinates()) * (2 * torch.pi / equation.grid.axes[0].length)
    start = equation.grid.to_modes((torch.cos(x) + 0.6 * torch.sin(3 * x + 0.4))[None, None])

    def end(how: Callable, count: int) -> torch.Tensor:
        (state,) = integrate(how(equation, 1 / count), start, dt=1 / count, frames=1, steps_per_frame=count)
        return state

    reference = end(etdrk4, 4 * int(steps[-1]))
    return [float((end(integrator, int(n)) - reference).norm() / reference.norm()) for n in steps]


def finite_volume_errors(points: int) -> tuple[float, float]:
    """Mean and largest error against the implicit solution u = u0(x - u t) of the inviscid equation."""
    axis, time = Axis("x", 1.0, points, offset=0.5 / points), 0.1
    x = axis.coordinates()
    exact = np.zeros(points)
    for _ in range(200):
        exact = 0.3 + 0.5 * np.sin(2 * np.pi * (x - time * exact))
    initial = (0.3 + 0.5 * np.sin(2 * np.pi * x))[None, None]
    end = march(FiniteVolume(BurgersLaw(), (axis,)), initial, np.array([0, time]), lanes=1)[0, -1, 0]
    return float(np.abs(end - exact).mean()), float(np.abs(end - exact).max())


def guide(ax: Axes, x: np.ndarray, level: float, *, order: int, offset: tuple[int, int]) -> None:
    """A grey line of the given slope, its label beside the middle."""
    y = level * (x / x[0]) ** order
    ax.loglog(x, y, color=GREY, lw=1)
    middle = np.sqrt(x[0] * x[1]), np.sqrt(y[0] * y[1])
    ax.annotate(f"order {abs(order)}", middle, xytext=offset, textcoords="offset points", color=GREY, fontsize=9)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    with plt.rc_context(STYLE), one_thread():
        kuramoto_sivashinsky_figure()
        burgers_figure()
        shock_figure()
        convergence_figure()
