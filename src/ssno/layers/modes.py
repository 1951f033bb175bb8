"""Learnable state-space modes: one diagonal system per channel.

    kernel(x) = 2 Re sum_n C_n B_n exp(rate_n x),    rate_n = -damping_n - i frequency_n

Damping sets how local the kernel is, frequency which waves it resonates with. Each may be learnable or fixed, and
damping may be absent. That is a matter of values: damping is exp(log_damping), fixed numbers are buffers instead of
parameters, and an absent damping is a fixed log_damping of minus infinity.

Axes: h channel, n state mode, l grid point.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of, require_pairs
from ssno.native.operations import Systems
from ssno.ssm.discretise import DISCRETISATIONS, ComplexPair, DiscreteModes, Discretisation, as_pair, complex_mul
from ssno.ssm.initialise import INITIAL_DAMPING, INITIALISATIONS, Initialisation, log_steps
from ssno.ssm.kernel import (
    INFINITE_IMAGES,
    Boundary,
    band_kernel,
    continuous_kernel,
    kernel,
    precise,
    sampled_kernels,
    steady_response,
)
from ssno.ssm.resolution import Transfer

Damping = Literal["learnable", "fixed", "absent"]
"""What happens to the damping of the modes: learned, as it starts, or none."""
Frequency = Literal["learnable", "fixed"]
"""What happens to the frequencies of the modes: learned, or as they start."""
NORM_POINTS = 128
"""Points over which a starting norm is taken: more than the decay lengths that start with it."""


@dataclass(frozen=True)
class ModeOptions:
    """How a set of modes starts and what of it is learned; `ModeOptions()` is the paper's start, as models have it.

    Layers that are given no options take `fast_start` instead. The four settings of the paper's ablation are All (the
    default), Damping only (`frequency="fixed"`), Frequency only (`damping="absent"`) and Fixed (both "fixed").
    """

    damping: Damping = "learnable"
    """Decay rate of the modes: how local the kernel is."""
    frequency: Frequency = "learnable"
    """Oscillation rate of the modes: which waves the kernel picks up."""
    initialisation: Initialisation = "legs"
    """Starting frequencies: evenly spaced (lin), inverse law (inv), HiPPO-LegS (legs), or those of the grid (grid)."""
    discretisation: Discretisation = "zoh"
    """From continuous mode to grid: zero-order hold, bilinear, or exact in Fourier space (periodic axes)."""
    resolution_transfer: Transfer = "spectrum"
    """On grids other than the learned one: the same transfer function up to its Nyquist frequency (spectrum), or the
    continuous kernel sampled again (resample)."""
    dt_min: float = 1e-3
    """Smallest step at the start; steps are drawn log-uniform between `dt_min` and `dt_max`, one per channel."""
    dt_max: float = 1e-1
    """The largest of these steps."""
    kernel_init_norm: float | None = None
    """Norm of every channel's kernel at the start, over its points; None leaves weights as they are drawn."""
    selective: bool = False
    """Steps and weights follow the input at every point (`ssno.layers.selective`)."""

    def __post_init__(self) -> None:
        for name, allowed in (
            ("damping", get_args(Damping)),
            ("frequency", get_args(Frequency)),
            ("initialisation", get_args(Initialisation)),
            ("discretisation", get_args(Discretisation)),
            ("resolution_transfer", get_args(Transfer)),
        ):
            require_one_of(name, getattr(self, name), allowed)
        if self.kernel_init_norm is not None and not 0 < self.kernel_init_norm < math.inf:
            raise ValueError(f"`kernel_init_norm` must be a positive number or None, got {self.kernel_init_norm}.")
        if not 0 < self.dt_min <= self.dt_max:
            raise ValueError(
                f"`dt_min` and `dt_max` must satisfy 0 < dt_min <= dt_max, got {self.dt_min} and {self.dt_max}."
            )


STEPS, LONG_STEPS = (0.3, 3.0), (0.03, 1.0)
"""Between which the steps of a fast start lie: on one axis, between walls and on the sphere, where kernels a few points
long learn fastest; and in periodic boxes, where flows want longer ones (results/starting-steps.json)."""


def fast_start(options: ModeOptions | None = None, *, axes: int = 1, periodic: bool = False) -> ModeOptions:
    """The start that learns at once: of the recipe `fast`, and of layers that are given no options.

    Modes have the waves and decay lengths of a grid. Kernels have norm 2, and less where several axes are scanned in a
    row: as they are drawn their norm is about five, and a model in 2D starts with answers of several hundred.
    `periodic`: whether all of the `axes` are. Other options are unchanged.
    """
    smallest, largest = LONG_STEPS if axes > 1 and periodic else STEPS
    return replace(
        options or ModeOptions(),
        initialisation="grid",
        dt_min=smallest,
        dt_max=largest,
        kernel_init_norm=2.0 / axes,
    )


def require_fading_images(boundary: Boundary, damping: Damping) -> None:
    """Refuse a boundary that sums infinitely many images, or points beyond it, of modes that never fade."""
    if damping == "absent" and boundary in (*INFINITE_IMAGES, "learned"):
        what = "points" if boundary == "learned" else "images"
        raise ValueError(
            f"`boundary={boundary!r}` sums infinitely many {what}, which needs damping > 0, but damping='absent'. "
            "Use boundary='periodic-truncated' or 'zero', or damping='learnable' or 'fixed'."
        )


def require_circle(boundary: Boundary, discretisation: Discretisation) -> None:
    """Refuse the exact spectrum where an axis has no waves of its own."""
    if discretisation == "exact" and boundary not in INFINITE_IMAGES:
        raise ValueError(
            f"`discretisation='exact'` requires a periodic axis, got boundary={boundary!r}. "
            f"Use a boundary among {', '.join(INFINITE_IMAGES)}, or discretisation='zoh' or 'bilinear'."
        )


