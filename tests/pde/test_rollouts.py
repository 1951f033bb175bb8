"""From steps to frames, from batches to blocks: what is yielded, reported and raised."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.base.device import threads
from ssno.pde.geometry import Axis
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4
from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.spectral import advection_diffusion
from ssno.pde.stepping import FrameDone, in_blocks, integrate, one_thread, spectral_frames, steps_between


def test_frames_come_every_so_many_steps() -> None:
    times: list[float] = []

    def step(state: Tensor, time: float) -> Tensor:
        times.append(time)
        return state + 1

    start = torch.zeros(2, 1, 3, dtype=torch.complex128)
    frames = list(integrate(step, start, dt=0.5, frames=3, steps_per_frame=2))
    assert [frame[0, 0, 0].real.item() for frame in frames] == [2, 4, 6]
    assert times == [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]


def test_a_divergence_is_named_to_the_step() -> None:
    """Trajectory 1 squares 10 until it overflows: 10^(2^9) is infinite, at the ninth step."""
    start = torch.tensor([1.0, 10.0, 1.0], dtype=torch.complex128).reshape(3, 1, 1)
    frames = integrate(lambda state, time: state.square(), start, dt=0.5, frames=4, steps_per_frame=5)
    assert torch.isfinite(next(frames)).all()
    with pytest.raises(SolverDiverged, match="Trajectory 1 .* at solver step 9, time 4.5") as caught:
        next(frames)
    assert (caught.value.trajectory, caught.value.step, caught.value.time) == (1, 9, 4.5)


def test_a_step_that_does_not_repeat_itself_is_found_out() -> None:
    answers = iter([float("nan"), 1.0])
    start = torch.zeros(1, 1, 1, dtype=torch.complex128)
    frames = integrate(lambda state, time: state + next(answers), start, dt=1.0, frames=1, steps_per_frame=1)
    with pytest.raises(AssertionError, match="an interval that diverged did not diverge when repeated"):
        next(frames)


def test_stored_frames_are_fields_on_every_nth_point() -> None:
    axis = Axis("x", 1.0, 12)
    grid = SpectralGrid([axis], dealias=False)
    equation = advection_diffusion(grid, diffusivity=0.1)
    initial = np.sin(2 * np.pi * axis.coordinates())[None, None]
    done: list[int] = []
    frames = spectral_frames(
        etdrk4(equation, 0.1), grid, initial, dt=0.1, frames=3, steps_per_frame=2, stride=3, frame_done=done.append
    )
    decay = np.exp(-0.1 * (2 * np.pi) ** 2 * np.array([0, 0.2, 0.4]))
    np.testing.assert_allclose(frames[0, :, 0], decay[:, None] * initial[0, :, ::3], atol=1e-15)
    assert np.array_equal(frames[:, 0], initial[..., ::3])
    assert done == [2, 3]


def square_block(block: list[int], frame_done: FrameDone) -> np.ndarray:
    frame_done(2)
    return np.array(block) ** 2


def test_blocks_always_have_the_same_size_and_keep_the_order() -> None:
    sizes: list[int] = []

    def solve(block: list[int], frame_done: FrameDone) -> np.ndarray:
        sizes.append(len(block))
        return square_block(block, frame_done)

    assert in_blocks(solve, [3, 1, 4, 1, 5], size=2, frames=2).tolist() == [9, 1, 16, 1, 25]
    assert sizes == [2, 2, 2]


def test_groups_do_not_share_blocks() -> None:
    blocks: list[list[int]] = []

    def solve(block: list[int], frame_done: FrameDone) -> np.ndarray:
        blocks.append(block)
        return square_block(block, frame_done)

    solved = in_blocks(solve, [1, 2, 3, 4, 5], size=2, frames=2, group=lambda number: number % 2)
    assert solved.tolist() == [1, 4, 9, 16, 25]
    assert blocks == [[2, 4], [1, 3], [5, 5]]


def test_progress_counts_wanted_frames_only() -> None:
    calls: list[tuple[int, int]] = []
    in_blocks(square_block, [1, 2, 3], size=2, frames=2, progress=lambda *call: calls.append(call))
    assert calls == [(4, 6), (6, 6)]


def test_a_divergence_in_a_block_is_counted_from_the_start_of_the_batch() -> None:
    def solve(block: list[int], frame_done: FrameDone) -> np.ndarray:
        if 7 in block:
            raise SolverDiverged(block.index(7), 11, 0.5)
        return np.array(block)

    with pytest.raises(SolverDiverged, match="Trajectory 4 of the batch is no longer finite at solver step 11"):
        in_blocks(solve, [0, 1, 2, 3, 7], size=2, frames=2)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="`parameters` is empty: there is no trajectory to solve"):
        in_blocks(square_block, [], size=2, frames=2)


def fail_on_one_thread() -> None:
    with one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError


def test_the_thread_count_is_restored_even_after_an_error() -> None:
    with threads(2):
        with pytest.raises(KeyError):
            fail_on_one_thread()
        assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("interval", "longest", "steps"), [(0.1, 0.005, 20), (0.1, 0.03, 4), (0.1, 1.0, 1), (0.01, 5e-4, 20)]
)
def test_intervals_are_divided_evenly(interval: float, longest: float, steps: int) -> None:
    assert steps_between(interval, longest) == steps
