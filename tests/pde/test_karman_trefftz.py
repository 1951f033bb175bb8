"""Exact flow past Karman-Trefftz aerofoils against theory, quadrature and finite differences."""

import math

import numpy as np
import pytest

from ssno.pde.problems.kt_foil import Foil, FoilFlow

DEGREE = math.pi / 180


def cases(count: int = 12) -> list[FoilFlow]:
    rng = np.random.default_rng(3)
    ranges = ((0.06, 0.14), (0.0, 0.10), (4 * DEGREE, 18 * DEGREE), (31.0, 94.0), (-5 * DEGREE, 15 * DEGREE))
    drawn = [[rng.uniform(*bounds) for bounds in ranges] for _ in range(count)]
    return [FoilFlow(Foil(ex, ey, tail), speed, angle) for ex, ey, tail, speed, angle in drawn]


def wall_angles(foil: Foil, points: int, phase: float = 0.5) -> np.ndarray:
    return -foil.beta + (np.arange(points) + phase) * 2 * np.pi / points


def polygon_lift(flow: FoilFlow, points: int, phase: float, constant: float = 0.0) -> float:
    """C_L of the pressure on a closed polygon, trapezoid rule: what models are scored with."""
    angle = wall_angles(flow.foil, points, phase)
    place, pressure = flow.foil.wall(angle), flow.pressure(flow.velocity(flow.foil.circle(angle))) + constant
    side, mean = np.roll(place, -1) - place, (pressure + np.roll(pressure, -1)) / 2
    force = (1j * side * mean).sum()
    return float((force * np.exp(-1j * flow.angle)).imag * 2 / flow.speed**2)


def test_nothing_flows_through_the_wall() -> None:
    for flow in cases():
        angle = wall_angles(flow.foil, 256)
        through = (flow.velocity(flow.foil.circle(angle)) * flow.foil.outward_normal(angle).conj()).real
        assert np.abs(through).max() < 1e-12 * flow.speed


def around(flow: FoilFlow) -> tuple[np.ndarray, np.ndarray]:
    """v_x - i v_y and dz' on the image of the circle of 1.3 radii."""
    foil, angle = flow.foil, 2 * np.pi * np.arange(256) / 256
    zeta = foil.circle(angle, stretch=1.3)
    return flow.velocity(zeta).conj(), foil.scale * foil.slope(zeta) * 1j * (zeta - foil.centre) * 2 * np.pi / 256


def test_circulation_is_that_of_the_lift_and_nothing_is_created() -> None:
    for flow in cases():
        conjugate, step = around(flow)
        total = (conjugate * step).sum() / flow.speed  # circulation + i source, counter-clockwise
        assert total.real == pytest.approx(-flow.lift_coefficient / 2, abs=4e-15)
        assert abs(total.imag) < 4e-15


def test_blasius_force_on_a_far_contour_is_the_lift_and_no_drag() -> None:
    for flow in cases():
        conjugate, step = around(flow)
        force = (0.5j * (conjugate**2 * step).sum()).conj() * np.exp(-1j * flow.angle) * 2 / flow.speed**2
        assert force.imag == pytest.approx(flow.lift_coefficient, abs=2e-14)
        assert abs(force.real) < 2e-14


@pytest.mark.parametrize(("tail", "tolerance"), [(0.0, 1e-14), (10.0, 5e-5), (18.0, 5e-5)])
def test_pressure_along_the_wall_adds_up_to_the_lift(tail: float, tolerance: float) -> None:
    flow = FoilFlow(Foil(0.1, 0.05, tail * DEGREE), 1.0, 5 * DEGREE)
    foil, angle = flow.foil, wall_angles(flow.foil, 256)
    zeta = foil.circle(angle)
    step = foil.scale * foil.slope(zeta) * 1j * (zeta - foil.centre) * 2 * np.pi / 256
    force = (1j * step * flow.pressure(flow.velocity(zeta))).sum() * np.exp(-1j * flow.angle) * 2
    assert force.imag == pytest.approx(flow.lift_coefficient, abs=tolerance)


def test_the_polygon_force_is_of_second_order() -> None:
    flows = cases(20)
    worst = [
        max(abs(polygon_lift(flow, m, phase) - flow.lift_coefficient) for flow in flows for phase in (0.25, 0.75))
        for m in (64, 128, 256, 512)
    ]
    assert np.all(np.array(worst) < [5e-3, 1.4e-3, 3.4e-4, 8.5e-5])
    assert all(3.3 < coarse / fine < 4.3 for coarse, fine in zip(worst, worst[1:], strict=False))


def test_a_constant_added_to_the_pressure_lifts_nothing() -> None:
    flow = cases(1)[0]
    assert polygon_lift(flow, 64, 0.5, constant=flow.speed**2) == pytest.approx(polygon_lift(flow, 64, 0.5), abs=1e-14)


