"""Pictures show what they are given: lines, bands, images and marks carry the numbers."""

import shutil
import subprocess

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image

from ssno.evaluation.inspection import SamplingGrid, systems_of
from ssno.evaluation.record import Calibration
from ssno.models.registry import model_config
from ssno.plots.animation import AnimationOptions, animate
from ssno.plots.curves import Band, band_of, calibration_plot, ensemble_bands, error_bands, spectra
from ssno.plots.fields import forecast_panels, frame_panels
from ssno.plots.modes import kernel_panels, memory_weights, mode_ridges
from ssno.plots.style import DIFFERENCE_MAP, Figure, Labels, colours, dark, difference_colours

RNG = np.random.default_rng(0)


def test_a_band_holds_the_middle_half_around_the_mean() -> None:
    band = band_of(np.arange(5.0)[:, None] * np.ones((5, 3)))
    assert (band.middle[0], band.lower[0], band.upper[0]) == (2.0, 1.0, 3.0)


def test_errors_are_drawn_with_their_spread_and_what_was_given() -> None:
    values = RNG.uniform(0.1, 1, (6, 4))
    figure = error_bands(
        [1.0, 2.0, 3.0, 4.0], {"a": band_of(values), "b": Band([1.0] * 4, [0.5] * 4, [2.0] * 4)}, given_until=0.5
    )
    (axes,) = figure.axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), values.mean(0))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b", "input"]
    assert axes.get_yscale() == "log"


@pytest.mark.parametrize(("until", "left"), [(1.0, 0.0), (8.0, 7.6)])
def test_time_before_data_that_begin_late_is_left_out(until: float, left: float) -> None:
    bands = {"a": Band([1.0] * 2, [0.5] * 2, [2.0] * 2)}
    (axes,) = error_bands([until + 1, until + 2], bands, given_until=until).axes
    assert axes.get_xlim()[0] == pytest.approx(left)


def test_dark_pictures_have_light_ink_and_no_background() -> None:
    with dark():
        figure = error_bands([1.0, 2.0], {"a": Band([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])})
    assert sum(to_rgb(figure.axes[0].xaxis.label.get_color())) > 2
    assert figure.get_facecolor()[3] == 0
    assert (
        sum(to_rgb(error_bands([1.0, 2.0], {"a": Band([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])}).axes[0].title.get_color()))
        == 0
    )


def test_an_ensemble_is_drawn_as_mean_and_deviations() -> None:
    members, truth = RNG.normal(size=(3, 6, 8)), RNG.normal(size=(6, 8))
    figure = ensemble_bands(np.arange(8.0), members, truth, times=np.arange(6.0).tolist())
    last = figure.axes[-1]
    np.testing.assert_allclose(last.lines[0].get_ydata(), members[:, -1].mean(0))
    np.testing.assert_allclose(last.lines[1].get_ydata(), truth[-1])
    with pytest.raises(ValueError, match="`members` must hold at least 2 forecasts to have a spread, got 1"):
        ensemble_bands(np.arange(8.0), members[:1], truth, times=np.arange(6.0).tolist())


def test_spectra_show_first_and_last_time() -> None:
    energies = {"truth": RNG.uniform(1, 2, (5, 9)), "model": RNG.uniform(1, 2, (5, 9))}
    figure = spectra(np.arange(9.0), energies, times=np.arange(5.0).tolist())
    assert [axes.get_title() for axes in figure.axes] == ["t = 0", "t = 2", "t = 4"]
    np.testing.assert_allclose(figure.axes[-1].lines[1].get_ydata(), energies["model"][4, 1:])


def test_the_energy_of_the_mean_which_is_not_drawn_leaves_the_axis_alone() -> None:
    energies = {"truth": RNG.uniform(1, 2, (2, 9))}
    energies["truth"][:, 0] = 1e-9
    bottom, _ = spectra(np.arange(9.0), energies, times=[0.0, 1.0]).axes[0].get_ylim()
    assert bottom > 0.4


