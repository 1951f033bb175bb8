"""Errors of forecasts whose truth is known: relative norms, conserved quantities, spectra, and how long they are good.

    rel_l2             per trajectory  |prediction - truth| / |truth|  over all frames, fields and points; then the mean
    rel_l2_step        the same norm frame by frame
    nrmse, vrmse       root mean square error over the rms (PDEBench) or the standard deviation (The Well) of the truth
    mean_drift, energy_drift     of the quantities that many equations conserve or control
    spectral_error     relative error of bands of wavenumbers
    correlation_time   first time at which the Pearson correlation of forecast and truth falls under a threshold
    valid_time         first time at which the relative error of a frame exceeds a threshold

Points without data (obstacles, land) have a `mask`. They count in no mean; forecasts and truth are set to 0 there in
every norm. `area` weighs the points of a sphere.

Axes: b trajectory, t frame, c field, k context field, then the grid.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.base.checks import in_units
from ssno.base.device import device_with_float64, float64

State = Float[Tensor, "b t c *grid"]
PerFrame = Float[Tensor, "b t c"]
Mask = Bool[Tensor, "b t 1 *grid"] | None
"""True where there are no data; None if there are data everywhere."""
Area = Float[Tensor, "..."] | None
"""Weight of each point, to broadcast over the grid axes; None if all weigh the same."""

FLOOR = 1e-12
LARGE = 1e15
"""Sums of squares of larger numbers, or of numbers below its inverse, may leave the range of single precision."""
EPS = 1e-7
CORRELATED = 0.8
VALID = 0.5


def apply_mask(frames: State, mask: Mask) -> State:
    """Frames that are 0 where there are no data."""
    return frames if mask is None else frames.masked_fill(mask, 0.0)


def find_mask(context: Float[Tensor, "b t k *grid"], channel: int | None) -> Mask:
    """The mask in context field number `channel`; noise or a coarser grid may have blurred it."""
    return None if channel is None else context[:, :, channel : channel + 1] > 0.5


def mean_over_points(values: State, mask: Mask = None, *, less: int = 0) -> PerFrame:
    """The mean over the points of each frame and field; `less` is taken off their number, 1 for a variance."""
    if mask is None and not less:
        return values.flatten(3).mean(-1)
    count = values[0, 0, 0].numel() if mask is None else (~mask).flatten(3).sum(-1)
    return apply_mask(values, mask).flatten(3).sum(-1) / (count - less)


def centred(values: State, mask: Mask = None) -> State:
    """Each frame and field less its mean; 0 at masked points."""
    mean = mean_over_points(values, mask)
    return apply_mask(values - mean.view(*mean.shape, *(1,) * (values.ndim - 3)), mask)


# Relative l2 errors. Both are independent of the batch size. A truth of exactly zero has no relative error; the tiny
# floor keeps the result finite there and changes nothing elsewhere. Squares of fields in physical units may exceed
# single precision: `with_room` comes first.


def trajectory_errors(prediction: State, truth: State, *, area: Area = None) -> Float[Tensor, " b"]:
    """|prediction - truth| / |truth| of each trajectory, over all its frames, fields and points."""
    difference = torch.linalg.vector_norm(weighted(prediction - truth, area).flatten(1), dim=1)
    return over(difference, torch.linalg.vector_norm(weighted(truth, area).flatten(1), dim=1))


def frame_errors(
    prediction: State, truth: State, *, area: Area = None, over_pieces: Callable[[Tensor], Tensor] | None = None
) -> Float[Tensor, "b t"]:
    """|prediction - truth| / |truth| of each frame, over its fields and points.

    Where these are pieces of fields, `over_pieces` makes norms of whole fields of theirs.
    """
    norms = [torch.linalg.vector_norm(weighted(f, area).flatten(2), dim=2) for f in (prediction - truth, truth)]
    difference, scale = norms if over_pieces is None else over_pieces(torch.stack(norms))
    return over(difference, scale)


def over(difference: Float[Tensor, "*shape"], scale: Float[Tensor, "..."]) -> Float[Tensor, "*shape"]:
    """A difference over the scale of the truth, where that has one."""
    return difference / torch.where(scale > 0, scale, FLOOR)


def with_room(prediction: State, truth: State) -> tuple[State, State]:
    """Both as they are, or in double precision if the truth is so large or small that its squares need it."""
    largest = truth.abs().max().item() if truth.numel() else 1.0
    return (prediction, truth) if 1 / LARGE < largest < LARGE else (float64(prediction), float64(truth))


def weighted(field: Float[Tensor, "*shape"], area: Area) -> Float[Tensor, "*shape"]:
    """A field whose plain sum of squares is the sum weighted by area."""
    return field if area is None else field * area.sqrt().to(field)


# Errors of single frames and fields.
#
#     nRMSE = sqrt( <(prediction - truth)^2> / <truth^2> )                      as PDEBench and APEBench report it
#     VRMSE = sqrt( <(prediction - truth)^2> / (var(truth) + 1e-7) )            as The Well reports it
#     mean    m = <u>            drift  |m(prediction) - m(truth)| / rms(truth)
#     energy  E = <u^2> / 2      drift  |E(prediction) - E(truth)| / <E(truth)>
#
# < > is the mean over the points of the grid, var the variance over them with N - 1. A forecast of the spatial mean has
# VRMSE 1, so VRMSE does not reward a large constant background. In drifts, rms and mean energy of the truth run over
# all frames of the trajectory, so that a mean of zero is no difficulty; a forecast that loses energy exactly as the
# truth does has no drift.


def nrmse(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """Root mean square error over root mean square of the truth, of each frame and field."""
    return over(rmse(prediction, truth, mask=mask), mean_over_points(truth.square(), mask).sqrt())


def vrmse(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """Root mean square error over the spatial standard deviation of the truth, of each frame and field."""
    variance = mean_over_points(centred(truth, mask).square(), mask, less=1)
    return rmse(prediction, truth, mask=mask) / (variance + EPS).sqrt()


def rmse(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """Root mean square error over the points of each frame and field, in the units of the field."""
    return torch.sqrt(mean_over_points((prediction - truth).square(), mask))


def mean_drift(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """How far the mean over the grid is off, of each frame and field, relative to the rms of the truth."""
    difference = mean_over_points(float64(prediction) - float64(truth), mask).abs()
    return over(difference, (2 * energy(truth, mask)).mean(1, keepdim=True).sqrt())


def energy_drift(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """How far the energy is off, of each frame and field, relative to the truth's mean energy over time."""
    true = energy(truth, mask)
    return over((energy(prediction, mask) - true).abs(), true.mean(1, keepdim=True))


