"""Scans along all great circles of a sphere at once.

A scan around a circle multiplies its wave k by the kernel's response K(k), the Fourier transform of its taps. On a
sphere the waves are spherical harmonics, and the degree l is the wave number along great circles:

    y_d = sum_lm K_d(l) a_lm Y_lm,     a_lm the harmonics of x,   K_d from the taps on a great circle of 2 nlat points

The real part of K is a kernel that spreads alike in all directions. The imaginary part, of opposite sign in the two
directions of a scan, tells east from west; the map commutes with turns about the axis. No point is special: rings
close to a pole are not scanned faster than others, as scans along meridians and rings do. Kernels, skips and gates are
those of every two-way scan.

What depends on latitude (Coriolis) enters by a gain and a shift of each channel before the scan,

    x <- gain(theta) x + shift(theta),      both sums of cos(j theta), j < 6: smooth over the poles, for any grid

The grid is a Gauss grid of nlat x 2 nlat points on which products of two fields do not alias.

Axes: h channel, lat, lon, b frame; d direction, m order, l degree.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from ssno.layers.block import DiscretisedKernels, GatedBlock
from ssno.layers.gate import gate
from ssno.layers.modes import ModeOptions
from ssno.layers.sweeps import BidirectionalScan, Residual, SpatialScan
from ssno.transforms.sphere import transform_of
from ssno.transforms.sphere_grid import SphereGrid

TERMS = 6


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
        scan = BidirectionalScan(channels, d_state=d_state, residual=residual, boundary="wrapped", options=options)
        self.scans = nn.ModuleList([scan])

    def scans_on(
        self, grid: Sequence[int], spacing: Sequence[float]
    ) -> list[tuple[tuple[GatedBlock, ...], int, float]]:
        """The scan of a great circle: 2 nlat points, as far apart as those of the equator."""
        nlat, _ = grid
        return super().scans_on((2 * nlat,), spacing[1:])

    def sweep(
        self, field: Float[Tensor, "h lat lon b"], weights: Sequence[DiscretisedKernels]
    ) -> Float[Tensor, "h lat lon b"]:
        """Gain, filter by degree in both directions, gate."""
        (scan,), (known,) = self.scans, weights
        assert isinstance(scan, BidirectionalScan)
        field = self.latitude(field)
        channels, nlat, nlon, _ = field.shape
        degrees = SphereGrid(nlat, nlon, "gauss").largest(products=True)
        transform = transform_of(nlat, nlon, degrees, field.dtype, "gauss").to(field.device)
        modes = transform.analyse_leading(field.permute(2, 1, 0, 3))  # m l h b
        answer = responses(known, degrees).permute(2, 0, 1)[..., None] * modes[:, :, None]  # m l d h b
        y = transform.synthesise_leading(answer).permute(3, 2, 1, 0, 4).reshape(channels, 2, -1)
        residual = field.reshape(channels, -1)
        return gate(y, known.mix, known.bias, residual=residual, residual_weight=scan.residual_weight).view(field.shape)


def responses(weights: DiscretisedKernels, degrees: int) -> Complex[Tensor, "d h l"]:
    """K_d(l): what each direction of a scan multiplies a wave by; spectra go on periodically beyond their own waves."""
    taps = weights.taps
    assert taps is not None, "states are never carried around a circle"
    wave = torch.arange(degrees, device=taps.device) % taps.shape[-1]
    spectrum = torch.fft.fft(taps)[..., wave]
    backward = torch.tensor([one == "backward" for one in weights.directions], device=taps.device)
    return torch.where(backward[:, None, None], spectrum.conj(), spectrum)
