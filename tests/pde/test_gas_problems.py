"""CE-RM and GCE-RT: initial statistics, symmetry, channels and independence of the batch."""

import numpy as np
import pytest
import torch
from tests.pde.draws import drawn

from ssno.pde.gas import cell_averages
from ssno.pde.problems.gas import GasProblem, RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.problem import SolverDiverged

SMALL = {"points": 16, "cells": 32, "frames": 3, "frame_interval": 0.05}


def means(problem: GasProblem, count: int) -> np.ndarray:
    """Mean over cells and trajectories of what the gas starts from."""
    parameters = drawn(problem, count)
    fields = [
        cell_averages(lambda x, y, one=one: problem.gas_at(one, x, y), problem.axes, samples=8) for one in parameters
    ]
    return torch.stack(fields).mean(dim=(0, 2, 3)).numpy()


def test_the_heavy_disc_has_the_published_mean_area() -> None:
    """Mean density 1.19642: pi (1/16 + epsilon^2 E R^2 / 2), which fixes epsilon = 0.02."""
    density, _, _, energy, dye = means(RichtmyerMeshkov(points=64), 60)
    assert density == pytest.approx(1.19643, abs=2e-4)
    assert dye == pytest.approx(2 * (density - 1), abs=1e-12)
    assert 0.4 * energy == pytest.approx(1 + 19 * np.pi * 0.01, abs=3e-3)


def test_amplitudes_of_the_rim_add_up_to_one_and_move_it_as_one_cosine() -> None:
    problem = RichtmyerMeshkov()
    one = drawn(problem, 1)[0]
    assert one["amplitude"].sum() == pytest.approx(1)
    angle = torch.linspace(-3, 3, 50, dtype=torch.float64)
    turn = (one["amplitude"] * np.exp(2j * np.pi * one["phase"])).sum()
    expected = 0.25 + 0.02 * np.real(turn * np.exp(1j * angle.numpy()))
    np.testing.assert_allclose(problem.rim(one, angle).numpy(), expected, atol=1e-14)


def test_the_star_has_the_published_mean_density_pressure_and_potential() -> None:
    """0.8970, 0.7134 and -1.7056 over all frames; means of mass and potential do not change in time."""
    density, _, _, energy, _, potential = means(RayleighTaylor(points=32), 400)
    assert density == pytest.approx(0.8970, rel=0.01)
    assert energy == pytest.approx(0.7134, rel=0.02)
    assert potential == pytest.approx(-1.7056, rel=0.02)


def test_channels_are_primitive_and_known_fields_are_dye_and_potential() -> None:
    for problem in (RichtmyerMeshkov(**SMALL), RayleighTaylor(**SMALL)):
        parameters = drawn(problem, 2)
        solution = problem.solve(parameters)
        context = solution.context
        assert context is not None
        assert context.shape == (2, 3, len(problem.context_fields), 16, 16)
        assert (solution.state[:, 0, 1:3] == 0).all()
        assert np.abs(solution.state[:, -1, 1:3]).max() > 1e-3
        x, y = (torch.from_numpy(axis.coordinates()) for axis in problem.axes)
        at_points = problem.gas_at(parameters[0], *torch.meshgrid(x, y, indexing="ij")).numpy()
        smooth = np.abs(solution.state[0, 0, 0] - at_points[0]) < 0.02
        assert smooth.mean() > 0.6
        if "potential" in problem.context_fields:
            assert (context[:, :, 1] == context[:, :1, 1]).all()
            np.testing.assert_allclose(context[0, 0, 1], at_points[5], atol=1e-2)
    assert (RichtmyerMeshkov().times[-1], RayleighTaylor().times[-1]) == (pytest.approx(2.0), pytest.approx(5.0))


def test_cells_are_strided_as_the_public_grid_is() -> None:
    assert RichtmyerMeshkov().axes[0].offset == 1 / 256
    assert RayleighTaylor().axes[0].offset == -0.5 + 1 / 256
    coarse, fine = RichtmyerMeshkov(**SMALL), RichtmyerMeshkov(**{**SMALL, "points": 32})
    parameters = drawn(coarse, 1)
    np.testing.assert_array_equal(coarse.solve(parameters).state, fine.solve(parameters).state[..., ::2, ::2])


@pytest.mark.parametrize("kind", [RichtmyerMeshkov, RayleighTaylor])
def test_a_finer_solver_is_averaged_to_the_published_grid(kind: type[GasProblem]) -> None:
    """Mass and momentum of a stored cell are the means of those of its four cells."""
    fine = kind(**{**SMALL, "points": 32})
    refined = kind(**{**SMALL, "cells": 16, "refine": 2})
    assert refined.solver_axes == fine.solver_axes
    assert refined.axes[0].offset == fine.lower + 1 / 32
    parameters = drawn(fine, 1)
    there, here = fine.solve(parameters).state, refined.solve(parameters).state
    quads = there.reshape(1, 3, 4, 16, 2, 16, 2)
    np.testing.assert_allclose(here[:, :, 0], quads[:, :, 0].mean(axis=(3, 5)), rtol=1e-14)
    momentum = (quads[:, :, 0] * quads[:, :, 1]).mean(axis=(3, 5))
    np.testing.assert_allclose(here[:, :, 0] * here[:, :, 1], momentum, rtol=1e-11, atol=1e-15)


def test_modes_that_are_multiples_of_four_keep_quarter_turns() -> None:
    problem = RayleighTaylor(points=32, cells=32, frames=2, frame_interval=0.5)
    state = problem.solve(drawn(problem, 1)).state[0, -1]
    np.testing.assert_allclose(np.rot90(state[0]), state[0], atol=1e-11)
    assert abs(state[1].mean()) < 1e-13
    assert state[1].std() == pytest.approx(state[2].std(), rel=1e-9)
    literal = RayleighTaylor(points=32, cells=32, frames=2, frame_interval=0.5, mode=1, amplitude=1.0)
    tilted = literal.solve(drawn(literal, 1)).state[0, -1]
    assert np.abs(np.rot90(tilted[0]) - tilted[0]).max() > 1e-2


def test_what_is_not_finite_is_reported_and_progress_reaches_the_total() -> None:
    problem, calls = RichtmyerMeshkov(**SMALL), []
    parameters = drawn(problem, 2)
    problem.solve(parameters, progress=lambda *call: calls.append(call))
    assert calls[-1] == (6, 6)
    star = RayleighTaylor(**SMALL)
    parameters = drawn(star, 3)
    parameters[1]["central_pressure"] = np.array(np.nan)
    with pytest.raises(SolverDiverged, match="Trajectory 1 of the batch is no longer finite at solver step 0"):
        star.solve(parameters)