def energy(field: State, mask: Mask = None) -> PerFrame:
    """Half the mean square over the grid, of each frame and field."""
    return mean_over_points(float64(field).square(), mask) / 2


# How long a forecast is good. A frame that is not finite has failed. A forecast that never fails has time infinity
# here; means cut it off at the forecast's end.


def correlation_time(
    prediction: State, truth: State, times: Float[Tensor, " t"], *, mask: Mask = None, threshold: float = CORRELATED
) -> Float[Tensor, " b"]:
    """First of `times` at which the correlation, averaged over fields, is under the threshold; infinity if never."""
    if not -1 <= threshold <= 1:
        raise ValueError(f"`threshold` of a correlation must be between -1 and 1, got {threshold}.")
    return first_time(~(pearson(prediction, truth, mask=mask).mean(2) >= threshold), times)


def valid_time(
    prediction: State, truth: State, times: Float[Tensor, " t"], *, threshold: float = VALID
) -> Float[Tensor, " b"]:
    """First of `times` at which the relative error of a frame exceeds the threshold; infinity if never."""
    if not threshold > 0:
        raise ValueError(f"`threshold` of a relative error must be positive, got {threshold}.")
    return first_time(~(frame_errors(prediction, truth) <= threshold), times)


def pearson(prediction: State, truth: State, *, mask: Mask = None) -> PerFrame:
    """Correlation over the points of each frame and field. Two constant fields are fully correlated."""
    p, u = (centred(float64(field), mask).flatten(3) for field in (prediction, truth))
    p_norm, u_norm = torch.linalg.vector_norm(p, dim=-1), torch.linalg.vector_norm(u, dim=-1)
    both_constant = (p_norm == 0) & (u_norm == 0)
    product = torch.where(p_norm * u_norm == 0, 1.0, p_norm * u_norm)  # a constant correlates with nothing: 0 / 1
    return torch.where(both_constant, 1.0, (p * u).sum(-1) / product)


def first_time(failed: Bool[Tensor, "b t"], times: Float[Tensor, " t"]) -> Float[Tensor, " b"]:
    """The time of the first failed frame of each trajectory; infinity if none failed."""
    failed = failed.to(device_with_float64(failed.device))
    return torch.where(failed, times.to(failed.device), torch.inf).amin(1)


# Errors by scale: the error of a band of wavenumbers relative to what the truth has in that band.
#
#     error(band) = sqrt( sum |p_k - u_k|^2 / sum |u_k|^2 ),   sums over wavenumbers k of the band, frames and fields,
#
# with p_k, u_k the Fourier coefficients of prediction and truth. Wavenumbers are isotropic, |k|^2 = kx^2 + ky^2 + kz^2,
# as fractions of the smallest Nyquist wavenumber of the axes. Higher modes (the corners of a square) count to the band
# that reaches to infinity. By default the range is cut into thirds; k = 0, the mean, is low. One band over everything
# gives `rel_l2` (Parseval). A band in which the truth has less than 1e-6 of its norm has rounding errors only; it is
# divided by that instead. Axes should be periodic: a jump between the ends of an axis has a spectrum of its own.

