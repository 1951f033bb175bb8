"""Universality needs a full field of view: bidirectional scans learn a nonlocal operator, unidirectional ones cannot.

The operator multiplies each value by the integral of all values ahead of it,

    v(x) = u(x) * integral of u from x to 1,

for Gaussian inputs u with a correlation length of a quarter of the axis. A forward scan depends on u up to x only. Its
best prediction is the conditional expectation of v given that part, which is known in closed form for this u, so its
smallest possible error is known too: a lower bound for any width, depth or training. SS-NO scans in both directions and
has no such bound: its error falls with its width. Both models have the same number of parameters at every width.

Run `python examples/universality.py`; it takes about half a minute on one core and writes universality.png.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from matplotlib.figure import Figure
from torch import Tensor

from ssno.layers import MemoryOptions
from ssno.models import SSNO, count_parameters, model_config

POINTS = 32
MEMORY = math.exp(-4 / POINTS)  # correlation of neighbouring values
MODELS = {"SS-NO (both ways)": "ssno", "one-way SS-NO": "ssno-uni"}


def inputs(count: int, generator: torch.Generator) -> Tensor:
    """Random functions (count, points), Gaussian, with correlation MEMORY ** distance."""
    place = torch.arange(POINTS)
    covariance = MEMORY ** (place[:, None] - place).abs()
    return torch.randn(count, POINTS, generator=generator) @ torch.linalg.cholesky(covariance).T


def operator(u: Tensor) -> Tensor:
    """u times the integral of u over all points ahead, scaled to order one."""
    ahead = u.sum(1, keepdim=True) - u.cumsum(1)
    return 4 * u * ahead / POINTS


def best_one_way_answer(u: Tensor) -> Tensor:
    """The conditional expectation of the operator given u up to each point: the correlation decays with distance."""
    steps_ahead = torch.arange(POINTS - 1, -1, -1)
    expected = MEMORY * (1 - MEMORY**steps_ahead) / (1 - MEMORY)  # sum of MEMORY ** distance over the points ahead
    return 4 * u.square() * expected / POINTS


def relative_error(prediction: Tensor, truth: Tensor) -> float:
    return ((prediction - truth).norm() / truth.norm()).item()


def build(name: str, width: int) -> SSNO:
    """A small model without memory; the one-way kind has twice the layers and so as many parameters."""
    sizes = {
        "hidden_channels": width,
        "n_layers": 1 if name == "ssno" else 2,
        "d_state": 16,
        "head_channels": 4 * width,
    }
    return model_config(name, memory=MemoryOptions(window=0), **sizes).build()


def train(model: SSNO, *, steps: int, seed: int) -> None:
    """Adam on fresh random inputs at every step, the rate falling to zero along a cosine."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        u = inputs(64, generator)
        loss = (apply(model, u) - operator(u)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def apply(model: SSNO, u: Tensor) -> Tensor:
    """The model as a map of functions: one time step, one field."""
    return model(u[:, None, None])[:, 0, 0]


@dataclass(frozen=True)
class Measurements:
    """What was measured: errors by model and width, the floor, and one example of the widest models."""

    widths: tuple[int, ...]
    parameters: tuple[int, ...]
    errors: dict[str, list[float]]
    floor: float
    truth: Tensor
    answers: dict[str, Tensor]


def experiment(*, widths: tuple[int, ...], steps: int, seed: int = 0) -> Measurements:
    """Train both models at every width and measure them on the same unseen functions."""
    test = inputs(1000, torch.Generator().manual_seed(seed + 1))
    truth = operator(test)
    errors: dict[str, list[float]] = {name: [] for name in MODELS}
    answers, parameters = {}, []
    for width in widths:
        counts = set()
        for name, kind in MODELS.items():
            torch.manual_seed(seed)
            model = build(kind, width)
            train(model, steps=steps, seed=seed)
            with torch.no_grad():
                answers[name] = apply(model, test)
            errors[name].append(relative_error(answers[name], truth))
            counts.add(count_parameters(model))
            print(
                f"width {width:3d}  {count_parameters(model):6,d} parameters  {name:18s} error {errors[name][-1]:.4f}"
            )
        assert len(counts) == 1, "the comparison is between models of equal size"
        parameters.append(counts.pop())
    floor = relative_error(best_one_way_answer(test), truth)
    print(f"no one-way model can be better than {floor:.4f}")
    typical = (truth.square().sum(1) - truth.square().sum(1).quantile(0.8)).abs().argmin()
    chosen = {name: answer[typical] for name, answer in answers.items()}
    return Measurements(widths, tuple(parameters), errors, floor, truth[typical], chosen)


def draw(outcome: Measurements) -> Figure:
    """Errors over width on the left, one function on the right."""
    colours = dict(zip(MODELS, ("#0072B2", "#D55E00"), strict=True))
    figure = Figure(figsize=(9.5, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    for name, errors in outcome.errors.items():
        left.loglog(outcome.widths, errors, "o-", color=colours[name], label=name)
    left.axhline(outcome.floor, color="#666", ls="--", lw=1.2)
    left.text(
        outcome.widths[-1], 0.93 * outcome.floor, "best possible one-way answer", ha="right", va="top", color="#555"
    )
    left.set_xticks(outcome.widths, [f"{w}\n{p:,}" for w, p in zip(outcome.widths, outcome.parameters, strict=True)])
    left.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    left.set_ylim(0.6 * min(map(min, outcome.errors.values())), 1.3)
    left.minorticks_off()
    left.set(xlabel="width of the model, and its parameters", ylabel="relative L2 error on new functions")
    left.set_title("Wider helps only where everything is in view")
    left.legend(frameon=False, loc="lower left")
    left.grid(alpha=0.25)
    position = torch.arange(POINTS) / POINTS
    right.plot(position, outcome.truth, color="black", lw=3.2, alpha=0.35, label="truth")
    for name, answer in outcome.answers.items():
        right.plot(position, answer, color=colours[name], lw=1.6, label=name)
    right.set(xlabel="x", ylabel="v(x)")
    right.set_title(f"One new function, width {outcome.widths[-1]}")
    right.legend(frameon=False)
    right.grid(alpha=0.25)
    return figure


def main(
    widths: tuple[int, ...] = (2, 4, 8, 16), steps: int = 300, seed: int = 0, picture: Path = Path("universality.png")
) -> None:
    """Train, measure, draw.

    Args:
        widths: widths of the models to compare.
        steps: training steps per model.
        seed: of weights and data.
        picture: where the picture goes.
    """
    draw(experiment(widths=widths, steps=steps, seed=seed)).savefig(picture, dpi=150)
    print(f"wrote {picture}")


if __name__ == "__main__":
    tyro.cli(main)
