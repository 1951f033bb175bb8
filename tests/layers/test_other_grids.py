"""A block does the same to a field on every grid that resolves it."""

from dataclasses import replace

import pytest
import torch

from ssno.layers.axial import AxialScan
from ssno.layers.block import scan_weights
from ssno.layers.memory import S4DBlock
from ssno.layers.modes import ModeOptions
from ssno.transforms.periodic import resample

LEARNED = 24
GRID_MODES = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0)


def linear_part(block: S4DBlock, x: torch.Tensor, *, spacing: float) -> torch.Tensor:
    """kernel * x + skip x on lines (channel, point): what a block computes before its nonlinearity."""
    (weights,) = scan_weights([((block,), x.shape[1], spacing)])
    return weights.scan(x[:, None, :, None])[:, 0, 0, :, 0]


def smooth(points: int, channels: int = 4) -> torch.Tensor:
    """A field of the six longest waves."""
    generator = torch.Generator().manual_seed(0)
    modes = torch.randn(channels, 6, dtype=torch.complex128, generator=generator)
    return torch.fft.irfft(modes, n=points, norm="forward")


def bump(points: int, channels: int = 4) -> torch.Tensor:
    """A field that is zero towards the ends of its axis, and resolved by 24 points."""
    x = torch.arange(points, dtype=torch.float64) / points
    centres = torch.linspace(0.4, 0.6, channels, dtype=torch.float64)[:, None]
    return torch.exp(-(((x - centres) / 0.075) ** 2))


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("boundary", ["periodic", "periodic-truncated"])
@pytest.mark.parametrize("points", [15, 16, 36, 37, 48, 72])
def test_a_resolved_field_gives_the_same_on_every_periodic_grid(boundary, direction, points) -> None:
    torch.manual_seed(0)
    block = S4DBlock(4, d_state=8, direction=direction, boundary=boundary, options=GRID_MODES).double()
    expected = linear_part(block, smooth(LEARNED), spacing=1.0)
    found = linear_part(block, smooth(points), spacing=LEARNED / points)
    torch.testing.assert_close(found, resample(expected, (points,)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("points", [16, 37, 48])
def test_exact_modes_sampled_anew_give_the_same_on_every_periodic_grid(points) -> None:
    torch.manual_seed(0)
    options = replace(GRID_MODES, discretisation="exact", resolution_transfer="resample")
    block = S4DBlock(4, d_state=8, boundary="periodic", options=options).double()
    expected = linear_part(block, smooth(LEARNED), spacing=1.0)
    found = linear_part(block, smooth(points), spacing=LEARNED / points)
    torch.testing.assert_close(found, resample(expected, (points,)), rtol=1e-9, atol=1e-9)


def test_exact_modes_are_refused_off_circles_and_as_a_recurrence() -> None:
    options = replace(GRID_MODES, discretisation="exact")
    with pytest.raises(ValueError, match="boundary='zero'. Use a boundary among periodic, neumann, dirichlet"):
        S4DBlock(4, d_state=8, options=options)
    with pytest.raises(ValueError, match="has no recurrent form"):
        S4DBlock(4, d_state=8, boundary="periodic", options=options).modes.discretised()


@pytest.mark.parametrize("points", [36, 48, 72])
def test_a_resolved_field_gives_the_same_on_axes_with_ends(points) -> None:
    torch.manual_seed(0)
    block = S4DBlock(4, d_state=8, options=GRID_MODES).double()
    expected = linear_part(block, bump(LEARNED), spacing=1.0)
    found = linear_part(block, bump(points), spacing=LEARNED / points)
    shared = points // 12
    torch.testing.assert_close(found[:, ::shared], expected[:, ::2], rtol=1e-5, atol=1e-5)


def test_sampling_the_continuous_kernel_remains_an_option() -> None:
    torch.manual_seed(0)
    sampled = ModeOptions(initialisation="grid", dt_min=0.3, dt_max=3.0, resolution_transfer="resample")
    block = S4DBlock(4, d_state=8, boundary="periodic", options=sampled).double()
    (weights,) = scan_weights([((block,), 48, 0.5)])
    torch.testing.assert_close(weights.taps[0], block.taps(48, spacing=0.5))
    apart = linear_part(block, smooth(48), spacing=0.5)[:, ::2] - linear_part(block, smooth(24), spacing=1.0)
    assert apart.abs().max() > 1e-2


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
def test_a_grid_twice_as_fine_is_scanned_as_interleaved_copies_with_the_same_bits(boundary) -> None:
    torch.manual_seed(0)
    sweep = AxialScan(4, axes=2, d_state=8, boundary=boundary, options=GRID_MODES)
    field = torch.randn(4, 16, 24, 2)
    with torch.no_grad():
        whole = sweep(field, spacing=(0.5, 1.0))
        copies = [sweep(field[:, offset::2].contiguous(), spacing=(1.0, 1.0)) for offset in (0, 1)]
    torch.testing.assert_close(whole[:, 0::2], copies[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(whole[:, 1::2], copies[1], rtol=1e-5, atol=1e-6)


def test_gradients_reach_the_modes_through_another_grid() -> None:
    torch.manual_seed(0)
    block = S4DBlock(4, d_state=8, boundary="periodic", options=GRID_MODES)
    block(torch.randn(2, 4, 20), spacing=LEARNED / 20).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in block.modes.parameters())