def test_coverage_below_the_diagonal_is_drawn_there() -> None:
    observed = Calibration((0.5, 0.9), (0.3, 0.7), (1.0, 1.0), (2.0, 2.0))
    figure = calibration_plot(observed, times=[3.0, 4.0], time_label="time (h)")
    left, right = figure.axes
    np.testing.assert_allclose(left.lines[1].get_ydata(), [0, 0.3, 0.7])
    np.testing.assert_allclose(right.lines[0].get_xdata(), [3, 4])
    assert (right.get_title(), right.get_xlabel()) == ("spread over error: 0.50", "time (h)")


def test_panels_share_the_colours_of_the_truth_and_survive_what_is_not_finite() -> None:
    truth = RNG.normal(size=(7, 4, 5))
    forecast = truth.copy()
    forecast[-1] = np.nan
    figure = frame_panels(truth, forecast, times=np.arange(7.0).tolist(), lengths=[1.0, 2.0])
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(images) == 15
    assert images[0].get_clim() == images[5].get_clim()
    np.testing.assert_allclose(images[0].get_array(), truth[0].T[::-1])
    lines = forecast_panels(truth[:, 0], np.full((3, 5), np.nan), times=np.arange(7.0).tolist(), length=1.0)
    assert np.isfinite(lines.axes[2].images[0].get_clim()).all()


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_animations_have_a_picture_per_frame(n_dims, tmp_path) -> None:
    truth = RNG.normal(size=(4, *(6, 5, 3)[:n_dims]))
    path = animate(truth, 0.5 * truth, tmp_path / "a" / "b.gif", times=np.arange(4.0).tolist(), lengths=[1.0] * n_dims)
    with Image.open(path) as picture:
        assert picture.n_frames == 4
        assert picture.width == 1080
    assert [file.name for file in path.parent.iterdir()] == ["b.gif"]


def test_an_animation_needs_a_format_that_can_be_written(tmp_path, monkeypatch) -> None:
    frames = np.zeros((2, 4))
    with pytest.raises(ValueError, match=r"`path` must end in .gif or .mp4, got 'a.avi'"):
        animate(frames, frames, tmp_path / "a.avi", times=[0.0, 1.0], lengths=[1.0])
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=r"Writing a.mp4 needs ffmpeg, which is not installed"):
        animate(frames, frames, tmp_path / "a.mp4", times=[0.0, 1.0], lengths=[1.0])
    assert AnimationOptions().suffix == ".gif"
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OSError, match=r"ffmpeg could not write a.mp4: .*--animation.format gif"):
        animate(frames, frames, tmp_path / "a.mp4", times=[0.0, 1.0], lengths=[1.0])
    assert [path.name for path in tmp_path.iterdir()] == ["ffmpeg"]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs ffmpeg")
