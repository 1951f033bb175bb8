"""Spectral convolution: equals dense convolution, differentiates, keeps what it says, refuses coarse grids."""

import math

import pytest
import torch

from ssno.layers.spectral import SpectralConvolution, most_modes, xavier_normal


def test_one_axis_is_a_circular_convolution_with_a_matrix_kernel() -> None:
    layer = SpectralConvolution(3, n_modes=4, axes=1).double()
    field = torch.randn(3, 9, 2, dtype=torch.float64)
    weight = torch.view_as_complex(layer.weight.detach())[0]  # m g h
    spectrum = torch.zeros(5, 3, 3, dtype=torch.complex128)
    spectrum[:4] = weight
    kernel = torch.fft.irfft(spectrum, n=9, dim=0)  # l g h
    expected = sum(torch.einsum("gh,hlb->glb", kernel[shift], field.roll(shift, dims=1)) for shift in range(9))
    torch.testing.assert_close(layer(field), expected, atol=1e-12, rtol=1e-10)


def test_two_axes_keep_low_wavenumbers_of_either_sign() -> None:
    layer = SpectralConvolution(1, n_modes=2, axes=2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 0.0]).expand_as(layer.weight))
    x, y = torch.meshgrid(*[2 * math.pi * torch.arange(8, dtype=torch.float64) / 8] * 2, indexing="ij")
    kept = torch.cos(x + y) + torch.sin(x - y) + torch.cos(2 * x - y) + 3
    # Wavenumber 2 along x exists with the minus sign only (-2), along y not at all.
    dropped = torch.cos(2 * x + y) + torch.cos(x + 2 * y) + torch.cos(3 * x)
    output = layer((kept + dropped)[None, :, :, None])[0, :, :, 0]
    torch.testing.assert_close(output, kept, atol=1e-12, rtol=1e-12)


def test_three_axes_without_mixing_can_differentiate() -> None:
    layer = SpectralConvolution(2, n_modes=3, axes=3, mix=False).double()
    rows = torch.tensor([0.0, 1.0, 2.0, -3.0, -2.0, -1.0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.zero_()
        for corner in range(4):  # the imaginary part is the wavenumber of the first axis
            layer.weight[corner, ..., 1] = rows[3 * (corner // 2) :][:3, None, None, None]
    x, y, z = torch.meshgrid(*[2 * math.pi * torch.arange(8, dtype=torch.float64) / 8] * 3, indexing="ij")
    field = torch.sin(2 * x + y) * torch.cos(z) + torch.cos(x - 2 * z)
    derivative = 2 * torch.cos(2 * x + y) * torch.cos(z) - torch.sin(x - 2 * z)
    output = layer(torch.stack([field, -field])[..., None])[..., 0]
    torch.testing.assert_close(output, torch.stack([derivative, -derivative]), atol=1e-12, rtol=1e-12)


def test_smooth_fields_give_the_same_result_on_a_finer_grid() -> None:
    layer = SpectralConvolution(4, n_modes=3, axes=2).double()

    def output(points: int) -> torch.Tensor:
        x, y = torch.meshgrid(*[2 * math.pi * torch.arange(points, dtype=torch.float64) / points] * 2, indexing="ij")
        return layer(torch.stack([torch.sin(x), torch.cos(y), torch.sin(x + 2 * y), torch.ones_like(x)])[..., None])

    torch.testing.assert_close(output(24)[:, ::3, ::3], output(8), atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("axes", [1, 2])
def test_gradients_reach_every_weight_but_the_imaginary_mean(axes) -> None:
    layer = SpectralConvolution(2, n_modes=3, axes=axes, initialise=xavier_normal if axes == 1 else torch.nn.init.ones_)
    layer(torch.randn(2, *(8,) * axes, 3)).square().sum().backward()
    idle = torch.zeros_like(layer.weight, dtype=torch.bool)
    idle[0, *(0,) * axes, ..., 1] = True
    assert torch.equal(layer.weight.grad.abs() < 1e-6, idle)


def test_weights_start_as_their_papers_say() -> None:
    uniform = SpectralConvolution(8, n_modes=8, axes=2).weight
    assert uniform.min() >= 0
    assert uniform.max() < 1 / 64
    normal = SpectralConvolution(16, n_modes=16, axes=1, initialise=xavier_normal).weight
    assert normal.std().item() == pytest.approx(math.sqrt(2 / (32 * 32)), rel=0.05)


@pytest.mark.parametrize(("grid", "modes"), [((64,), 32), ((65,), 32), ((64, 20), 10), ((1,), 1)])
def test_a_grid_carries_half_as_many_wavenumbers_as_points(grid, modes) -> None:
    assert most_modes(grid) == modes


def test_coarse_grids_are_refused() -> None:
    with pytest.raises(ValueError, match=r"grid of 16 x 6 points.*n_modes = 4.*at least 8 points.*n_modes=3"):
        SpectralConvolution(1, n_modes=4, axes=2)(torch.randn(1, 16, 6, 1))
