"""The steepening term -(u^2 / 2)_x of Burgers and Kuramoto-Sivashinsky, and a compiled ETDRK4 step for them.

    N_k = factor_k S_k(u),    S = transform of u^2,    factor_k = -i k / 2 / points

PyTorch makes 8 transforms and 10 passes over the modes per step, each for the whole batch. `steepening.c` takes eight
trajectories at a time through a whole step while they stay in cache, one per SIMD lane: about 4 times as fast. It
serves lines whose number of points is a power of two, with a real linear symbol; everything else, and machines without
a compiler, take the PyTorch step of `ssno.pde.schemes.integrators`. The two agree to rounding.
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.native.build import library
from ssno.pde.grids import SpectralGrid

LANES, ALIGNMENT = 8, 64
SOURCE = Path(__file__).with_name("steepening.c")
Engine = Literal["native", "torch"]


class Steepening:
    """-(u^2 / 2)_x = factor * squared on a dealiased line, two transforms per call."""

    def __init__(self, grid: SpectralGrid):
        if len(grid.axes) != 1 or not grid.dealias:
            raise ValueError(
                f"This equation needs a dealiased grid with 1 axis, got {len(grid.axes)} axes and "
                f"`dealias={grid.dealias}`. Build it with SpectralGrid([axis], dealias=True)."
            )
        self.grid = grid
        self.factor = -0.5 / grid.shape[0] * grid.gradient()[0]

    def squared(self, modes: Complex[Tensor, "b c k"], time: float) -> Complex[Tensor, "b c k"]:
        """The unscaled transform of u^2."""
        field = self.grid.to_field(modes)
        return self.grid.to_modes(field.mul_(field), scaled=False)

    def compiled_step(
        self, factors: Sequence[Float[Tensor, " k"]], weights: Sequence[Float[Tensor, " k"]]
    ) -> Callable[[Tensor, float], Tensor]:
        """A compiled ETDRK4 step from e^z, e^{z/2} and the six weights of `ssno.pde.schemes.integrators.etdrk4`."""
        turn = self.factor.imag / 2  # the compiled transform is twice the one that the factor belongs to
        return native_step(self.grid, [*factors, *(weight * turn for weight in weights)])


def engine(points: int) -> Engine:
    """What computes the steps on a line of so many points on this machine; decides the last bits of a solution."""
    fits = points >= 8 and points & (points - 1) == 0
    return "native" if fits and library(SOURCE) is not None else "torch"


def native_step(grid: SpectralGrid, weights: Sequence[Float[Tensor, " k"]]) -> Callable[[Tensor, float], Tensor]:
    """The compiled ETDRK4 step, given the eight rows of weights that `etdrk4_step` in steepening.c asks for."""
    compiled = library(SOURCE)
    assert compiled is not None, "ask engine() first"
    points, kept = grid.shape[0], grid.modes_shape[0]
    table = torch.stack(list(weights)).contiguous()
    angle = 2 * torch.pi / points * torch.arange(points, dtype=torch.float64)
    turns = torch.polar(torch.ones_like(angle), angle)
    room = torch.empty(16 * LANES * (5 * kept + points // 2) + ALIGNMENT, dtype=torch.uint8)
    room = room[-room.data_ptr() % ALIGNMENT :]
    size, address = ctypes.c_size_t, ctypes.c_void_p
    compiled.etdrk4_step.argtypes = [address, address, size, size, size, address, address, address]
    compiled.etdrk4_step.restype = None

    def step(modes: Complex[Tensor, "b c k"], time: float) -> Complex[Tensor, "b c k"]:
        modes = modes.contiguous()
        result = torch.empty_like(modes)
        compiled.etdrk4_step(
            modes.data_ptr(),
            result.data_ptr(),
            modes.numel() // kept,
            points,
            kept,
            table.data_ptr(),
            turns.data_ptr(),
            room.data_ptr(),
        )
        return result

    return step
