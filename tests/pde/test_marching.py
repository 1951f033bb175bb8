"""Every trajectory on its own clock: exact arrival, independence, refilled lanes, named failures."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ssno.pde.problems.problem import SolverDiverged
from ssno.pde.stepping import march

TIMES = np.array([0.0, 0.3, 0.5, 1.0])


class Decay:
    """u' = -u with a step of its own for each trajectory: 0.07 |u|."""

    def rate(self, state: Tensor) -> Tensor:
        return -state

    def time_step(self, state: Tensor) -> Tensor:
        return 0.07 * state.abs().flatten(1).amax(dim=1)


class Explosion(Decay):
    """u' = u^2, infinite at t = 1 / u(0); the step does not notice."""

    def rate(self, state: Tensor) -> Tensor:
        return state.square()

    def time_step(self, state: Tensor) -> Tensor:
        return torch.where(torch.isfinite(state), 0.1, torch.nan).flatten(1).amin(dim=1)


class LateExplosion(Explosion):
    """As above, but infinities slip through the step; the stored frame must catch them."""

    def time_step(self, state: Tensor) -> Tensor:
        return torch.full((state.shape[0],), 0.1, dtype=torch.float64)


def starts(*values: float) -> np.ndarray:
    return np.array(values)[:, None, None]


def test_trajectories_arrive_exactly_at_the_stored_times() -> None:
    states = march(Decay(), starts(1.0, 0.3), TIMES, lanes=2)[..., 0, 0]
    np.testing.assert_allclose(states, np.outer([1.0, 0.3], np.exp(-TIMES)), rtol=2e-3)
    np.testing.assert_array_equal(states[:, 0], [1.0, 0.3])


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_lanes_and_order_do_not_change_a_bit(lanes: int) -> None:
    values = (1.0, 0.2, 0.7, 0.05, 0.9)
    alone = np.concatenate([march(Decay(), starts(value), TIMES, lanes=1) for value in values])
    assert np.array_equal(march(Decay(), starts(*values), TIMES, lanes=lanes), alone)
    assert np.array_equal(march(Decay(), starts(*values[::-1]), TIMES, lanes=lanes), alone[::-1])


def test_progress_rises_to_the_total() -> None:
    calls: list[tuple[int, int]] = []
    march(Decay(), starts(1.0, 0.4, 0.6), TIMES, lanes=2, progress=lambda *call: calls.append(call))
    done, totals = zip(*calls, strict=True)
    assert list(done) == sorted(set(done))
    assert done[-1] == 12
    assert set(totals) == {12}


@pytest.mark.parametrize("scheme", [Explosion(), LateExplosion()])
def test_an_explosion_stops_the_march_and_names_trajectory_step_and_time(scheme: Explosion) -> None:
    with pytest.raises(SolverDiverged, match="Trajectory 2 of the batch is no longer finite") as caught:
        march(scheme, starts(0.1, 0.2, 5.0, 0.1), np.array([0.0, 3.0]), lanes=2)
    assert 0 < caught.value.step <= 31
    assert 0.2 < caught.value.time <= 3.0
