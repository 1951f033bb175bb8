"""Scores of forecasts of flows past an aerofoil: errors in the volume and on the wall, and the lift.

    volume_mse, surface_mse     mean squared error in normalised units, off the wall and on it: mean over points of a
                                case, then over fields (`/FIELD`: one field), then over cases
    lift_rel, lift_rel_median   |dC_L| / |C_L|: mean, which cases with little lift rule, and median
    lift_abs, lift_bias         mean |dC_L| and mean dC_L
    lift_rank                   rank correlation of forecast and true lift coefficients

The true C_L is that of the true pressure on the same contour, so the quadrature cancels. A field that is exactly 0 on
the whole wall of a case (no slip) is known there, and is set before anything is scored.

Axes: b case, t frame, c field, p point, m wall point.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ssno.base.device import float64
from ssno.data.normalise import AffineMap
from ssno.data.point_clouds import wall_mask
from ssno.data.trajectories import Frames

Flow = Float[Tensor, "b t c p"]
CLOUD_METRICS = (*("volume_mse", "surface_mse"), *("lift_rel", "lift_rel_median", "lift_abs", "lift_bias", "lift_rank"))

# Lift of an aerofoil from the pressure on its contour.
#
#     F = -sum over sides  (p_a + p_b)/2 (dy, -dx),      C_L = 2 (F_y cos a - F_x sin a) / U^2
#
# The contour is a closed polygon of wall points in counter-clockwise order; (dy, -dx) is a side's length times its
# outward normal, so a constant pressure gives no force, exactly. p is the pressure over density and U the inlet speed
# at angle a. The rule is of second order in the length of the sides. With `normals`, their mean over both ends replaces
# the normal of a side, as AirfRANS does.


def contour_force(
    place: Float[Tensor, "b m 2"], pressure: Float[Tensor, "b m"], *, normals: Float[Tensor, "b m 2"] | None = None
) -> Float[Tensor, "b 2"]:
    """Force of the pressure on a closed contour; `normals` are unit outward normals of the points."""
    side = place.roll(-1, dims=1) - place
    if normals is None:
        outward = torch.stack([side[..., 1], -side[..., 0]], dim=-1)
    else:
        outward = (normals + normals.roll(-1, dims=1)) / 2 * side.norm(dim=-1, keepdim=True)
    mean = (pressure + pressure.roll(-1, dims=1)) / 2
    return -(mean[..., None] * outward).sum(dim=1)


def lift_coefficient(force: Float[Tensor, "b 2"], inlet: Float[Tensor, "b 2"]) -> Float[Tensor, " b"]:
    """The part of a force across the inlet velocity, in units of U^2/2."""
    across = inlet[:, 0] * force[:, 1] - inlet[:, 1] * force[:, 0]
    return 2 * across / inlet.norm(dim=1) ** 3


def rank_correlation(one: Float[Tensor, " n"], other: Float[Tensor, " n"]) -> float:
    """Spearman's correlation of two lists; 0 if one of them is constant."""
    if one.min() == one.max() or other.min() == other.max():
        return 0.0
    from scipy.stats import spearmanr  # here, because it takes half a second to import

    return float(spearmanr(one.numpy(), other.numpy()).statistic)


def volume_and_surface(
    prediction: Flow, truth: Flow, wall: Bool[Tensor, "b p"]
) -> tuple[Float[Tensor, "b t c"], Float[Tensor, "b t c"]]:
    """Mean squared errors over the points off the wall, and over those on it; 0 where there are none."""
    squares = (prediction - truth).square()
    means = []
    for chosen in (~wall, wall):
        weight = chosen.to(squares.dtype)
        weight = weight / weight.sum(dim=1, keepdim=True).clamp_min(1)
        means.append((squares * weight[:, None, None]).sum(dim=-1))
    return means[0], means[1]


@dataclass
class CloudScores:
    """Scores batch by batch; `lift` summarises all of them."""

    fields: Sequence[str]
    context_fields: Sequence[str]
    forecast_lifts: list[float] = field(default_factory=list)
    true_lifts: list[float] = field(default_factory=list)

    def add(
        self, forecast: Flow, truth: Flow, frames: Frames, units: AffineMap | None
    ) -> dict[str, Float[Tensor, " b"]]:
        """Errors of each case; those in normalised units only if the forecaster has any."""
        wall = wall_mask(frames.context, self.context_fields)
        forecast = with_known_walls(forecast, truth, wall)
        self._add_lifts(forecast, truth, frames, wall)
        if units is None:
            return {}
        errors = {}
        means = volume_and_surface(units.encode(forecast), units.encode(truth), wall)
        for name, per_field in zip(("volume_mse", "surface_mse"), means, strict=True):
            errors[name] = per_field.mean(dim=(1, 2))
            errors |= {f"{name}/{one}": per_field[:, :, c].mean(dim=1) for c, one in enumerate(self.fields)}
        return errors

    def _add_lifts(self, forecast: Tensor, truth: Tensor, frames: Frames, wall: Tensor) -> None:
        if "p" not in self.fields:
            return
        pressure = list(self.fields).index("p")
        x, y = (list(self.context_fields).index(name) for name in "xy")
        inlet = float64(frames.state[:, 0, :2, 0])
        for case, on_wall in enumerate(wall):
            place = float64(frames.context[case, 0, [x, y]][:, on_wall].T[None])
            for lifts, flow in ((self.forecast_lifts, forecast), (self.true_lifts, truth)):
                force = contour_force(place, float64(flow[case, -1, pressure, on_wall][None]))
                lifts.append(lift_coefficient(force, inlet[case][None]).item())

    def lift(self) -> dict[str, float]:
        """Errors of the lift over all cases so far."""
        if not self.true_lifts:
            return {}
        forecast, truth = (torch.tensor(lifts, dtype=torch.float64) for lifts in (self.forecast_lifts, self.true_lifts))
        gap = forecast - truth
        relative = gap.abs() / truth.abs()
        return {
            "lift_rel": relative.mean().item(),
            "lift_rel_median": relative.median().item(),
            "lift_abs": gap.abs().mean().item(),
            "lift_bias": gap.mean().item(),
            "lift_rank": rank_correlation(forecast, truth),
        }


def with_known_walls(forecast: Tensor, truth: Tensor, wall: Bool[Tensor, "b p"]) -> Tensor:
    """The forecast with 0 on the wall wherever the true field is exactly 0 on all of it."""
    on_wall = wall[:, None, None]
    known = ((truth == 0) | ~on_wall).all(dim=-1, keepdim=True) & on_wall
    return torch.where(known, 0.0, forecast)