def test_a_video_shows_the_frames_it_was_given(tmp_path) -> None:
    truth = np.stack([np.full((8, 8), value) for value in (-1.0, 1.0)])
    options = AnimationOptions(width=301, fps=2.5)
    path = animate(truth, None, tmp_path / "a.mp4", times=[0.0, 1.0], lengths=[1.0, 1.0], options=options)
    words = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = np.frombuffer(subprocess.run(words, capture_output=True, check=True).stdout, np.uint8)
    first, last = raw.reshape(2, -1, 300, 3).astype(int)
    middle = (first.shape[0] // 2, 130)
    assert first[middle][2] > first[middle][0] + 50  # blue, then red
    assert last[middle][0] > last[middle][2] + 50


def test_space_time_pictures_leave_gaps_grey_and_keep_their_scale() -> None:
    truth = np.linspace(-2, 1, 40).reshape(5, 8)
    truth[:, 3] = np.nan
    figure = forecast_panels(truth, truth[2:] + 0.5, times=[float(t) for t in range(5)], length=1.0)
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert [image.get_clim() for image in images] == [(-2.0, 2.0), (-2.0, 2.0), (-0.5, 0.5)]
    assert {axes.get_facecolor()[:3] for axes in figure.axes if axes.images} == {(0.7, 0.7, 0.7)}


def test_an_animation_of_data_alone_has_the_asked_width_and_grey_gaps(tmp_path) -> None:
    data = np.ones((2, 8, 4))
    data[:, :4] = np.nan
    options = AnimationOptions(width=301, fps=2.0, format="gif", colour_map="viridis")
    path = tmp_path / f"a{options.suffix}"
    animate(data, None, path, times=[0.0, 1.0], lengths=[2.0, 1.0], options=options)
    with Image.open(path) as picture:
        assert (picture.n_frames, picture.width % 2, picture.info["duration"]) == (2, 0, 500)
        assert abs(picture.width - 301) <= 1
        colours = [colour for _, colour in picture.convert("RGB").getcolors(10**6)]
    assert any(max(colour) - min(colour) < 8 and abs(colour[0] - 178) < 8 for colour in colours), "grey at the gaps"


def test_colour_bars_keep_their_ends_in_every_frame(tmp_path) -> None:
    truth = RNG.uniform(size=(3, 32, 32))
    error = 1e-2 * RNG.normal(size=truth.shape)
    error[-1] *= 100  # only the last frame has the strong colours
    animate(truth, truth + error, tmp_path / "a.gif", times=[0.0, 1.0, 2.0], lengths=[1.0, 1.0])
    with Image.open(tmp_path / "a.gif") as picture:
        found = np.array([colour for _, colour in picture.convert("RGB").getcolors(10**6)])
    ends = 255 * np.array([colormaps[DIFFERENCE_MAP](end)[:3] for end in (0.0, 1.0)])
    distances = np.abs(found[None] - ends[:, None]).max(axis=-1).min(axis=-1)
    assert distances.max() < 12


def test_only_what_moves_is_drawn_again(tmp_path, monkeypatch) -> None:
    drawn = []
    draw = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: (drawn.append(1), draw(self, renderer)))
    truth = RNG.normal(size=(30, 8, 8))
    animate(truth, 0.9 * truth, tmp_path / "a.gif", times=np.arange(30.0).tolist(), lengths=[1.0, 1.0])
    assert len(drawn) == 1


def test_pictures_say_what_they_show_with_units() -> None:
    labels = Labels("v (m s-1)", ("x (m)", "y (m)"), "s", "ks-ssno: v of trajectory 3, relative error 0.1")
    truth = RNG.normal(size=(7, 4, 5))
    figure = frame_panels(truth, truth, times=np.arange(7.0).tolist(), lengths=[1.0, 2.0], labels=labels)
    words = {text.get_text() for text in figure.findobj(Text)}
    assert {labels.title, "t = 6 s", "x (m)", "truth\ny (m)", "v (m s-1)"} <= words
    lines = forecast_panels(truth[:, 0], truth[2:, 0], times=np.arange(7.0).tolist(), length=1.0, labels=labels)
    assert {labels.title, "time (s)", "x (m)", "v (m s-1)"} <= {text.get_text() for text in lines.findobj(Text)}


def test_fields_of_one_sign_have_a_sequential_map_and_others_one_about_zero() -> None:
    assert colours(np.array([-0.006, 0.58]))[0] == "viridis", "a solver's undershoot"
    assert colours(np.array([-0.1, 0.58])) == ("RdBu_r", -0.58, 0.58)
    assert colours(np.array([-3.0, -1.0])) == ("viridis", -3.0, -1.0)
    positive = forecast_panels(np.full((3, 4), 2.0), np.ones((2, 4)), times=[0.0, 1.0, 2.0], length=1.0)
    assert positive.axes[0].images[0].get_cmap().name == "viridis"


