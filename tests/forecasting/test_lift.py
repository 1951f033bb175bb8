"""Lift from the pressure on a polygon."""

import math

import pytest
import torch

from ssno.forecasting.cloud_scores import contour_force, lift_coefficient, rank_correlation


def contour(points: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    """An ellipse, counter-clockwise, with its outward normals."""
    angle = 2 * math.pi * torch.arange(points, dtype=torch.float64) / points
    place = torch.stack([torch.cos(angle), 0.3 * torch.sin(angle)], dim=-1)
    normal = torch.stack([0.3 * torch.cos(angle), torch.sin(angle)], dim=-1)
    return place[None], (normal / normal.norm(dim=-1, keepdim=True))[None]


def test_a_linear_pressure_pushes_as_archimedes_says() -> None:
    place, _ = contour()
    force = contour_force(place, -3.0 * place[..., 1])  # the fluid weighs 3 per unit of area
    area = math.pi * 0.3 * math.sin(2 * math.pi / 200) / (2 * math.pi / 200)
    torch.testing.assert_close(force, torch.tensor([[0.0, 3.0 * area]], dtype=torch.float64), atol=1e-12, rtol=1e-12)


def test_it_does_not_matter_where_the_contour_begins_nor_the_level_of_pressure() -> None:
    place, _ = contour()
    pressure = torch.randn(1, 200, dtype=torch.float64)
    force = contour_force(place, pressure)
    torch.testing.assert_close(contour_force(place.roll(37, 1), pressure.roll(37, 1)), force)
    torch.testing.assert_close(contour_force(place, pressure + 1e3), force, atol=1e-11, rtol=0)


def test_mirroring_the_contour_turns_the_lift_round() -> None:
    place, _ = contour()
    pressure, inlet = torch.randn(1, 200, dtype=torch.float64), torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    mirror = torch.tensor([1.0, -1.0], dtype=torch.float64)
    lift = lift_coefficient(contour_force(place, pressure), inlet)
    mirrored = lift_coefficient(contour_force((place * mirror).flip(1), pressure.flip(1)), inlet)
    torch.testing.assert_close(mirrored, -lift)


def test_averaged_normals_agree_on_fine_contours() -> None:
    (coarse, fine) = (contour(100), contour(200))
    gaps = []
    for place, normals in (coarse, fine):
        pressure = place[..., 0] ** 2 + torch.sin(3 * place[..., 1])
        gaps.append(contour_force(place, pressure) - contour_force(place, pressure, normals=normals))
    assert gaps[1].abs().max() < gaps[0].abs().max() / 3.5


def test_lift_is_across_the_inlet_and_in_units_of_its_square() -> None:
    inlet = 5.0 * torch.tensor([[math.cos(0.3), math.sin(0.3)]], dtype=torch.float64)
    across, along = torch.tensor([[-math.sin(0.3), math.cos(0.3)]]).double(), inlet / 5
    assert torch.allclose(lift_coefficient(7 * across + 100 * along, inlet), torch.tensor([2 * 7 / 25]).double())


def test_rank_correlation_has_ties_and_constant_lists() -> None:
    one = torch.tensor([1.0, 2.0, 2.0, 4.0], dtype=torch.float64)  # ranks 1, 2.5, 2.5, 4
    other = torch.tensor([1.0, 3.0, 2.0, 4.0], dtype=torch.float64)
    assert rank_correlation(one, other) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert rank_correlation(one, torch.exp(one)) == pytest.approx(1)
    assert rank_correlation(one, torch.zeros(4)) == 0
