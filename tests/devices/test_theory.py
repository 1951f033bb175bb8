"""Theory looks at models wherever they are."""

import torch

from ssno.layers.spectral import SpectralConvolution
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.theory.field_of_view import field_of_view, seen_in_jacobian
from ssno.theory.fno_recovery import recover_fno


def test_the_field_of_view_of_a_model_on_a_device(gpu) -> None:
    model = SSNO(SSNOConfig.tiny())
    here = field_of_view(model, (8,)), seen_in_jacobian(model, (8,))
    model.to(gpu)
    away = field_of_view(model, (8,)), seen_in_jacobian(model, (8,))
    assert next(model.parameters()).device == gpu
    assert all(torch.equal(a.reached, b.reached) for a, b in zip(away, here, strict=True))


def test_a_fourier_layer_is_recovered_on_its_device(gpu) -> None:
    fourier = SpectralConvolution(3, n_modes=4, axes=1).double()
    field = torch.randn(3, 16, 2, dtype=torch.float64)
    expected = fourier(field)
    recovery = recover_fno(fourier.to(gpu), points=16)
    assert recovery.layer.frequency.device == gpu
    torch.testing.assert_close(recovery.layer.columns(field.to(gpu)).cpu(), expected, atol=1e-10, rtol=1e-10)
