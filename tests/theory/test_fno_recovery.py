"""State-space layers equal the Fourier layers they are built from; with fewer states the error is the promised one."""

import pytest
import torch

from ssno.layers.spectral import SpectralConvolution
from ssno.models.baselines.fno import FFNO, FFNOConfig
from ssno.theory.fno_recovery import recover_ffno, recover_fno, spectral_matrices


def fourier_layer(matrices: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Transform, multiply the lowest coefficients, transform back: (b, i, l) to (b, o, l)."""
    spectrum = torch.fft.rfft(x)
    weighed = torch.zeros(x.shape[0], matrices.shape[1], spectrum.shape[-1], dtype=spectrum.dtype)
    weighed[..., : len(matrices)] = torch.einsum("koi,bik->bok", matrices, spectrum[..., : len(matrices)])
    return torch.fft.irfft(weighed, n=x.shape[-1])


def dense(layer, channels: int, points: int) -> torch.Tensor:
    """The matrix of a linear map on (channels, points)."""
    basis = torch.eye(channels * points, dtype=torch.float64).view(-1, channels, points)
    return layer(basis).flatten(1).T


@pytest.mark.parametrize("points", [15, 16])
@pytest.mark.parametrize("modes", [1, 5, 8, "all"])
@pytest.mark.parametrize(("channels_in", "channels_out"), [(4, 4), (3, 5)])
def test_full_rank_recovers_the_fourier_layer(points, modes, channels_in, channels_out) -> None:
    modes = points // 2 + 1 if modes == "all" else modes
    matrices = torch.randn(modes, channels_out, channels_in, dtype=torch.complex128)
    recovery = recover_fno(matrices, points=points)
    x = torch.randn(2, channels_in, points, dtype=torch.float64)
    torch.testing.assert_close(recovery.layer(x), fourier_layer(matrices, x), atol=1e-10, rtol=0)
    assert recovery.operator_error == recovery.relative_error == 0


def test_one_recovered_layer_serves_every_grid() -> None:
    matrices = torch.randn(5, 3, 3, dtype=torch.complex128)
    layer = recover_fno(matrices, points=16).layer
    for points in (9, 16, 33, 100):
        x = torch.randn(2, 3, points, dtype=torch.float64)
        torch.testing.assert_close(layer(x), fourier_layer(matrices, x), atol=1e-10, rtol=0)


def test_recovered_layers_have_no_damping_and_harmonic_frequencies() -> None:
    layer = recover_fno(torch.randn(3, 2, 2, dtype=torch.complex128), points=8).layer
    assert layer.log_damping.exp().eq(0).all()
    expected = 2 * torch.pi * torch.tensor([0.0, 0, 1, 1, 2, 2], dtype=torch.float64)
    torch.testing.assert_close(layer.frequency.detach(), expected)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_errors_are_those_of_the_difference_of_the_operators(rank) -> None:
    points, channels = 12, 4
    matrices = torch.randn(7, channels, channels, dtype=torch.complex128)
    recovery = recover_fno(matrices, points=points, rank=rank)
    exact = dense(lambda x: fourier_layer(matrices, x), channels, points)
    difference = exact - dense(recovery.layer, channels, points)
    assert torch.linalg.matrix_norm(difference, 2).item() == pytest.approx(recovery.operator_error, rel=1e-9)
    assert (difference.norm() / exact.norm()).item() == pytest.approx(recovery.relative_error, rel=1e-9)


def test_no_other_layer_with_as_many_states_is_better() -> None:
    matrices = torch.randn(4, 3, 3, dtype=torch.complex128)
    recovery = recover_fno(matrices, points=9, rank=1)
    layer, exact = recovery.layer, dense(lambda x: fourier_layer(matrices, x), 3, 9)
    best = (exact - dense(layer, 3, 9)).norm()
    (slope,) = torch.autograd.grad(best, layer.output_weight)
    assert slope.norm() < 1e-9
    with torch.no_grad():
        for weight in (layer.input_weight, layer.output_weight):
            weight += 1e-3 * torch.randn_like(weight)
            assert (exact - dense(layer, 3, 9)).norm() > best


@pytest.mark.parametrize("mix", [True, False])
def test_spectral_convolutions_of_models_are_recovered(mix) -> None:
    layer = SpectralConvolution(4, n_modes=5, axes=1, mix=mix).double()
    torch.nn.init.normal_(layer.weight)
    recovered = recover_fno(layer, points=12).layer
    field = torch.randn(4, 12, 3, dtype=torch.float64)
    torch.testing.assert_close(recovered.columns(field), layer(field), atol=1e-10, rtol=0)


@pytest.mark.parametrize("grid", [(12, 15), (13, 14)])
def test_a_factorised_layer_in_two_dimensions_is_recovered(grid) -> None:
    model = FFNO(FFNOConfig.tiny(n_dims=2, n_modes=5)).double()
    layer = model.layers_before[0]
    layer.feed_forward = torch.nn.Identity()
    recovery = recover_ffno(list(layer.convolutions), points=grid)
    field = torch.randn(16, *grid, 2, dtype=torch.float64)
    torch.testing.assert_close(recovery.layer(field), layer(field), atol=1e-10, rtol=0)


def test_real_weight_tensors_are_taken_too() -> None:
    packed = torch.randn(2, 3, 4, 4, 2, dtype=torch.float64)  # one (k, o, i, 2) per axis
    recovery = recover_ffno(list(packed), points=(8, 7), rank=2)
    field = torch.randn(4, 8, 7, 1, dtype=torch.float64)
    rows, columns = (torch.view_as_complex(weight) for weight in packed)
    along_x = fourier_layer(rows, field[..., 0].permute(2, 0, 1)).permute(1, 2, 0)
    along_y = fourier_layer(columns, field[..., 0].permute(1, 0, 2)).permute(1, 0, 2)
    difference = recovery.layer(field)[..., 0] - along_x - along_y
    bound = sum(axis.operator_error for axis in recovery.axes)
    assert 0 < difference.norm() <= bound * field.norm()


def test_recovered_layers_can_be_trained_further() -> None:
    layer = recover_fno(torch.randn(3, 2, 2, dtype=torch.complex128), points=8).layer
    layer(torch.randn(1, 2, 8, dtype=torch.float64)).square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in layer.parameters())


def test_what_cannot_be_recovered_is_refused() -> None:
    matrices = torch.randn(6, 3, 2, dtype=torch.complex128)
    with pytest.raises(ValueError, match="`fourier` has 6 frequencies, but `points=9` carries 5. Give at least 10"):
        recover_fno(matrices, points=9)
    for rank in (0, 3):
        with pytest.raises(ValueError, match=f"`rank` must lie between 1 and 2, the size of the matrices, got {rank}"):
            recover_fno(matrices, points=10, rank=rank)
    with pytest.raises(ValueError, match="`fourier` convolves over 2 axes at once"):
        spectral_matrices(SpectralConvolution(2, n_modes=3, axes=2))
    with pytest.raises(ValueError, match=r"complex \(frequency, out, in\) .* got torch.float32 of shape \(3, 2, 2\)"):
        spectral_matrices(torch.randn(3, 2, 2))
    with pytest.raises(ValueError, match=r"`points` must give one number per axis: 2 layers, got \(8,\)"):
        recover_ffno([matrices, matrices], points=(8,))
