"""Any model on the interleaved copies of its grid."""

import pytest
import torch
from studies.transfer import OnSublattices, on_sublattices

from ssno.data.normalise import Normaliser, Normalisers
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.rollout import rollout
from ssno.models.baselines.fno import FFNOConfig

UNITS = Normalisers(
    state=Normaliser("none", ("u",), shift=(0.0,), scale=(1.0,), increment=(1.0,)),
    context=Normaliser("none", (), shift=(), scale=(), increment=()),
)


@pytest.mark.parametrize("n_dims", [1, 2])
def test_splitting_and_joining_are_inverses(n_dims: int) -> None:
    model = OnSublattices(None, copies=3, n_dims=n_dims)
    frames = torch.randn(2, 4, 1, *(12, 6)[:n_dims])
    assert model.split(frames).shape == (2 * 3**n_dims, 4, 1, *(4, 2)[:n_dims])
    assert torch.equal(model.joined(model.split(frames)), frames)


def test_every_copy_is_forecast_as_if_it_were_alone() -> None:
    torch.manual_seed(0)
    plain = Forecaster(FFNOConfig.tiny(n_modes=4).build(), normalisers=UNITS, spacing=(1 / 16,))
    fine = on_sublattices(plain, copies=2, spacing=(1 / 32,))
    frames = torch.randn(2, 4, 1, 32)
    found = rollout(fine, frames, 3, spacing=(1 / 32,))
    for offset in (0, 1):
        alone = rollout(plain, frames[..., offset::2], 3)
        torch.testing.assert_close(found[..., offset::2], alone, rtol=1e-4, atol=1e-5)
    none = frames.new_zeros(2, 4, 0, 32)
    with torch.no_grad():
        answers = fine(frames, none, spacing=(1 / 32,))
        alone = plain(frames[..., ::2], none[..., ::2])
    torch.testing.assert_close(answers[..., ::2], alone, rtol=1e-4, atol=1e-5)
