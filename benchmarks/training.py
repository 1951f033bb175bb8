"""Entries: one training step, forward and backward, against the paper's listing and against FFNO with all modes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.engines import TRAINING, in_bf16
from benchmarks.entry import Entry, Goal, TimedCall
from benchmarks.useful import training_gflop
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.ssno import SSNO, SSNOConfig

GRIDS: Mapping[tuple[int, ...], tuple[int, int]] = {
    (32,): (32, 25),
    (64,): (32, 25),
    (128,): (32, 25),
    (64, 64): (4, 4),
}
"""Trajectories and frames per step for each grid."""
BF16_TOLERANCE = 3e-2
"""Relative error of loss and gradients: activations have 8 bits, 4e-3, and pass a dozen roundings. It is
2.6e-2 on 8 x 8 points where autocast computes, on a processor without AVX512-BF16."""


def entries() -> Iterator[Entry]:
    """Training steps on every grid, twice: against the listing, then against FFNO."""
    for grid, (batch, frames) in GRIDS.items():
        sizes = {"": f"{len(grid)}d", "n": "x".join(map(str, grid)), "b": batch, "t": frames}
        plane = len(grid) == 2
        yield Entry(
            what="training step",
            sizes=sizes,
            build=partial(against_the_listing, grid, batch=batch, frames=frames),
            reference="listing",
            goals={
                "pytorch": Goal(at_least=4.0 if plane else 2.8, fraction=0.22),
                "fused": Goal(at_least=4.2, fraction=0.4),
                "bf16": Goal(at_least=8.0 if plane else 6.5),
            },
            gflop=training_gflop(SSNOConfig(n_dims=len(grid)), grid, batch=batch, frames=frames),
            tolerance=1e-3,  # the listing's (exp(z) - 1) / z loses digits in float32; in float64 they agree to 1e-9
        )
    for grid, (batch, frames) in GRIDS.items():
        sizes = {"": f"{len(grid)}d", "n": "x".join(map(str, grid)), "b": batch, "t": frames}
        yield Entry(
            what="training step and FFNO",
            sizes=sizes,
            build=partial(against_ffno, grid, batch=batch, frames=frames),
            reference="ffno",
            goals={"pytorch": Goal(at_least=0.85), "fused": Goal(at_least=1.0 if grid == (128,) else 1.2)},
        )


def against_the_listing(grid: Sequence[int], *, batch: int, frames: int) -> dict[str, TimedCall]:
    """Every engine and the listing, with the same parameters: same gradients."""
    model, (given, target) = ssno(grid), trajectories(grid, batch=batch, frames=frames)
    listing = training_step(reference := model.reference(), reference, given, target)
    return {
        "listing": TimedCall(listing),
        **{
            name: TimedCall(run, expected=listing, tolerance=BF16_TOLERANCE if name == "bf16" else None)
            for name, run in engines(model, given, target).items()
        },
    }


def against_ffno(grid: Sequence[int], *, batch: int, frames: int) -> dict[str, TimedCall]:
    """Every engine, and FFNO of the same width and depth with all modes of the grid: another model, unchecked."""
    model, (given, target) = ssno(grid), trajectories(grid, batch=batch, frames=frames)
    torch.manual_seed(0)
    ffno = FFNOConfig(n_dims=len(grid), n_modes=max(grid)).for_grid(grid).build()
    return {
        "ffno": TimedCall(training_step(ffno, ffno, given, target)),
        **{name: TimedCall(run) for name, run in engines(model, given, target).items()},
    }


def engines(model: SSNO, given: Tensor, target: Tensor) -> dict[str, Callable[[], list[Tensor]]]:
    """The training step on every engine, and in bf16."""
    contexts = {**TRAINING, "bf16": partial(in_bf16, model)}
    return {name: training_step(model, model, given, target, inside=inside) for name, inside in contexts.items()}


def training_step(
    forward: Callable[[Tensor], Tensor],
    owner: nn.Module,
    given: Tensor,
    target: Tensor,
    *,
    inside: Callable = TRAINING["pytorch"],
) -> Callable[[], list[Tensor]]:
    """Forward, mean-square loss, backward; the answer is the loss and the gradients."""
    parameters = list(owner.parameters())

    def run() -> list[Tensor]:
        for parameter in parameters:
            parameter.grad = None
        with inside():
            loss = (forward(given) - target).square().mean()
            loss.backward()
        return [loss, *(parameter.grad for parameter in parameters if parameter.grad is not None)]

    return run


def ssno(grid: Sequence[int], **fields: int) -> SSNO:
    """The paper's model on this many axes."""
    torch.manual_seed(0)
    return SSNOConfig(n_dims=len(grid), **fields).build()


def trajectories(grid: Sequence[int], *, batch: int, frames: int) -> tuple[Tensor, Tensor]:
    """Made-up frames, and those that follow."""
    whole = torch.randn(batch, frames + 1, 1, *grid, generator=torch.Generator().manual_seed(1))
    return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()