class Modes(nn.Module):
    """The parameters of `channels` independent systems with `d_state` states each (in conjugate pairs)."""

    log_damping: Tensor
    frequency: Tensor

    def __init__(self, channels: int, *, d_state: int, options: ModeOptions | None = None):
        super().__init__()
        require_pairs("d_state", d_state)
        options = options or fast_start()
        pairs = d_state // 2
        self.discretisation = options.discretisation
        starting_log_damping = -math.inf if options.damping == "absent" else math.log(INITIAL_DAMPING)
        frequency = torch.empty(channels, pairs).copy_(INITIALISATIONS[options.initialisation](d_state))
        self._register("log_damping", torch.full((channels, pairs), starting_log_damping), options.damping)
        self._register("frequency", frequency, options.frequency)
        steps = log_steps(channels, smallest=options.dt_min, largest=options.dt_max)
        self.log_step = nn.Parameter(steps.to(torch.get_default_dtype()))
        self.input_weight = nn.Parameter(torch.tensor([1.0, 0.0]).expand(channels, pairs, 2).clone())
        self.output_weight = nn.Parameter(torch.randn(channels, pairs, 2) * math.sqrt(0.5))
        if options.kernel_init_norm is not None:
            self._normalise(options.kernel_init_norm)

    @torch.no_grad()
    def _normalise(self, norm: float) -> None:
        """Scale what each channel reads out, so that its kernel has this norm."""
        boundary: Boundary = "periodic" if self.discretisation == "exact" else "zero"
        kernel = self.kernel(NORM_POINTS, boundary=boundary)
        self.output_weight.mul_((norm / kernel.norm(dim=1))[:, None, None])

    def _register(self, name: str, value: Tensor, role: str) -> None:
        if role == "learnable":
            setattr(self, name, nn.Parameter(value))
        else:
            self.register_buffer(name, value)

    def state_space_parameters(self) -> list[nn.Parameter]:
        """Parameters of the dynamics, which optimisers treat apart: no weight decay, their own rate."""
        return [p for name, p in self.named_parameters() if name != "output_weight"]

    def damping(self) -> Float[Tensor, "h n"]:
        return torch.exp(self.log_damping)

    def weight(self) -> ComplexPair:
        """Weight of each mode in the kernel: C B."""
        return complex_mul(as_pair(self.input_weight), as_pair(self.output_weight))

    def discretised(self, spacing: float = 1.0) -> DiscreteModes:
        """The modes on a grid whose spacing is `spacing` times the reference one."""
        if self.discretisation == "exact":
            raise ValueError(
                "`discretisation='exact'` has no recurrent form; use 'zoh' or 'bilinear' for the chunked scan."
            )
        step = torch.exp(self.log_step) * spacing
        return DISCRETISATIONS[self.discretisation](self.damping(), self.frequency, step)

    def kernel(self, length: int, *, spacing: float = 1.0, boundary: Boundary = "zero") -> Float[Tensor, "h l"]:
        """The convolution kernel on `length` points, input gain included."""
        return kernels_of([self], length, spacing=spacing, boundary=boundary)[0]

    def steady_response(self, spacing: float = 1.0) -> Float[Tensor, " h"]:
        """The answer to a constant input of one on a line without ends: the sum of the kernel."""
        modes = self.discretised(spacing)
        return steady_response(modes, complex_mul(self.weight(), modes.gain))

    def impulse_response(self, positions: Float[Tensor, " l"]) -> Float[Tensor, "h l"]:
        """The continuous kernel at distances `positions`, in units of the reference spacing. For looking at.

        Unlike `kernel`, this does not depend on any grid: two grids see the same function at shared points.
        """
        step = torch.exp(self.log_step)[:, None]
        damping, frequency = self.damping() * step, self.frequency * step
        return continuous_kernel(damping, frequency, self.weight(), positions=positions)


SYSTEM = ("log_damping", "frequency", "log_step", "input_weight", "output_weight")
"""The parameters of `Modes` that make a kernel, in the order of `Systems`."""


def kernels_of(
    systems: Sequence[Modes], length: int, *, spacing: float = 1.0, boundary: Boundary = "zero"
) -> Float[Tensor, "s h l"]:
    """The kernels of several systems of one kind, input gain included, in one go: channels are simply more rows."""
    parameters = Systems(*(joined([getattr(system, name) for system in systems]) for name in SYSTEM))
    rows = sample(parameters, systems[0].discretisation, length=length, spacing=spacing, boundary=boundary)
    return rows.unflatten(0, (len(systems), -1))


def sample(
    parameters: Systems, discretisation: Discretisation, *, length: int, spacing: float, boundary: Boundary
) -> Float[Tensor, "h l"]:
    """The kernels of these parameters, input gain included."""
    if discretisation == "zoh":
        return sampled_kernels(parameters, length=length, spacing=spacing, boundary=boundary)
    log_damping, frequency, log_step, input_weight, output_weight = precise(parameters, boundary)
    damping, step = torch.exp(log_damping), torch.exp(log_step) * spacing
    weight = complex_mul(as_pair(input_weight), as_pair(output_weight))
    if discretisation == "exact":
        require_circle(boundary, discretisation)
        apart = step[:, None]
        scaled = ComplexPair(weight.re * apart, weight.im * apart)
        rows = band_kernel(damping * apart, frequency * apart, scaled, length=length)
    else:
        modes = DISCRETISATIONS[discretisation](damping, frequency, step)
        rows = kernel(modes, complex_mul(weight, modes.gain), length=length, boundary=boundary)
    return rows.to(parameters.log_step.dtype)


def joined(parts: Sequence[Tensor]) -> Tensor:
    """One after the other along the first axis; a single one as it is."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))
