"""Starting frequencies against their published definitions."""

import math

import numpy as np
import torch

from ssno.ssm.initialise import grid, inv, legs, lin, log_steps


def test_lin_is_a_fourier_series() -> None:
    torch.testing.assert_close(lin(8), math.pi * torch.tensor([0.0, 1, 2, 3], dtype=torch.float64))


def test_inv_follows_its_law() -> None:
    expected = [8 / math.pi * (8 / (2 * n + 1) - 1) for n in range(4)]
    torch.testing.assert_close(inv(8), torch.tensor(expected, dtype=torch.float64))


def test_legs_are_the_eigenvalues_of_the_normal_part_of_hippo() -> None:
    states = 16
    row, column = np.meshgrid(np.arange(states), np.arange(states), indexing="ij")
    hippo = -np.where(row > column, np.sqrt((2 * row + 1.0) * (2 * column + 1)), np.where(row == column, row + 1, 0))
    low_rank = np.sqrt(np.arange(states) + 0.5)
    eigenvalues = np.linalg.eigvals(hippo + np.outer(low_rank, low_rank))
    np.testing.assert_allclose(eigenvalues.real, -0.5, atol=1e-9)
    np.testing.assert_allclose(np.sort(eigenvalues.imag)[states // 2 :], legs(states).numpy(), rtol=1e-9)


def test_grid_frequencies_are_waves_that_a_grid_carries() -> None:
    frequency = grid(16)
    assert frequency[0] == 0
    assert frequency.max() < torch.pi
    torch.testing.assert_close(frequency.diff(), torch.full((7,), torch.pi / 8, dtype=torch.float64))


def test_steps_are_log_uniform_within_their_range() -> None:
    steps = log_steps(4000, smallest=1e-3, largest=1e-1).exp()
    assert steps.min() >= 1e-3
    assert steps.max() <= 1e-1
    assert abs((steps < 1e-2).double().mean() - 0.5) < 0.03