def test_the_map_is_inverted_outside_and_refuses_the_inside() -> None:
    rng = np.random.default_rng(0)
    for flow in cases(6):
        foil = flow.foil
        heights = np.exp(rng.uniform(np.log(1e-3), np.log(15), size=2000))
        zeta = foil.circle(rng.uniform(0, 2 * np.pi, size=2000), stretch=1 + heights)
        found, outside = foil.unplaced(foil.placed(zeta))
        assert outside.all()
        assert np.abs(found - zeta).max() < 1e-12
        place = rng.uniform(-0.1, 1.1, size=2000) + 1j * rng.uniform(-0.2, 0.2, size=2000)
        _, outside = foil.unplaced(place)
        assert (outside == ~inside_polygon(place, foil.wall(wall_angles(foil, 2048, 0.0)))).all()


def inside_polygon(place: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Winding numbers by crossing a ray to the right."""
    inside = np.zeros(place.shape, dtype=bool)
    for start, end in zip(corners, np.roll(corners, -1), strict=True):
        spans = (start.imag > place.imag) != (end.imag > place.imag)
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = start.real + (place.imag - start.imag) * (end.real - start.real) / (end.imag - start.imag)
        inside ^= spans & (place.real < cross)
    return inside


def test_the_flow_has_neither_sources_nor_vorticity() -> None:
    rng = np.random.default_rng(1)
    for flow in cases(4):
        foil = flow.foil
        place = foil.placed(foil.circle(rng.uniform(0, 2 * np.pi, size=200), stretch=rng.uniform(1.15, 4, size=200)))
        h = 1e-5
        east, west, north, south = (flow.velocity(foil.unplaced(place + by)[0]) for by in (h, -h, 1j * h, -1j * h))
        along, across = (east - west) / (2 * h), (north - south) / (2 * h)
        size = np.abs(along) + np.abs(across)
        assert (np.abs(along.real + across.imag) / size).max() < 7e-8
        assert (np.abs(along.imag - across.real) / size).max() < 7e-8


@pytest.mark.parametrize("ex", [0.0, 0.05, 0.2])
def test_joukowski_lift_and_chord(ex: float) -> None:
    foil = Foil(ex, 0.0, 0.0)
    assert 1 / abs(foil.scale) == pytest.approx(4 * (1 + ex) ** 2 / (1 + 2 * ex), rel=4e-15)
    lift = 2 * math.pi * (1 + ex / (1 + ex)) * math.sin(0.1)
    assert FoilFlow(foil, 3.0, 0.1).lift_coefficient == pytest.approx(lift, abs=2e-15)
    zeta = foil.circle(np.linspace(0.3, 6.0, 40), stretch=1.1)
    np.testing.assert_allclose(foil.raw(zeta), zeta + 1 / zeta, rtol=1e-14)


def test_a_circular_arc_lifts_without_incidence() -> None:
    foil = Foil(0.0, 0.1, 0.0)
    assert 1 / abs(foil.scale) == pytest.approx(4, rel=2e-15)
    assert FoilFlow(foil, 1.0, 0.0).lift_coefficient == pytest.approx(2 * math.pi * 0.1, abs=2e-15)


def test_the_circle_is_flowed_past_as_in_the_textbook() -> None:
    flow = FoilFlow(Foil(0.0, 0.0, math.pi), 2.0, 0.1)
    assert flow.lift_coefficient == pytest.approx(4 * math.pi * math.sin(0.1), abs=1e-14)
    angle = np.linspace(0.2, 6.0, 50)
    speed = 2.0 * np.abs(2 * np.sin(angle - 0.1) + 2 * math.sin(0.1))
    np.testing.assert_allclose(np.abs(flow.velocity(flow.foil.circle(angle))), speed, atol=1e-14)


def test_the_pressure_of_a_flat_plate_misses_the_suction_at_its_nose() -> None:
    attack = 0.1
    flow = FoilFlow(Foil(1e-9, 0.0, 0.0), 1.0, attack)
    lift = polygon_lift(flow, 4096, 0.5)
    assert lift / flow.lift_coefficient == pytest.approx(math.cos(attack) ** 2, abs=1e-3)


def test_derivatives_are_those_of_the_map() -> None:
    foil = Foil(0.1, 0.05, 0.2)
    zeta = foil.circle(np.linspace(0, 6.2, 60), stretch=1.2)
    numeric = (foil.raw(zeta + 1e-6) - foil.raw(zeta - 1e-6)) / 2e-6
    np.testing.assert_allclose(foil.slope(zeta), numeric, rtol=1e-8, atol=1e-9)


def test_a_circle_that_does_not_enclose_the_singular_points_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`ex` must be at least 0 and `tail` lie between 0 and pi, got -0.1 and 0.0"):
        Foil(-0.1, 0.0, 0.0)
