"""Spherical harmonics: quadrature, Legendre functions, scalar and vector transforms, refusals."""

import numpy as np
import pytest
import torch
from scipy.special import sph_harm_y
from torch import Tensor

from ssno.transforms import SphereGrid, SphereTransform, VectorTransform
from ssno.transforms.sphere import clenshaw_curtis, gauss_legendre, legendre, legendre_tables

GRIDS = [
    (SphereGrid(32, 64), 16),
    (SphereGrid(33, 65), 17),
    (SphereGrid(32, 63, "gauss"), 32),
    (SphereGrid(31, 62, "gauss"), 31),
]
names = [f"{grid.kind}-{grid.nlat}x{grid.nlon}" for grid, _ in GRIDS]


def random_modes(degrees: int, *batch: int, dtype: torch.dtype = torch.float64, means: bool = True) -> Tensor:
    """Coefficients (m, l, *batch) of real fields."""
    modes = torch.complex(torch.randn(degrees, degrees, *batch), torch.randn(degrees, degrees, *batch))
    inside = torch.arange(degrees)[:, None] <= torch.arange(degrees)
    modes = modes * inside.reshape(degrees, degrees, *[1] * len(batch))
    modes[0].imag = 0
    if not means:
        modes[:, 0] = 0
    return modes.to(torch.complex128 if dtype == torch.float64 else torch.complex64)


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("rule", [gauss_legendre, clenshaw_curtis])
@pytest.mark.parametrize("points", [2, 7, 32, 129])
def test_quadratures_integrate_polynomials_of_their_degree(rule, points: int) -> None:
    x, weights = rule(points)
    highest = 2 * points - 1 if rule is gauss_legendre else points - 1
    assert weights.sum() == pytest.approx(2, abs=1e-14)
    assert (np.diff(x) < 0).all()
    for degree in {0, highest // 2, highest - highest % 2}:
        exact = 2 / (degree + 1) if degree % 2 == 0 else 0
        assert weights @ x**degree == pytest.approx(exact, abs=1e-14)


def test_all_legendre_functions_are_orthonormal_on_gauss_points() -> None:
    x, weights = gauss_legendre(128)
    table = legendre(x, degrees=128)
    gram = 2 * np.pi * np.einsum("k,mlk,mnk->mln", weights, table, table)
    expected = np.stack([np.diag((np.arange(128) >= m).astype(float)) for m in range(128)])
    assert np.abs(gram - expected).max() < 1e-13


def test_legendre_functions_are_those_of_scipy_without_the_phase() -> None:
    theta = np.linspace(0, np.pi, 23)
    table = legendre(np.cos(theta), degrees=20)
    for l in range(20):
        for m in range(l + 1):
            theirs = (-1) ** m * sph_harm_y(l, m, theta, 0.0).real
            np.testing.assert_allclose(table[m, l], theirs, atol=3e-14)


def test_slopes_and_turns_are_the_gradient_of_a_harmonic() -> None:
    theta, step = np.linspace(0.2, 3.0, 15), 1e-5
    values, slopes, turns = legendre_tables(np.cos(theta), degrees=12)
    above, below = (legendre(np.cos(theta + side * step), degrees=12) for side in (1, -1))
    np.testing.assert_allclose(slopes, (above - below) / (2 * step), atol=1e-7)
    np.testing.assert_allclose(turns, np.arange(12)[:, None, None] * values / np.sin(theta), atol=1e-13)


@pytest.mark.parametrize(("grid", "degrees"), GRIDS, ids=names)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-6)], ids=["f64", "f32"])
def test_a_field_and_its_coefficients_are_one(grid, degrees: int, dtype: torch.dtype, tolerance: float) -> None:
    transform = SphereTransform(grid, degrees=degrees, dtype=dtype)
    modes = random_modes(degrees, 3, dtype=dtype)
    assert apart(transform.analyse_leading(transform.synthesise_leading(modes)), modes) < tolerance


@pytest.mark.parametrize("grid", [SphereGrid(128, 256, "gauss"), SphereGrid(255, 510)], ids=["gauss", "equiangular"])
def test_128_degrees_come_back_to_a_part_in_1e13(grid) -> None:
    modes = random_modes(128)
    transform = SphereTransform(grid, degrees=128, dtype=torch.float64)
    assert apart(transform.analyse_leading(transform.synthesise_leading(modes)), modes) < 1e-13


def test_coefficients_hold_the_energy_of_the_field() -> None:
    grid = SphereGrid(32, 64)
    modes = random_modes(12)
    field = SphereTransform(grid, degrees=12, dtype=torch.float64).synthesise_leading(modes)
    energy = 4 * torch.pi * (field**2 * torch.from_numpy(grid.area)).sum()
    assert energy == pytest.approx(float((modes[0].abs() ** 2).sum() + 2 * (modes[1:].abs() ** 2).sum()), rel=1e-13)


