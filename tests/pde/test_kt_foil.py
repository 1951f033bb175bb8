"""Aerofoil cases: ranges, clouds, tasks and the two-frame layout."""

import numpy as np
import pytest

from ssno.pde.problems.kt_foil import BOX, KTFoil, flow_of, wall_distance

SMALL = KTFoil(units="physical", points=512, wall_points=64)


def draws(problem: KTFoil, count: int, split: str = "train") -> list[dict[str, np.ndarray]]:
    return [problem.draw_for(split, np.random.default_rng(seed)) for seed in range(count)]


def test_frame_0_is_the_stream_and_frame_1_the_flow() -> None:
    (case,) = draws(SMALL, 1)
    solution = SMALL.solve([case])
    assert solution.state.shape == (1, 2, 3, 512)
    assert solution.context is not None
    flow = flow_of(case)
    speed, angle = flow.speed, flow.angle
    assert np.all(solution.state[0, 0] == np.array([speed * np.cos(angle), speed * np.sin(angle), 0.0])[:, None])
    v_x, v_y, p = solution.state[0, 1]
    np.testing.assert_allclose(p, (speed**2 - v_x**2 - v_y**2) / 2, atol=1e-9)
    x, y, distance, normal_x, normal_y = solution.context[0, 0]
    (left, right), (low, high) = BOX
    assert x.min() >= left
    assert x.max() <= right
    assert y.min() >= low
    assert y.max() <= high
    assert np.all(distance[:64] == 0)
    assert distance[64:].min() > 0
    np.testing.assert_allclose(np.hypot(normal_x, normal_y), np.arange(512) < 64, atol=1e-14)
    assert (normal_x * v_x + normal_y * v_y)[:64] == pytest.approx(0, abs=1e-9 * speed)
    assert area(x[:64], y[:64]) > 0  # counter-clockwise


def area(x: np.ndarray, y: np.ndarray) -> float:
    return float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)


def test_distances_agree_with_a_finer_polygon() -> None:
    (case,) = draws(SMALL, 1)
    foil, place = flow_of(case).foil, SMALL.cloud(case).place[64:]
    corners = foil.wall(-foil.beta + np.arange(2**17) * 2 * np.pi / 2**17)
    exact = np.array([np.abs(corners - one).min() for one in place[:60]])
    np.testing.assert_allclose(wall_distance(foil, place[:60]), exact, atol=1e-6)


def test_trajectories_are_the_same_in_any_company() -> None:
    cases = draws(SMALL, 3)
    together, alone = SMALL.solve(cases), SMALL.solve(cases[1:2])
    assert np.array_equal(together.state[1], alone.state[0])
    assert together.context is not None
    assert alone.context is not None
    assert np.array_equal(together.context[1], alone.context[0])


def test_draws_do_not_depend_on_the_cloud_and_stay_in_range() -> None:
    drawn = draws(SMALL, 200)
    assert drawn[5] == KTFoil(units="physical", points=4096).draw(np.random.default_rng(5))
    lift = np.array([case["lift_coefficient"] for case in drawn])
    assert -0.6 < lift.min() < 0
    assert 1.5 < lift.max() < 2.5
    angle = np.array([case["angle"] for case in drawn])
    assert -5 <= angle.min() < -4
    assert 14 < angle.max() <= 15


def test_the_aoa_task_is_tested_outside_the_angles_it_trains_on() -> None:
    problem = KTFoil(task="aoa", points=512, wall_points=64)
    inner, outer = ([case["angle"] for case in draws(problem, 100, split)] for split in ("train", "test"))
    assert min(inner) >= -2.5
    assert max(inner) <= 12.5
    assert all(-5 <= one < -2.5 or 12.5 <= one <= 15 for one in outer)
    assert min(outer) < -2.5
    assert max(outer) > 12.5


def test_stream_units_divide_by_the_inlet_speed() -> None:
    stream = KTFoil(units="stream", points=512, wall_points=64)
    (physical_case,), (stream_case,) = draws(SMALL, 1), draws(stream, 1)
    speed = float(physical_case["speed"])
    assert stream_case["lift_coefficient"] == pytest.approx(physical_case["lift_coefficient"], rel=1e-14)
    scale = np.array([speed, speed, speed**2])[:, None]
    np.testing.assert_allclose(stream.solve([stream_case]).state[0] * scale, SMALL.solve([physical_case]).state[0])


def test_progress_is_told_case_by_case() -> None:
    told: list[tuple[int, int]] = []
    SMALL.solve(draws(SMALL, 2), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
