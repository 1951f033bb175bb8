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

from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional

from ssno.layers.axial import (
    START,
    BidirectionalScan,
    GridScan,
    ProductScan,
    Residual,
    SpatialScan,
    around,
    multiplied,
)
from ssno.layers.block import DiscretisedKernels, GatedBlock
from ssno.layers.gate import gate
from ssno.layers.modes import ModeOptions
from ssno.transforms.sphere import SphereGrid, SphereTransform, transform_of

# Scans along all great circles of a sphere at once.
#
# A scan around a circle multiplies its wave k by the kernel's response K(k), the Fourier transform of its taps. On a
# sphere the waves are spherical harmonics, and the degree l is the wave number along great circles:
#
#     y_d = sum_lm K_d(l) a_lm Y_lm,     a_lm the harmonics of x,   K_d from the taps on a great circle of 2 nlat points
#
# The real part of K is an isotropic kernel. The imaginary part, of opposite sign in the two
# directions of a scan, tells east from west; the map commutes with turns about the axis. No point is special: rings
# close to a pole are not scanned faster than others, as scans along meridians and rings do. Kernels, skips and gates
# are those of every two-way scan.
#
# What depends on latitude (Coriolis) enters by a gain and a shift of each channel before the scan,
#
#     x <- gain(theta) x + shift(theta),      both sums of cos(j theta), j < 6: smooth over the poles, for any grid
#
# The grid is a Gauss grid of nlat x 2 nlat points on which products of two fields do not alias.
#
# A product of scans adds both directions, K(l) = sum_d K_d(l), mixes the channels of the lowest 11 degrees (those of
# data on 32 rings), and multiplies two maps of the sum, as in `ssno.layers.axial`:
#
#     y = sum_lm ( K(l) + W_l ) a_lm Y_lm,     W_l a complex matrix for each degree l < 11
#
# Axes: h channel, lat, lon, b frame; d direction, m order, l degree.

TERMS = 6
MIXED_DEGREES = 11


class LatitudeGain(nn.Module):
    """x <- gain(theta) x + shift(theta), a cosine series per channel. Gains start around 1, shifts at 0."""

    def __init__(self, channels: int):
        super().__init__()
        self.gain = nn.Parameter(0.3 * torch.randn(channels, TERMS))
        self.shift = nn.Parameter(torch.zeros(channels, TERMS))
        nn.init.ones_(self.gain[:, 0])

    def forward(self, field: Float[Tensor, "h lat lon b"]) -> Float[Tensor, "h lat lon b"]:
        grid = SphereGrid(field.shape[1], field.shape[2], "gauss")
        theta = torch.as_tensor(grid.colatitudes, dtype=self.gain.dtype, device=self.gain.device)
        series = torch.cos(theta * torch.arange(TERMS, device=theta.device)[:, None])
        gain, shift = ((part @ series)[:, :, None, None] for part in (self.gain, self.shift))
        return torch.addcmul(shift, field, gain)