def test_trailing_space_axes_give_the_same_as_leading_ones() -> None:
    transform = SphereTransform(SphereGrid(16, 32), degrees=8)
    field = torch.randn(2, 3, 16, 32)
    modes = transform.analyse(field)
    assert modes.shape == (2, 3, 8, 8)
    leading = transform.analyse_leading(field.permute(3, 2, 0, 1))
    torch.testing.assert_close(modes, leading.permute(2, 3, 1, 0))
    torch.testing.assert_close(transform.synthesise(modes), transform.synthesise_leading(leading).permute(2, 3, 1, 0))


@pytest.mark.parametrize(("grid", "degrees"), GRIDS, ids=names)
def test_a_velocity_and_its_vorticity_and_divergence_are_one(grid, degrees: int) -> None:
    transform = VectorTransform(grid, degrees=degrees, radius=3.0, dtype=torch.float64)
    vorticity, divergence = random_modes(degrees, means=False), random_modes(degrees, means=False)
    u, v = transform.velocity(vorticity, divergence).unbind(2)
    found_divergence, found_vorticity = transform.divergence_and_curl(u, v)
    assert apart(found_vorticity, vorticity) < 1e-12
    assert apart(found_divergence, divergence) < 1e-12


def test_gradients_have_no_curl_and_rotations_no_divergence() -> None:
    transform = VectorTransform(SphereGrid(24, 48, "gauss"), degrees=16, dtype=torch.float64)
    modes = random_modes(16, means=False)
    nothing = torch.zeros_like(modes)
    u, v = transform.velocity(nothing, modes).unbind(2)
    assert transform.divergence_and_curl(u, v)[1].abs().max() < 1e-12
    u, v = transform.velocity(modes, nothing).unbind(2)
    assert transform.divergence_and_curl(u, v)[0].abs().max() < 1e-12


def test_solid_rotation_is_what_it_should_be_also_at_the_poles() -> None:
    grid = SphereGrid(17, 32)
    transform = VectorTransform(grid, degrees=4, radius=2.0, dtype=torch.float64)
    vorticity = transform.analyse_leading(torch.from_numpy(grid.rule[0]).expand(32, 17))  # 2 u0 cos(theta) / a, u0 = 1
    u, v = transform.velocity(vorticity, torch.zeros_like(vorticity)).unbind(2)
    np.testing.assert_allclose(u.numpy(), np.sin(grid.colatitudes)[None].repeat(32, 0), atol=1e-14)
    assert v.abs().max() < 1e-14


def test_gradients_flow_through_both_transforms() -> None:
    transform = SphereTransform(SphereGrid(6, 12), degrees=3, dtype=torch.float64)
    field = torch.randn(6, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda f: transform.synthesise(transform.analyse(f)), field)


def test_tables_are_not_saved_and_follow_the_module() -> None:
    transform = VectorTransform(SphereGrid(6, 12), degrees=3)
    assert not transform.state_dict()
    assert transform.double().values.dtype == torch.float64


@pytest.mark.parametrize(
    ("grid", "degrees", "products"),
    [
        (SphereGrid(64, 128), 33, False),
        (SphereGrid(64, 128), 23, True),
        (SphereGrid(64, 128, "gauss"), 65, False),
        (SphereGrid(64, 100, "gauss"), 51, False),
        (SphereGrid(16, 32, "gauss"), 12, True),
        (SphereGrid(64, 128), 0, False),
    ],
)
def test_truncations_that_alias_are_refused(grid, degrees: int, products: bool) -> None:
    with pytest.raises(ValueError, match="`degrees` must lie between 1 and"):
        grid.check_degrees(degrees, products=products)
    if degrees:
        grid.check_degrees(degrees - 1, products=products)


def test_an_aliasing_transform_would_have_been_wrong_by_order_one() -> None:
    grid = SphereGrid(64, 128)
    x, weights = grid.rule
    table = legendre(x, degrees=64)
    gram = 2 * np.pi * np.einsum("k,lk,nk->ln", weights, table[0], table[0])
    assert np.abs(gram - np.eye(64)).max() > 0.3
    with pytest.raises(ValueError, match="alias silently"):
        SphereTransform(grid, degrees=64)


def test_area_weights_sum_to_one() -> None:
    for grid, _ in GRIDS:
        assert grid.area.sum() * grid.nlon == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(SphereGrid(33, 4).area[0] * 8, 1 / (32**2 - 1), rtol=1e-12)
    np.testing.assert_allclose(SphereGrid(32, 4).area[0] * 8, 1 / 31**2, rtol=1e-12)


def test_grids_and_fields_that_make_no_sense_are_refused(as_users_call_it) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        SphereGrid(4, 8, "hexagonal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nlat >= 2"):
        SphereGrid(1, 8)
    with pytest.raises(ValueError, match="`points` of a quadrature must be at least 1"):
        gauss_legendre(0)
    with pytest.raises(ValueError, match="`degrees` must be at least 1"):
        legendre(np.zeros(3), degrees=0)
    with pytest.raises(ValueError, match="this transform is for the grid 6 x 12"):
        SphereTransform(SphereGrid(6, 12), degrees=3).analyse(torch.zeros(6, 10))
    with pytest.raises(ValueError, match="`radius` must be a positive finite number"):
        VectorTransform(SphereGrid(6, 12), degrees=3, radius=0.0)
