"""Full S4 kernels against dense matrices, and HiPPO-LegS against its definition."""

import numpy as np
import pytest
import torch

from ssno.ssm.dplr import LowRankSystem, dense, hippo_legs, low_rank_kernel, truncated, untruncated


def system(channels: int = 3, modes: int = 4, rank: int = 1) -> LowRankSystem:
    def complex_normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.complex128)

    rate = torch.complex(-torch.rand(channels, modes).double() - 0.1, 5 * torch.randn(channels, modes).double())
    step = 0.05 + 0.2 * torch.rand(channels, dtype=torch.float64)
    return LowRankSystem(
        rate,
        complex_normal(rank, channels, modes),
        complex_normal(channels, modes),
        complex_normal(channels, modes),
        step,
    )


def powers_of_the_matrix(of: LowRankSystem, length: int) -> torch.Tensor:
    """C Abar^l Bbar, one matrix-vector product at a time."""
    advance, state = dense(of)
    output = torch.cat([of.output_weight, of.output_weight.conj()], dim=-1)
    samples = []
    for _ in range(length):
        samples.append((output * state).sum(-1).real)
        state = (advance @ state[..., None])[..., 0]
    return torch.stack(samples, dim=1)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 7, 16])
def test_the_kernel_is_the_powers_of_the_matrix(length, rank) -> None:
    plain = system(rank=rank)
    kernel = low_rank_kernel(truncated(plain, length=length), length=length)
    torch.testing.assert_close(kernel, powers_of_the_matrix(plain, length), atol=1e-10, rtol=0)


def test_the_dense_step_is_the_bilinear_rule() -> None:
    one = system(channels=1, modes=1)
    advance, drive = dense(one)
    p = torch.cat([one.low_rank[0, 0], one.low_rank[0, 0].conj()])
    matrix = torch.diag(torch.cat([one.rate[0], one.rate[0].conj()])) - torch.outer(p, p.conj())
    eye, half = torch.eye(2, dtype=torch.complex128), one.step[0] / 2 * matrix
    inverse = torch.linalg.inv(eye - half)
    torch.testing.assert_close(advance[0], inverse @ (eye + half))
    b = torch.cat([one.input_weight[0], one.input_weight[0].conj()])
    torch.testing.assert_close(drive[0], one.step[0] * inverse @ b)


def test_without_low_rank_part_modes_do_not_mix() -> None:
    plain = system()._replace(low_rank=torch.zeros(1, 3, 4, dtype=torch.complex128))
    half = plain.step[:, None] * plain.rate / 2
    decay, gain = (1 + half) / (1 - half), plain.step[:, None] / (1 - half)
    lags = torch.arange(9, dtype=torch.float64)
    weight = plain.output_weight * plain.input_weight * gain
    expected = 2 * (weight[..., None] * decay[..., None] ** lags).sum(1).real
    torch.testing.assert_close(low_rank_kernel(truncated(plain, length=9), length=9), expected)


def test_untruncating_undoes_truncating() -> None:
    plain = system(rank=2)
    there = truncated(plain, length=11)
    assert (there.output_weight - plain.output_weight).abs().max() > 1e-3
    torch.testing.assert_close(untruncated(there, length=11).output_weight, plain.output_weight)


def test_gradients_are_right() -> None:
    inputs = [value.requires_grad_() for value in system(channels=2, modes=2, rank=2)]

    def build(*parts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        given = LowRankSystem(*parts)
        return low_rank_kernel(given, length=5), low_rank_kernel(truncated(given, length=4), length=4)

    assert torch.autograd.gradcheck(build, inputs)


def test_hippo_in_its_new_basis_is_hippo_legs() -> None:
    states = 12
    row, column = np.meshgrid(np.arange(states), np.arange(states), indexing="ij")
    root = np.sqrt((2 * row + 1.0) * (2 * column + 1))
    matrix = -np.where(row > column, root, np.where(row == column, row + 1.0, 0.0))
    drive = np.sqrt(2 * np.arange(states) + 1.0)
    legs = hippo_legs(states)

    def response(s: complex) -> complex:
        """The transfer function from the input to the sum of all states weighted by the input vector."""
        return drive @ np.linalg.solve(s * np.eye(states) - matrix, drive)

    rate, p, b = (
        np.concatenate([half, half.conj()])
        for half in (-0.5 - 1j * legs.frequency.numpy(), legs.low_rank.numpy(), legs.input_weight.numpy())
    )
    for s in (0.3, 2.0 + 1.5j, -0.2 + 7j):
        moved = b.conj() @ np.linalg.solve(s * np.eye(states) - np.diag(rate) + np.outer(p, p.conj()), b)
        np.testing.assert_allclose(moved, response(s), rtol=1e-10)


def test_an_empty_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="`length` must be at least 1, got 0"):
        low_rank_kernel(system(), length=0)
