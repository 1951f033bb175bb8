"""Training noise is a function of (seed, epoch, step, sample)."""

import pytest
import torch

from ssno.data.windows import noise_like, sample_generator

BATCH = torch.zeros(4, 3, 2, 16)
KEY = {"std": 0.1, "seed": 5, "epoch": 2, "step": 7}


def test_noise_of_a_sample_does_not_depend_on_its_batch() -> None:
    whole = noise_like(BATCH, samples=[3, 1, 4, 15], **KEY)
    alone = noise_like(BATCH[:1], samples=[4], **KEY)
    assert torch.equal(whole[2:3], alone)


@pytest.mark.parametrize("change", [{"seed": 6}, {"epoch": 3}, {"step": 8}, {"samples": [0, 1, 2, 4]}])
def test_noise_changes_with_every_part_of_its_key(change) -> None:
    key = KEY | {"samples": [0, 1, 2, 3]}
    assert not torch.equal(noise_like(BATCH, **key)[3], noise_like(BATCH, **(key | change))[3])


def test_noise_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    noise_like(BATCH, samples=range(4), **KEY)
    assert torch.equal(torch.get_rng_state(), before)


def test_noise_is_gaussian_with_the_stated_deviation_and_independent_between_samples() -> None:
    noise = noise_like(torch.zeros(64, 4096), samples=range(64), **KEY)
    assert noise.std().item() == pytest.approx(0.1, rel=0.01)
    assert noise.mean().abs() < 1e-3
    assert (noise.abs() < 0.1).float().mean().item() == pytest.approx(0.6827, abs=0.005)
    correlation = torch.corrcoef(noise) - torch.eye(64)
    assert correlation.abs().max() < 6 / 64  # six standard errors of 1/sqrt(4096)


def test_no_noise_is_exactly_zero_and_follows_the_type_of_the_batch() -> None:
    none = noise_like(BATCH.double(), samples=range(4), std=0.0, seed=0, epoch=0)
    assert torch.equal(none, BATCH.double())
    assert noise_like(BATCH.double(), samples=range(4), **KEY).dtype == torch.float64


def test_keys_of_different_length_differ() -> None:
    assert sample_generator(1, 2).initial_seed() != sample_generator(1, 2, 0).initial_seed()


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="`std` must not be negative, got"):
        noise_like(BATCH, samples=range(4), **(KEY | {"std": -0.1}))
    with pytest.raises(ValueError, match="`samples` must name the 4 samples of the batch, got 3"):
        noise_like(BATCH, samples=range(3), **KEY)
