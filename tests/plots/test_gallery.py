"""Pictures of trajectories: what is up, what is right, which colours."""

import numpy as np
import pytest

from ssno.data.trajectories import Trajectories
from ssno.plots.fields import as_drawn, gallery, velocity_channels, vorticity_magnitude
from ssno.plots.style import colours


def images(figure):
    return [image for axes in figure.axes for image in axes.get_images()]


def test_space_time_pictures_have_time_running_downwards() -> None:
    state = np.zeros((2, 4, 1, 8))
    state[1, 3, 0, 7] = 1.0
    figure = gallery(state, fields=["u"], times=np.arange(4.0), lengths=[2.0], numbers=[3, 9], title="a title")
    _, second = images(figure)
    assert second.get_array()[3, 7] == 1
    assert second.get_extent() == [0, 2, 3.5, -0.5]  # bottom is the last time
    assert [axes.get_title() for axes in figure.axes[:2]] == ["trajectory 3", "trajectory 9"]
    assert figure.get_suptitle() == "a title"


def test_frames_have_x_to_the_right_and_y_upwards() -> None:
    state = np.zeros((1, 9, 1, 4, 6))
    state[0, 8, 0, 3, 0] = 1.0  # last frame, largest x, smallest y
    figure = gallery(state, fields=["u"], times=np.arange(9.0), lengths=[2.0, 3.0])
    shown = images(figure)
    assert len(shown) == 5
    last = shown[-1].get_array()
    assert last.shape == (6, 4)
    assert last[-1, -1] == 1  # bottom right
    assert shown[-1].get_extent() == [0, 2, 0, 3]


def test_three_dimensions_are_cut_through_the_middle_of_each_axis() -> None:
    state = np.zeros((1, 2, 1, 4, 6, 8))
    state[0, 1, 0, 2, 3, 4] = 1.0  # the middle of all axes
    figure = gallery(state, fields=["u"], times=np.arange(2.0), lengths=[1.0, 2.0, 3.0])
    shown = images(figure)
    assert [image.get_array().shape for image in shown] == [(6, 4), (6, 4), (8, 4), (8, 4), (8, 6), (8, 6)]
    assert [image.get_array().max() for image in shown] == [0, 1, 0, 1, 0, 1]
    labels = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert [label.split("\n")[1] for label in labels] == [
        "middle z: y over x",
        "middle y: z over x",
        "middle x: z over y",
    ]


def test_every_field_has_its_own_scale_and_at_most_four_are_drawn() -> None:
    state = np.random.default_rng(0).normal(size=(1, 3, 6, 8)) * np.arange(1, 7)[:, None]
    figure = gallery(state, fields=list("abcdef"), times=np.arange(3.0), lengths=[1.0])
    limits = [image.get_clim() for image in images(figure)]
    assert len(limits) == 4
    assert limits == sorted(limits, key=lambda pair: pair[1])


def test_colours_are_symmetric_for_signed_fields_and_survive_constant_and_missing_ones() -> None:
    assert colours(np.array([-1.0, 3.0]))[1:] == (-3, 3)
    assert colours(np.array([1.0, 3.0]))[1:] == (1, 3)
    assert colours(np.array([2.0, 2.0]))[1:] == (1.5, 2.5)
    assert colours(np.array([np.nan, np.inf]))[1:] == (-0.5, 0.5)


def test_a_single_frame_can_be_drawn() -> None:
    figure = gallery(np.ones((1, 1, 1, 8)), fields=["u"], times=np.zeros(1), lengths=[1.0])
    assert images(figure)[0].get_extent() == [0, 1, 0.5, -0.5]


def test_four_space_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="`state` must have 1 to 3 space axes"):
        gallery(np.zeros((1, 1, 1, 2, 2, 2, 2)), fields=["u"], times=np.zeros(1), lengths=[1.0])


def test_a_velocity_in_three_dimensions_also_shows_its_vorticity_seen_through_the_box() -> None:
    """Solid rotation about z in a tube: vorticity 2 inside, seen as a disc along z and as a band from the sides."""
    points = 16
    x, y, z = np.meshgrid(*[np.arange(points) - 7.5] * 3, indexing="ij")
    inside = np.exp(-(((x**2 + y**2) / 12) ** 2))
    state = np.stack([-y * inside, x * inside, 0 * z])[None, None]
    figure = gallery(state, fields=["velocity_x", "velocity_y", "velocity_z"], times=np.zeros(1), lengths=[16.0] * 3)
    shown = [image for image in images(figure) if image.get_cmap().name == "magma"]
    along_z, along_y, along_x = (image.get_array() for image in shown)
    assert along_z[8, 8] > 1.9
    assert along_z[0, 0] < 1e-6
    np.testing.assert_allclose(along_y, np.repeat(along_y[:1], points, axis=0))
    np.testing.assert_allclose(along_y, along_x)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert "|vorticity|, trajectory 0\nseen along z: y over x" in labels


def test_vorticity_is_the_curl_whatever_the_axes_are_called() -> None:
    fields, names = ["pressure", "velocity_b", "velocity_a", "velocity_c"], ["a", "b", "c"]
    assert velocity_channels(fields, names) == [2, 1, 3]
    assert velocity_channels(["velocity_a", "velocity_b"], names) is None
    at = 2 * np.pi * np.arange(64) / 64
    shear = np.zeros((3, 64, 4, 8))
    shear[1] = np.sin(at)[:, None, None]  # u_b(a), whose vorticity is cos(a) along c
    expected = np.broadcast_to(np.abs(np.cos(at))[:, None, None], (64, 4, 8))
    np.testing.assert_allclose(vorticity_magnitude(shear, [2 * np.pi, 1.0, 1.0]), expected, atol=2e-3)


def test_boxes_are_drawn_as_planes_and_the_vorticity_seen_through_them() -> None:
    points, fields = 8, ("velocity_x", "velocity_y", "velocity_z")
    at = 2 * np.pi * np.arange(points) / points
    state = np.zeros((1, 2, 3, points, points, points), np.float32)
    state[0, :, 1] = np.sin(at)[:, None, None] * (at == at[2])  # v(x) in one plane z, and none in the middle
    data = Trajectories.from_array(state, fields=fields, lengths=[2 * np.pi] * 3)
    *components, spin = as_drawn(data, state[0], state[0, 1:])
    assert [one.name for one in (*components, spin)] == [*fields, "vorticity"]
    assert [values.shape for values in spin.values] == [(2, points, points), (1, points, points)]
    np.testing.assert_array_equal(components[1].values[0], state[0, :, 1, :, :, 4])
    assert spin.values[1].max() > 0.8
    assert components[1].labels.titled("v").title == "v, middle z"
    assert spin.labels.titled("spin").title == "spin, seen along z"
    flat = Trajectories.from_array(state[..., 0], fields=fields, lengths=[2 * np.pi] * 2)
    assert [one.labels.titled("u").title for one in as_drawn(flat, state[..., 0])] == ["u"] * 3
