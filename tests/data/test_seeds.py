"""Every trajectory has its own random generator, which depends on seed, split and number only."""

import numpy as np
import pytest

from ssno.data.splits import SPLITS, trajectory_rng


def test_a_trajectory_draws_the_same_numbers_whatever_was_drawn_before() -> None:
    first = trajectory_rng(3, "valid", 7).uniform(size=100)
    trajectory_rng(3, "valid", 6).uniform(size=5)
    np.testing.assert_array_equal(trajectory_rng(3, "valid", 7).uniform(size=100), first)


def test_seed_split_and_number_all_matter() -> None:
    draws = {
        float(trajectory_rng(seed, split, number).uniform())
        for seed in range(3)
        for split in SPLITS
        for number in range(5)
    }
    assert len(draws) == 3 * 3 * 5


def test_the_generator_is_the_documented_one() -> None:
    documented = np.random.Generator(np.random.Philox(np.random.SeedSequence(5, spawn_key=(2, 11))))
    assert trajectory_rng(5, "test", 11).integers(2**62) == documented.integers(2**62)


@pytest.mark.usefixtures("as_users_call_it")
def test_impossible_trajectories_are_refused() -> None:
    with pytest.raises(ValueError, match="`seed` must be 0 or more, got -1"):
        trajectory_rng(-1, "train", 0)
    with pytest.raises(ValueError, match="`index` must be 0 or more, got -2"):
        trajectory_rng(0, "train", -2)
    with pytest.raises(ValueError, match="`split` must be one of 'train', 'valid', 'test', got 'val'"):
        trajectory_rng(0, "val", 0)  # type: ignore[arg-type]