class GreatCircleScan(SpatialScan):
    """Gain and shift by latitude, then a two-way scan along all great circles."""

    def __init__(
        self, channels: int, *, d_state: int = 64, residual: Residual = "sum", options: ModeOptions | None = None
    ):
        super().__init__()
        self.latitude = LatitudeGain(channels)
        scan = BidirectionalScan(channels, d_state=d_state, residual=residual, boundary="periodic", options=options)
        self.scans = nn.ModuleList([scan])

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The scan of a great circle: 2 nlat points, as far apart as those of the equator."""
        nlat, _ = grid
        return super().scans_on((2 * nlat,), spacing[1:])

    def scan_axes(
        self, field: Float[Tensor, "h lat lon b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h lat lon b"]:
        """Gain, filter by degree in both directions, gate."""
        (scan,), (known,) = self.scans, weights
        assert isinstance(scan, BidirectionalScan)
        field = self.latitude(field)
        transform, modes = harmonics(field)
        answer = responses(known, transform.degrees).permute(2, 0, 1)[..., None] * modes[:, :, None]  # m l d h b
        y = transform.synthesise_leading(answer).permute(3, 2, 1, 0, 4).reshape(len(field), 2, -1)
        residual = field.reshape(len(field), -1)
        return gate(y, known.mix, known.bias, residual=residual, residual_weight=scan.residual_weight).view(field.shape)


class GreatCircleProduct(SpatialScan):
    """Gain and shift by latitude, a scan along great circles with mixed channels, then a product of two maps."""

    def __init__(self, channels: int, *, d_state: int = 64, options: ModeOptions | None = None):
        super().__init__()
        self.latitude = LatitudeGain(channels)
        scan = ProductScan(channels, d_state=d_state, boundary="periodic", options=options)
        assert scan.back.mix is not None
        nn.init.ones_(scan.back.mix.bias)  # the left map passes from the start: these waves are almost linear
        self.scans = nn.ModuleList([scan])
        self.mixing = nn.Parameter(START / channels**0.5 * torch.randn(MIXED_DEGREES, channels, channels, 2))

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The scan of a great circle, as that of `GreatCircleScan`."""
        return super().scans_on((2 * grid[0],), spacing[1:])

    def scan_axes(
        self, field: Float[Tensor, "h lat lon b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h lat lon b"]:
        """Gain, filter by degree, multiply."""
        field = self.latitude(field)
        transform, modes = harmonics(field)
        answer = responses(weights[0], transform.degrees).sum(0).t()[..., None] * modes  # m l h b
        matrices = torch.view_as_complex(self.mixing)[: transform.degrees]
        mixed = torch.einsum("lij,mlib->mljb", matrices, modes[:, : len(matrices)])
        answer = answer + functional.pad(mixed, (0, 0, 0, 0, 0, transform.degrees - len(matrices)))
        y = transform.synthesise_leading(answer).permute(2, 1, 0, 3).reshape(field.shape)
        return multiplied(field, y, weights[0])


def harmonics(field: Float[Tensor, "h lat lon b"]) -> tuple[SphereTransform, Complex[Tensor, "m l h b"]]:
    """The transform of the field's grid, and the degrees of the field whose products do not alias on it."""
    _, nlat, nlon, _ = field.shape
    degrees = SphereGrid(nlat, nlon, "gauss").largest(products=True)
    transform = transform_of(nlat, nlon, degrees, field.dtype, kind="gauss", device=field.device)
    return transform, transform.analyse_leading(field.permute(2, 1, 0, 3))


def responses(weights: DiscretisedKernels, degrees: int) -> Complex[Tensor, "d h l"]:
    """K_d(l): what each direction of a scan multiplies a wave by; spectra are continued periodically."""
    taps = weights.taps
    assert taps is not None, "states are never carried around a circle"
    wave = torch.arange(degrees, device=taps.device) % taps.shape[-1]
    spectrum = torch.fft.fft(taps)[..., wave]
    each = zip(spectrum, weights.directions(), strict=True)
    return torch.stack([one.conj() if direction == "backward" else one for one, direction in each])


# A learned map of the sphere, cut along a meridian, onto itself: one to one by construction.

MAP_TERMS = 8
FINE = 8
"""Points of the table of G for each point of the grid."""


class SphereMap(nn.Module):
    """The map. 17 parameters, zero at the start."""

    def __init__(self) -> None:
        super().__init__()
        self.stretch = nn.Parameter(torch.zeros(MAP_TERMS))
        self.shift = nn.Parameter(torch.zeros(MAP_TERMS + 1))

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
        return torch.cos(theta[:, None] * torch.arange(MAP_TERMS + 1, device=theta.device)) @ self.shift

    def table(self, nlat: int) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"], Float[Tensor, " q"]]:
        """theta, G and G' at FINE (nlat - 1) + 1 points, by the trapezoidal rule."""
        theta = torch.linspace(0, torch.pi, FINE * (nlat - 1) + 1, dtype=self.stretch.dtype, device=self.stretch.device)
        slope = torch.exp(
            torch.cos(theta[:, None] * torch.arange(1, MAP_TERMS + 1, device=theta.device)) @ self.stretch
        )
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
    """Values at other colatitudes, by cubics through four rings, continued over a pole on the opposite meridian."""
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


# Scans on the equiangular grid of a sphere: around the rings, and over the poles.
#
# Longitude is a circle, so rings are scanned with a periodic kernel. Beyond a pole lies the opposite meridian: meridian
# lambda followed by meridian lambda + pi backwards is a great circle of 2 (nlat - 1) points, each pole once,
#
#     theta:   0 ... pi  (at lambda)   then   pi ... 0  (at lambda + pi)
#
# and a scan over the poles is a periodic scan of this circle, for every lambda, of which the first half is kept: one
# matrix for the meridian and one for its opposite. North to south stays forward everywhere, so it commutes with turns
# about the axis. Fields must be scalars; components of vectors would change sign. The row of a pole holds one point
# nlon times, so it is averaged.
#
# Axes: h channel, lat, lon, b frame; c point of a great circle.


class SphereScan(GridScan):
    """Scan colatitude, then longitude, both ways: the spatial block of SS-NO on a sphere."""

    residual: Residual = "sum"

    def __init__(self, channels: int, *, d_state: int = 64, options: ModeOptions | None = None):
        super().__init__(channels, axes=2, d_state=d_state, boundary="periodic", options=options)

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The two scans; over the poles a line is a great circle."""
        nlat, nlon = grid
        return super().scans_on((2 * (nlat - 1), nlon), spacing)

    def scan_axes(
        self, field: Float[Tensor, "h lat lon b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h lat lon b"]:
        """Over the poles, then around the rings."""
        meridians, rings = self.scans
        assert isinstance(meridians, BidirectionalScan)
        assert isinstance(rings, BidirectionalScan)
        field = over_poles(meridians, field, weights[0])
        return rings.lines(around(field, 1), weights[1]).view(field.shape)


def over_poles(
    scan: BidirectionalScan, field: Float[Tensor, "h lat lon b"], weights: DiscretisedKernels
) -> Float[Tensor, "h lat lon b"]:
    """A two-way scan of every meridian continued around its great circle, of which the first half is kept."""
    channels, nlat = field.shape[:2]
    circle = 2 * (nlat - 1)
    taps = weights.taps
    assert taps is not None, "states are never carried around a circle"
    ahead = torch.arange(nlat, device=field.device)[:, None] - torch.arange(circle, device=field.device)
    signs = [1 if direction == "forward" else -1 for direction in weights.directions()]
    matrices = torch.stack([one[:, (sign * ahead) % circle] for one, sign in zip(taps, signs, strict=True)], dim=1)
    lines = great_circles(field).flatten(2)  # h c (lon b)
    y = torch.bmm(matrices.flatten(1, 2), lines).view(channels, len(signs), -1)
    residual = field.reshape(channels, -1)
    gated = gate(y, weights.mix, weights.bias, residual=residual, residual_weight=scan.residual_weight)
    return one_value_at_poles(gated.view(field.shape))


def great_circles(field: Float[Tensor, "h lat lon b"]) -> Float[Tensor, "h c lon b"]:
    """Every meridian, then the opposite one backwards: 2 (nlat - 1) points, each pole once."""
    if field.shape[2] % 2:
        raise ValueError(f"A scan over the poles needs an even number of longitudes, got {field.shape[2]}.")
    opposite = field[:, 1:-1].flip(1).roll(field.shape[2] // 2, dims=2)
    return torch.cat([field, opposite], dim=1)


def one_value_at_poles(field: Float[Tensor, "h lat lon b"]) -> Float[Tensor, "h lat lon b"]:
    """The rows of the poles replaced by their means."""
    poles = field[:, :: field.shape[1] - 1].mean(2, keepdim=True).expand(-1, -1, field.shape[2], -1)
    return torch.cat([poles[:, :1], field[:, 1:-1], poles[:, 1:]], dim=1)
