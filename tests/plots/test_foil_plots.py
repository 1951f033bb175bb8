"""Pictures of flow past an aerofoil."""

import numpy as np
import torch

from ssno.data.trajectories import Trajectories
from ssno.pde.problems.kt_foil import KTFoil
from ssno.plots.geometries import flow_pictures, pressure_curve, pressure_panels


def test_the_pressure_is_drawn_around_the_foil_and_along_its_wall() -> None:
    problem = KTFoil(points=400, wall_points=64)
    solution = problem.solve([problem.draw(np.random.default_rng(0))])
    assert solution.context is not None
    place, truth, wall = solution.context[0, 0, :2].T, solution.state[0, 1, 2], np.arange(400) < 64
    figure = pressure_panels(place, truth, truth + 0.1, wall)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["truth", "forecast", "forecast - truth"]
    difference = figure.axes[2].collections[0].get_array()
    np.testing.assert_allclose(difference, 0.2, atol=1e-6)
    curve, shape = pressure_curve(place[:64], truth[:64], truth[:64] + 0.1).axes
    drawn, forecast = (line.get_ydata() for line in curve.lines)
    np.testing.assert_allclose(forecast - drawn, 0.2)
    assert curve.yaxis_inverted()
    assert len(shape.lines[0].get_xdata()) == 65


def test_pictures_of_a_case_are_drawn_on_request() -> None:
    problem = KTFoil(points=200, wall_points=32)
    solution = problem.solve([problem.draw(np.random.default_rng(0))])
    assert solution.context is not None
    both = np.concatenate([solution.state, np.broadcast_to(solution.context, (1, 2, 5, 200))], axis=2)
    names = [*problem.fields, *problem.context_fields]
    data = Trajectories.from_array(both, fields=names, context_fields=problem.context_fields)
    found = flow_pictures(data, 0, torch.from_numpy(solution.state[0, 1]).float())
    assert list(found) == ["pressure", "wall"]
    assert found["wall"]().axes[0].get_ylabel() == "C_p"


def test_triangles_inside_the_foil_are_left_out() -> None:
    angle = 2 * np.pi * np.arange(12) / 12
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    place = np.concatenate([0.2 * circle, 0.5 * circle])
    figure = pressure_panels(place, np.arange(24.0), np.arange(24.0), np.arange(24) < 12)
    mesh = figure.axes[0].collections[0]._triangulation
    radii = np.linalg.norm(place[mesh.triangles].mean(axis=1), axis=1)
    np.testing.assert_array_equal(mesh.mask, radii < 0.2)
