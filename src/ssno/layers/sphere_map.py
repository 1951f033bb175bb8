"""A learned map of the sphere, cut along a meridian, onto itself: one to one by construction.

    xi = G(theta),      G' proportional to exp(sum_{j=1..8} a_j cos(j theta)),   G(0) = 0, G(pi) = pi
    mu = lambda + S(theta),     S = sum_{j=0..8} b_j cos(j theta)

G' > 0 whatever the 17 parameters are; zero gives the identity. Both series are even about the poles, so great circles
stay smooth, and the map commutes with turns about the axis.

`push` takes a field to the coordinates (xi, mu), `pull` takes it back. Colatitude is interpolated by cubics through
four points, with the opposite meridian beyond a pole; longitude is shifted exactly, by a phase of every wave. A push
and a pull lose what cubics lose, O(nlat^-4), so a model pushes what it looks at and pulls the change it adds.

Axes: n frame, c field, lat, lon; q point of a fine table.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

TERMS = 8
FINE = 8
"""Points of the table of G for each point of the grid."""


class SphereMap(nn.Module):
    """The map. 17 parameters, zero at the start."""

    def __init__(self) -> None:
        super().__init__()
        self.stretch = nn.Parameter(torch.zeros(TERMS))
        self.shift = nn.Parameter(torch.zeros(TERMS + 1))

    def push(self, field: Float[Tensor, "n c lat lon"]) -> Float[Tensor, "n c lat lon"]:
        """The field at (xi, mu): its value at theta = G^-1(xi), lambda = mu - S(theta)."""
        theta = self.inverse(field.shape[2])
        return turned(interpolated(field, theta), -self.turns(theta))

    def pull(self, field: Float[Tensor, "n c lat lon"]) -> Float[Tensor, "n c lat lon"]:
        """Back to (theta, lambda): the value at xi = G(theta), mu = lambda + S(theta)."""
        theta = torch.linspace(0, torch.pi, field.shape[2], dtype=self.stretch.dtype, device=self.stretch.device)
        return turned(interpolated(field, self.table(field.shape[2])[1][::FINE]), self.turns(theta))

    def turns(self, theta: Float[Tensor, " lat"]) -> Float[Tensor, " lat"]:
        """S."""
        return torch.cos(theta[:, None] * torch.arange(TERMS + 1, device=theta.device)) @ self.shift

    def table(self, nlat: int) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"], Float[Tensor, " q"]]:
        """theta, G and G' at FINE (nlat - 1) + 1 points, by the trapezoidal rule."""
        theta = torch.linspace(0, torch.pi, FINE * (nlat - 1) + 1, dtype=self.stretch.dtype, device=self.stretch.device)
        slope = torch.exp(torch.cos(theta[:, None] * torch.arange(1, TERMS + 1, device=theta.device)) @ self.stretch)
        whole = torch.cat([slope.new_zeros(1), torch.cumulative_trapezoid(slope, theta)])
        factor = torch.pi / whole[-1]
        return theta, whole * factor, slope * factor

    def inverse(self, nlat: int) -> Float[Tensor, " lat"]:
        """theta = G^-1(xi) at the points of the grid: the table swapped, with cubics through values and slopes 1/G'."""
        theta, xi, slope = self.table(nlat)
        wanted = torch.linspace(0, torch.pi, nlat, dtype=xi.dtype, device=xi.device)
        left = (torch.searchsorted(xi.detach(), wanted, right=True) - 1).clamp(0, len(xi) - 2)
        width = xi[left + 1] - xi[left]
        t = (wanted - xi[left]) / width
        rise = theta[left + 1] - theta[left]
        start, end = width / slope[left] - rise, rise - width / slope[left + 1]
        return (theta[left] + t * rise + t * (1 - t) * (start * (1 - t) + end * t)).clamp(0, torch.pi)


def interpolated(field: Float[Tensor, "n c lat lon"], theta: Float[Tensor, " lat"]) -> Float[Tensor, "n c lat lon"]:
    """Values at other colatitudes, by cubics through four rings; beyond a pole lies the opposite meridian."""
    nlat, nlon = field.shape[2:]
    opposite = field.roll(nlon // 2, dims=3)
    rings = torch.cat([opposite[:, :, 1:2], field, opposite[:, :, -2:-1]], dim=2)
    place = theta * ((nlat - 1) / torch.pi)
    left = place.detach().floor().long().clamp(0, nlat - 2)
    t = (place - left)[:, None]
    weights = (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )
    return sum((w * rings[:, :, left + k] for k, w in enumerate(weights)), torch.zeros_like(field))


def turned(field: Float[Tensor, "n c lat lon"], angle: Float[Tensor, " lat"]) -> Float[Tensor, "n c lat lon"]:
    """The value at lambda + angle, ring by ring: every wave m gains the phase m angle."""
    waves = torch.fft.rfft(field, dim=3)
    m = torch.arange(waves.shape[3], dtype=angle.dtype, device=angle.device)
    phase = torch.polar(torch.ones_like(angle)[:, None].expand(-1, len(m)), angle[:, None] * m)
    return torch.fft.irfft(waves * phase, n=field.shape[3], dim=3)
