"""Fields on a sphere: flat maps, and globes in orthographic projection that may turn.

A globe shows the half of the sphere that faces the eye, far away above (latitude, longitude). A point (x, y) of the
unit disc is the point of the sphere with depth z = sqrt(1 - x^2 - y^2) towards the eye,

    sin(phi) = y cos(phi0) + z sin(phi0),     lambda = lambda0 + atan2(x, z cos(phi0) - y sin(phi0))

and its colour is interpolated between the four nearest points of the equiangular grid.

Axes: s frame, lat colatitude from the north pole (poles included), lon longitude.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from ssno.plots.animation import MovingFigure
from ssno.plots.style import MAP_AXES, PLAIN, Figure, Labels, colours, difference_colours, ink, look

PIXELS = 220
COLUMNS = 4


def seen_from(
    field: Float[np.ndarray, "lat lon"], *, latitude: float | int, longitude: float | int, pixels: int = PIXELS
) -> Float[np.ndarray, "y x"]:
    """What the eye sees, from above (latitude, longitude) in degrees; NaN outside the disc. Rows go upwards."""
    line = np.linspace(-1, 1, pixels)
    x, y = np.meshgrid(line, line)
    depth = np.where(x**2 + y**2 <= 1, np.sqrt(np.maximum(1 - x**2 - y**2, 0)), np.nan)
    tilt = np.deg2rad(latitude)
    phi = np.arcsin(np.clip(y * np.cos(tilt) + depth * np.sin(tilt), -1, 1))
    lam = np.deg2rad(longitude) + np.arctan2(x, depth * np.cos(tilt) - y * np.sin(tilt))
    return sampled(field, np.pi / 2 - phi, lam)


def sampled(
    field: Float[np.ndarray, "lat lon"], theta: Float[np.ndarray, "*shape"], lam: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Values between the points of the equiangular grid, linear in both angles."""
    nlat, nlon = field.shape
    hidden = np.isnan(theta)
    row = np.where(hidden, 0, theta) * (nlat - 1) / np.pi
    column = np.where(hidden, 0, lam) % (2 * np.pi) * nlon / (2 * np.pi)
    top, left = np.clip(row.astype(int), 0, nlat - 2), column.astype(int) % nlon
    down, right = row - top, column - np.floor(column)
    beside = (left + 1) % nlon
    upper = field[top, left] * (1 - right) + field[top, beside] * right
    lower = field[top + 1, left] * (1 - right) + field[top + 1, beside] * right
    return np.where(hidden, np.nan, upper * (1 - down) + lower * down)


def draw_globe(
    axes: Axes,
    field: Float[np.ndarray, "lat lon"],
    *,
    latitude: float = 30.0,
    colour_map: str,
    low: float,
    high: float,
) -> AxesImage:
    """A globe on the given axes; `set_data(seen_from(...))` of the returned image turns it."""
    image = axes.imshow(
        seen_from(field, latitude=latitude, longitude=0.0),
        extent=(-1, 1, -1, 1),
        origin="lower",
        cmap=colour_map,
        vmin=low,
        vmax=high,
    )
    angle = np.linspace(0, 2 * np.pi, 181)
    axes.plot(np.cos(angle), np.sin(angle), color=ink(), linewidth=0.8)
    axes.set(aspect="equal", xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    axes.axis("off")
    return image


def draw_map(axes: Axes, field: Float[np.ndarray, "lat lon"], *, colour_map: str, low: float, high: float) -> AxesImage:
    """The whole sphere as a rectangle of longitude and latitude, north up."""
    axes.grid(False)
    image = axes.imshow(
        field, extent=(0, 360, -90, 90), cmap=colour_map, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    axes.set(xticks=[0, 180, 360], yticks=[-90, 0, 90])
    return image


def sphere_panels(
    truth: Float[np.ndarray, "s lat lon"],
    forecast: Float[np.ndarray, "s lat lon"],
    *,
    times: Sequence[float],
    labels: Labels = PLAIN,
) -> Figure:
    """Rows truth, forecast, difference; columns maps of evenly spaced frames, and a globe of the last."""
    shown = np.unique(np.linspace(0, len(times) - 1, COLUMNS).round().astype(int)).tolist()
    usual = colours(truth)
    rows = [
        ("truth", truth, usual, labels.scale),
        ("forecast", forecast, usual, labels.scale),
        ("forecast - truth", forecast - truth, difference_colours(forecast, truth), "difference"),
    ]
    with look():
        figure = Figure(figsize=(2.3 * (len(shown) + 1) + 1.2, 5.4))
        grid = figure.subplots(3, len(shown) + 1, squeeze=False)
        for axes_row, (name, values, (colour_map, low, high), told) in zip(grid, rows, strict=True):
            for column, frame in enumerate(shown):
                image = draw_map(axes_row[column], values[frame], colour_map=colour_map, low=low, high=high)
                axes_row[column].tick_params(labelbottom=told == "difference", labelleft=column == 0, labelsize=8)
            draw_globe(axes_row[-1], values[shown[-1]], colour_map=colour_map, low=low, high=high)
            axes_row[0].set_ylabel(f"{name}\n{MAP_AXES[1]}")
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01, label=told)
        for axes, frame in zip(grid[0], [*shown, shown[-1]], strict=True):
            axes.set_title(labels.at(times[frame]), fontsize=9)
        for axes in grid[-1, :-1]:
            axes.set_xlabel(MAP_AXES[0])
        figure.suptitle(labels.above(figure, f"{labels.field}: forecast against truth"), fontsize=10)
        return figure


def animate_globe(
    frames: Float[np.ndarray, "s lat lon"],
    path: str | Path,
    *,
    titles: Sequence[str],
    latitude: float = 30.0,
    turn: float = 3.0,
    limit: float | None = None,
) -> Path:
    """A GIF of a globe that turns by `turn` degrees per frame; it appears when it is whole."""
    path = Path(path)
    if path.suffix != ".gif":
        raise ValueError(f"`path` must end in .gif, got {path.name!r}.")
    colour_map, low, high = colours(frames)
    if limit is not None:
        low, high = -limit, limit
    path.parent.mkdir(parents=True, exist_ok=True)
    with look(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        figure = Figure(figsize=(3.0, 3.25))
        axes = figure.subplots()
        image = draw_globe(axes, frames[0], latitude=latitude, colour_map=colour_map, low=low, high=high)
        title = axes.set_title("")

        def update(number: int) -> None:
            image.set_data(seen_from(frames[number], latitude=latitude, longitude=-turn * number))
            title.set_text(titles[number])

        partial = Path(folder) / path.name
        artists, maps = [image, *axes.lines, title], [image.get_cmap()]
        moving = MovingFigure(figure, artists, update, frames=len(frames), width=240, maps=maps)
        moving.write(partial, fps=12.0)
        partial.replace(path)
    return path