def test_a_forecast_that_runs_away_leaves_the_scale_of_the_difference() -> None:
    truth = np.linspace(-1, 1, 8)
    assert difference_colours(truth + 1e20, truth) == (DIFFERENCE_MAP, -2.0, 2.0)
    assert difference_colours(np.full(8, np.nan), truth)[2] > 0


def test_senseless_looks_are_refused() -> None:
    for fields, message in (
        ({"width": 50}, "`width` must be between 100 and 7680"),
        ({"fps": 0.0}, "`fps` must be between 0 and 120"),
        ({"colour_map": "virdis"}, "Unknown colour map `virdis`. Did you mean `viridis`"),
    ):
        with pytest.raises(ValueError, match=message):
            AnimationOptions(**fields)


def systems(**fields):
    model = model_config("ssno:tiny", n_layers=5, **fields).build()
    return systems_of(model, SamplingGrid(points=(16,), spacing=(0.5,), names=("x",), time_step=0.1))


def test_kernels_and_modes_are_drawn_layer_by_layer_and_beside_their_start() -> None:
    everything = systems()
    spatial = [system for system in everything if system.axis == "x"]
    figure = kernel_panels(spatial, spatial)
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == [f"layer {n}" for n in range(1, 6)]
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), spatial[0].envelope.numpy())
    np.testing.assert_allclose(figure.axes[0].lines[1].get_xdata(), -spatial[0].positions.numpy())
    ridges = mode_ridges(spatial, spatial, length=8.0)
    assert ridges.axes[2].get_xlabel() == "decay length"
    assert len(ridges.axes[0].lines) == 10
    marks = {text.get_text(): text.get_position()[1] for text in ridges.axes[1].texts}
    assert set(marks) == {"grid spacing", "axis"}
    assert min(marks.values()) > 1, "above the ridges, which would hide them"
    memory = memory_weights(everything[-1], everything[-1])
    heights = [patch.get_height() for patch in memory.axes[0].patches]
    assert sum(heights) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"`systems` must run along one axis, got \['time', 'x'\]"):
        mode_ridges(everything, everything, length=8.0)


def test_a_dark_twin_has_the_places_of_its_light_figure_without_a_layout_of_its_own(monkeypatch) -> None:
    truth = RNG.normal(size=(3, 4, 5))
    light = frame_panels(truth, truth, times=[0.0, 1.0, 2.0], lengths=[1.0, 1.0])
    light.place()
    with dark():
        twin = frame_panels(truth, truth, times=[0.0, 1.0, 2.0], lengths=[1.0, 1.0])
    monkeypatch.setattr(twin.get_layout_engine(), "execute", lambda _: pytest.fail("laid out again"))
    twin.place(like=light)
    for mine, other in zip(twin.axes, light.axes, strict=True):
        np.testing.assert_allclose(mine.get_position(original=True).bounds, other.get_position(original=True).bounds)
    assert [text.get_position() for text in twin.texts] == [text.get_position() for text in light.texts]


def test_long_names_leave_room_for_the_picture() -> None:
    labels = Labels("eastward_wind_at_ten_metres (m s-1)", unit="m s-1", title="word " * 60)
    truth = RNG.normal(size=(3, 8, 4))
    figure = frame_panels(truth, truth, times=[0.0, 1.0, 2.0], lengths=[2.0, 1.0], labels=labels)
    assert max(map(len, figure.get_suptitle().splitlines())) < 11 * figure.get_figwidth()
    assert "m s-1" in {axes.get_ylabel() for axes in figure.axes}


def test_the_paper_of_an_animation_is_white(tmp_path) -> None:
    for grid in ((16,), (8, 8)):
        truth = RNG.normal(size=(3, *grid))
        animate(truth, 0.9 * truth, tmp_path / "a.gif", times=[0.0, 1.0, 2.0], lengths=[1.0] * len(grid))
        with Image.open(tmp_path / "a.gif") as picture:
            picture.seek(2)
            assert picture.convert("RGB").getpixel((2, picture.height - 2)) == (255, 255, 255)
