"""Geometries own what follows from the kind of grid."""

import pickle

import numpy as np
import pytest

from ssno.pde import GEOMETRIES, ShallowWater
from ssno.pde.geometry import CARTESIAN, POINT_CLOUD, SPHERE
from ssno.pde.problems.kt_foil import KTFoil
from ssno.transforms.sphere import SphereGrid


def test_names_are_those_of_files() -> None:
    assert list(GEOMETRIES) == ["cartesian", "sphere", "points"]
    assert [str(one) for one in GEOMETRIES.values()] == list(GEOMETRIES)
    assert (ShallowWater.geometry, KTFoil.geometry) == (SPHERE, POINT_CLOUD)


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=str)
def test_a_geometry_survives_pickling(geometry) -> None:
    assert pickle.loads(pickle.dumps(geometry)) == geometry


def test_quadrature_weights_sum_to_one_over_a_sphere() -> None:
    weights = SPHERE.quadrature_weights((9, 16))
    np.testing.assert_array_equal(weights, SphereGrid(9, 16).area[:, None])
    assert np.broadcast_to(weights, (9, 16)).sum() == pytest.approx(1)
    assert (CARTESIAN.quadrature_weights((9, 16)), POINT_CLOUD.quadrature_weights((9,))) == (None, None)


def test_each_axis_has_its_transform() -> None:
    assert CARTESIAN.transforms((True, False)) == ("fourier", "cosine")
    assert SPHERE.transforms((False, True)) == ("none", "fourier")
    assert POINT_CLOUD.transforms((True,)) == ("none",)


def test_spectra_need_a_periodic_axis_of_a_box() -> None:
    assert CARTESIAN.no_spectrum((False, True)) == ""
    assert "no axis is periodic" in CARTESIAN.no_spectrum((False, False))
    assert "a box with a regular grid" in SPHERE.no_spectrum((False, True))


def test_what_needs_a_box_refuses_other_geometries() -> None:
    CARTESIAN.require_box("reflect", "ks")
    with pytest.raises(ValueError, match="`reflect` needs data on a regular grid of a box, but 'swe' has .* 'sphere'"):
        SPHERE.require_box("reflect", "swe")