Band = tuple[float | int, float | int]
THIRDS: Mapping[str, Band] = {"low": (0, 1 / 3), "mid": (1 / 3, 2 / 3), "high": (2 / 3, math.inf)}
NEGLIGIBLE = 1e-6


def spectral_errors(
    prediction: State, truth: State, *, bands: Mapping[str, Band] = THIRDS, spacing: Sequence[float | int] | None = None
) -> dict[str, Float[Tensor, " b"]]:
    """The relative error of each trajectory in each band [lower, upper), as fractions of the Nyquist wavenumber.

    `spacing` is the distance between points along each axis; without it the axes count as equally fine.
    """
    for name, (lower, upper) in bands.items():
        if not 0 <= lower < upper:
            raise ValueError(f"Band {name!r} must be (lower, upper) with 0 <= lower < upper, got {(lower, upper)}.")
    grid, dims = truth.shape[3:], tuple(range(3, truth.ndim))
    spacing = (1.0,) * len(grid) if spacing is None else spacing
    _check_spacing(spacing, grid)
    device = device_with_float64(truth.device)
    fraction = wavenumbers(grid, spacing, unit=0.5 / max(spacing), device=device)
    weight = half_spectrum_weights(grid[-1], device=device)

    def power(field: Tensor) -> Tensor:  # b *modes, summed over frames and fields
        return torch.fft.rfftn(float64(field), dim=dims).abs().square().sum((1, 2)) * weight

    wrong, true = power(prediction - truth), power(truth)
    norm = true.flatten(1).sum(1).sqrt()
    errors = {}
    for name, (lower, upper) in bands.items():
        inside = (fraction >= lower) & (fraction < upper)
        scale = true[:, inside].sum(1).sqrt().maximum(NEGLIGIBLE * norm)
        errors[name] = over(wrong[:, inside].sum(1).sqrt(), scale)
    return errors


def energy_spectrum(
    fields: State, *, spacing: Sequence[float | int]
) -> tuple[Float[Tensor, " s"], Float[Tensor, "b t c s"]]:
    """Wavenumbers (radians per length) of the shells up to the smallest Nyquist wavenumber, and their energies.

    E(k) = sum over modes with |k| in the shell around k of  |u_k|^2 / N^2,  N number of grid points, so that the sum
    over all shells is the mean square of the field (Parseval). Shells are as wide as the smallest wavenumber of the
    axes, 2 pi / length; the first has the mean. Axes should be periodic.
    """
    grid, dims, fields = fields.shape[3:], tuple(range(3, fields.ndim)), float64(fields)
    _check_spacing(spacing, grid)
    dtype, device = fields.dtype, fields.device
    longest = max(points * step for points, step in zip(grid, spacing, strict=True))
    shell = wavenumbers(grid, spacing, unit=1 / longest, device=device).round().long().flatten()
    power = torch.fft.rfftn(fields, dim=dims).abs().square() * half_spectrum_weights(grid[-1], device=device)
    energy = torch.zeros(*fields.shape[:3], int(shell.max()) + 1, dtype=dtype, device=device)
    energy.index_add_(3, shell, power.flatten(3) / math.prod(grid) ** 2)
    shells = int(in_units(0.5 / max(spacing), 1 / longest)) + 1
    return 2 * math.pi / longest * torch.arange(shells, dtype=dtype, device=device), energy[..., :shells]


def wavenumbers(
    grid: Sequence[int], spacing: Sequence[float | int], *, unit: float, device: torch.device | None = None
) -> Float[Tensor, "*modes"]:
    """|k| of every mode of `rfftn`, in multiples of `unit` cycles per length."""
    square = torch.zeros((), dtype=torch.float64, device=device)
    for axis, (points, step) in enumerate(zip(grid, spacing, strict=True)):
        frequency = torch.fft.rfftfreq if axis == len(grid) - 1 else torch.fft.fftfreq
        along = frequency(points, d=float(step), dtype=torch.float64, device=device) / unit
        square = square[..., None] + along.square()
    return square.sqrt()


def half_spectrum_weights(points: int, *, device: torch.device | None = None) -> Float[Tensor, " l"]:
    """How many modes of the full spectrum each mode of the last axis of `rfftn` stands for."""
    weight = torch.full((points // 2 + 1,), 2.0, dtype=torch.float64, device=device)
    weight[0] = 1
    if points % 2 == 0:
        weight[-1] = 1
    return weight


def _check_spacing(spacing: Sequence[float | int], grid: Sequence[int]) -> None:
    if len(spacing) != len(grid):
        raise ValueError(f"`spacing` must have one number per axis of the grid {tuple(grid)}, got {tuple(spacing)}.")
