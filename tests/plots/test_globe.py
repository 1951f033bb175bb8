"""Maps and globes: what the eye sees is where it should be, pictures appear whole."""

import numpy as np
import pytest
from PIL import Image

from ssno.plots.animation import animate_globe
from ssno.plots.geometries import sampled, seen_from, sphere_panels
from ssno.plots.style import Labels

NLAT, NLON = 19, 36
THETA = np.linspace(0, np.pi, NLAT)[:, None]
LAMBDA = 2 * np.pi * np.arange(NLON) / NLON


def test_the_centre_of_a_globe_is_the_point_below_the_eye() -> None:
    x = np.sin(THETA) * np.cos(LAMBDA)
    y = np.sin(THETA) * np.sin(LAMBDA)
    z = np.cos(THETA) + 0 * LAMBDA
    for latitude, longitude in ((0, 0), (30, 50), (-60, 200), (90, 0)):
        phi, lam = np.deg2rad(latitude), np.deg2rad(longitude)
        expected = (np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi))
        for field, value in zip((x, y, z), expected, strict=True):
            picture = seen_from(field, latitude=latitude, longitude=longitude, pixels=41)
            assert picture[20, 20] == pytest.approx(value, abs=0.02)


def test_north_is_up_east_is_right_and_corners_are_empty() -> None:
    north = np.cos(THETA) + 0 * LAMBDA
    east = np.sin(THETA) * np.sin(LAMBDA)
    up, right = (seen_from(field, latitude=0, longitude=0, pixels=41) for field in (north, east))
    assert up[35, 20] > 0.5 > -0.5 > up[5, 20]
    assert right[20, 35] > 0.5 > -0.5 > right[20, 5]
    assert np.isnan(up[0, 0])


def test_values_between_points_are_between() -> None:
    field = np.random.default_rng(0).normal(size=(NLAT, NLON))
    found = sampled(field, np.broadcast_to(THETA, field.shape), np.broadcast_to(LAMBDA, field.shape))
    np.testing.assert_allclose(found, field, atol=1e-12)


def test_panels_and_animations_appear(tmp_path) -> None:
    frames = np.random.default_rng(0).normal(size=(5, 8, 16))
    figure = sphere_panels(frames, 0.9 * frames, times=[0.0, 1.0, 2.0, 3.0, 4.0], labels=Labels("vorticity"))
    assert len(figure.axes) == 3 * 5 + 3
    path = animate_globe(frames, tmp_path / "globe.gif", titles=["a"] * 5)
    with Image.open(path) as image:
        assert image.n_frames == 5
    with pytest.raises(ValueError, match="must end in .gif"):
        animate_globe(frames, tmp_path / "globe.mp4", titles=["a"] * 5)
