"""Periodic boxes in one, two or three dimensions, and real fields on them as Fourier coefficients.

    u(x) = sum_k u_k exp(i k . x),        k = 2 pi m / length,  m integer,        u_{-k} = conj(u_k)

Coefficients are amplitudes: they do not depend on the number of points. The last space axis holds m = 0, 1, ...,
M only (the rest follows from symmetry), the other axes m = 0, 1, ..., M, -M, ..., -1.

With `dealias=True` the 2/3 rule is built into the shape: only |m| < points / 3 is stored, so a product of two
fields taken on the grid and brought back by `to_modes` has no aliasing error. Nothing is masked, and all
arithmetic on coefficients is cheaper by (2/3)^dimensions.

Axes: b any leading axes (trajectory, channel), then the space axes.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.pde.geometry import Axis

# Requirements on the options of problems, each with one message.


def check_positive(**options: float) -> None:
    """Options that must be positive finite numbers, by name."""
    for name, value in options.items():
        if not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a positive finite number, got {value}.")


def check_at_least(least: int, **options: int) -> None:
    """Options with a smallest value, by name."""
    for name, value in options.items():
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}, got {value}.")


def check_multiple(name: str, fine: int, points: int) -> None:
    """Stored points are every n-th point of the solver's grid, so its size `name` must be a multiple of `points`."""
    if points < 1 or fine < points or fine % points:
        raise ValueError(f"`{name}` must be a positive multiple of `points`, got {fine} and {points}.")


def check_batch(parameters: Sequence[object]) -> None:
    """A batch has at least one trajectory."""
    if not parameters:
        raise ValueError("`parameters` is empty: there is no trajectory to solve.")


class SpectralGrid:
    """A periodic grid together with the Fourier modes kept on it.

    Holds scratch memory for `to_field` and `workspace`, so one grid serves one solve at a time.
    """

    def __init__(self, axes: Sequence[Axis], *, dealias: bool):
        for axis in axes:
            if not axis.periodic:
                raise ValueError(f"Axis {axis.name!r} is not periodic. Fourier modes need periodic axes.")
            if dealias and axis.points < 4:
                raise ValueError(
                    f"Axis {axis.name!r} has {axis.points} points; the 2/3 rule needs at least 4 to keep a mode."
                )
        self.axes = tuple(axes)
        self.dealias = dealias
        self.shape = tuple(axis.points for axis in self.axes)
        # 3 m < points keeps every alias of m1 + m2 outside the stored modes.
        self._highest = tuple((n - 1) // 3 if dealias else n // 2 for n in self.shape)
        # (dimension, highest mode, points) of all axes but the last, last first
        self._outer = [(i - len(axes), self._highest[i], self.shape[i]) for i in range(len(axes) - 2, -1, -1)]
        self._scratch: dict[tuple[int, ...], Tensor] = {}

    @property
    def modes_shape(self) -> tuple[int, ...]:
        """Shape of the stored coefficients."""
        full = tuple(2 * m + 1 if self.dealias else n for m, n in zip(self._highest, self.shape, strict=True))
        return (*full[:-1], self._highest[-1] + 1)

    def wavenumbers(self) -> tuple[Float[Tensor, "*modes"], ...]:
        """k along every axis, each shaped to broadcast against the stored coefficients."""
        result = []
        for i, (axis, high) in enumerate(zip(self.axes, self._highest, strict=True)):
            if i == len(self.axes) - 1:
                index = torch.arange(high + 1, dtype=torch.float64)
            elif self.dealias:
                index = torch.cat([torch.arange(high + 1), torch.arange(-high, 0)]).to(torch.float64)
            else:
                index = torch.fft.fftfreq(axis.points, d=1 / axis.points, dtype=torch.float64)
            shape = [1] * len(self.axes)
            shape[i] = -1
            result.append((index * (2 * torch.pi / axis.length)).reshape(shape))
        return tuple(result)

    def laplacian(self) -> Float[Tensor, "*modes"]:
        """Symbol of the Laplacian, -|k|^2."""
        zero = torch.zeros(self.modes_shape, dtype=torch.float64)
        return -sum((k.square() for k in self.wavenumbers()), start=zero)

    def gradient(self) -> tuple[Complex[Tensor, "*modes"], ...]:
        """Symbols i k of the first derivatives; zero at the Nyquist mode, whose derivative is not real."""
        symbols = []
        for axis, k in zip(self.axes, self.wavenumbers(), strict=True):
            nyquist = torch.pi * axis.points / axis.length
            symbols.append(1j * torch.where(k.abs() > nyquist * (1 - 1e-12), 0.0, k))
        return tuple(symbols)

    def to_modes(self, field: Float[Tensor, "*b_and_grid"], *, scaled: bool = True) -> Complex[Tensor, "*b_and_modes"]:
        """Coefficients of a field; modes that the grid does not keep are dropped.

        `scaled=False` leaves out the division by the number of points, for callers that multiply afterwards anyway.
        """
        norm = "forward" if scaled else "backward"
        if len(self.axes) == 3 and self.dealias:  # three times as fast as dropping modes axis by axis
            modes = torch.fft.rfftn(field, dim=(-3, -2, -1), norm=norm)[..., : self._highest[-1] + 1]
            for dim, high, points in self._outer[::-1]:
                modes = torch.cat((modes.narrow(dim, 0, high + 1), modes.narrow(dim, points - high, high)), dim=dim)
            return modes
        modes = torch.fft.rfft(field, dim=-1, norm=norm)[..., : self._highest[-1] + 1]
        for dim, high, points in self._outer:
            modes = torch.fft.fft(modes, dim=dim, norm=norm)
            if self.dealias:
                kept = (modes.narrow(dim, 0, high + 1), modes.narrow(dim, points - high, high))
                modes = torch.cat(kept, dim=dim)
        return modes

    def to_field(self, modes: Complex[Tensor, "*b_and_modes"]) -> Float[Tensor, "*b_and_grid"]:
        """Values on the grid, in fresh memory."""
        for dim, high, points in reversed(self._outer):
            padded = modes
            if self.dealias:
                padded = self._zeros(modes.shape, dim, points)
                padded.narrow(dim, 0, high + 1).copy_(modes.narrow(dim, 0, high + 1))
                padded.narrow(dim, points - high, high).copy_(modes.narrow(dim, high + 1, high))
            modes = torch.fft.ifft(padded, dim=dim, norm="forward")
        if self.dealias:
            padded = self._zeros(modes.shape, -1, self.shape[-1] // 2 + 1)
            if modes.data_ptr() != padded.data_ptr():
                padded[..., : modes.shape[-1]].copy_(modes)
            modes = padded
        return torch.fft.irfft(modes, n=self.shape[-1], dim=-1, norm="forward")

    def workspace(self, shape: Sequence[int]) -> Complex[Tensor, "*b_and_modes"]:
        """Memory for coefficients that `to_field` takes without copying (1D); the next `to_field` overwrites it."""
        if len(self.axes) > 1 or not self.dealias:
            return torch.empty(tuple(shape), dtype=torch.complex128)
        return self._zeros(shape, -1, self.shape[-1] // 2 + 1)[..., : shape[-1]]

    def _zeros(self, shape: Sequence[int], dim: int, size: int) -> Tensor:
        """Scratch like modes of `shape` but `size` long in `dim`: zero outside the kept modes, inside overwritten."""
        key = (dim, size, *shape)
        if key not in self._scratch:
            longer = list(shape)
            longer[dim] = size
            self._scratch[key] = torch.zeros(longer, dtype=torch.complex128)
        return self._scratch[key]
