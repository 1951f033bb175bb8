"""Fields that are not on a Cartesian grid: maps and globes of a sphere, and the flow past an aerofoil on a point cloud.

A globe is an orthographic projection: the half of the sphere that faces an eye far above (latitude, longitude). A point
(x, y) of the unit disc is the point of the sphere with depth z = sqrt(1 - x^2 - y^2) towards the eye,

    sin(phi) = y cos(phi0) + z sin(phi0),     lambda = lambda0 + atan2(x, z cos(phi0) - y sin(phi0))

and its colour is interpolated between the four nearest points of the equiangular grid. The pressure coefficient of an
aerofoil is C_p = 2 p / U^2, drawn upside down over x as is usual, so that suction points up.

Axes: s frame, lat colatitude from the north pole (poles included), lon longitude; p point of a cloud, m wall point.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.path import Path
from matplotlib.tri import Triangulation
from torch import Tensor

from ssno.data.point_clouds import wall_mask
from ssno.data.trajectories import Trajectories
from ssno.plots.style import (
    DIFFERENCE_MAP,
    MAP_AXES,
    PLAIN,
    Figure,
    Labels,
    Scale,
    colours,
    comparison,
    evenly_spaced,
    ink,
    look,
    palette,
    show_image,
)

PIXELS = 220
COLUMNS = 4


def seen_from(
    field: Float[np.ndarray, "lat lon"], *, latitude: float | int, longitude: float | int, pixels: int = PIXELS
) -> Float[np.ndarray, "y x"]:
    """The globe seen from above (latitude, longitude) in degrees; NaN outside the disc. Rows go upwards."""
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


def draw_globe(axes: Axes, field: Float[np.ndarray, "lat lon"], scale: Scale, *, latitude: float = 30.0) -> AxesImage:
    """A globe; `set_data(seen_from(...))` of the returned image turns it."""
    colour_map, low, high = scale
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


def sphere_panels(
    truth: Float[np.ndarray, "s lat lon"],
    forecast: Float[np.ndarray, "s lat lon"],
    *,
    times: Sequence[float],
    labels: Labels = PLAIN,
) -> Figure:
    """Rows truth, forecast, difference; columns maps of evenly spaced frames, and a globe of the last."""
    shown = evenly_spaced(len(times), COLUMNS)
    with look():
        figure = Figure(figsize=(2.3 * (len(shown) + 1) + 1.2, 5.4))
        grid = figure.subplots(3, len(shown) + 1, squeeze=False)
        for axes_row, (name, values, scale, told) in zip(grid, comparison(truth, forecast, labels), strict=True):
            for column, frame in enumerate(shown):
                image = show_image(axes_row[column], values[frame], scale, extent=(0.0, 360.0, -90.0, 90.0))
                axes_row[column].set(xticks=[0, 180, 360], yticks=[-90, 0, 90])
                axes_row[column].tick_params(labelbottom=told == "difference", labelleft=column == 0, labelsize=8)
            draw_globe(axes_row[-1], values[shown[-1]], scale)
            axes_row[0].set_ylabel(f"{name}\n{MAP_AXES[1]}")
            figure.colorbar(image, ax=list(axes_row), shrink=0.9, pad=0.01, label=told)
        for axes, frame in zip(grid[0], [*shown, shown[-1]], strict=True):
            axes.set_title(labels.at(times[frame]), fontsize=9)
        for axes in grid[-1, :-1]:
            axes.set_xlabel(MAP_AXES[0])
        figure.suptitle(labels.above(figure, f"{labels.field}: forecast against truth"), fontsize=10)
        return figure


# The flow past an aerofoil.

AROUND = ((-0.5, 1.5), (-0.75, 0.75))


def flow_pictures(data: Trajectories, case: int, forecast: Float[Tensor, "c p"]) -> dict[str, Callable[[], Figure]]:
    """Figures of one case by name, drawn on request: pressure around the aerofoil, and along its wall."""
    frames, names = data.read([case]), list(data.context_fields)
    place = frames.context[0, 0, [names.index("x"), names.index("y")]].T.double().numpy()
    wall = wall_mask(frames.context, data.context_fields)[0].numpy()
    speed = float(frames.state[0, 0, :2, 0].double().norm())
    pressure = list(data.fields).index("p")
    truth, made = (values[pressure].double().numpy() for values in (frames.state[0, -1], forecast))
    return {
        "pressure": lambda: pressure_panels(place, truth, made, wall, speed=speed),
        "wall": lambda: pressure_curve(place[wall], truth[wall], made[wall], speed=speed),
    }


def pressure_panels(
    place: Float[np.ndarray, "p 2"],
    truth: Float[np.ndarray, " p"],
    forecast: Float[np.ndarray, " p"],
    wall: Bool[np.ndarray, " p"],
    *,
    speed: float = 1.0,
) -> Figure:
    """C_p near the aerofoil: truth, forecast and difference. Wall points are in order around the contour."""
    mesh = Triangulation(*place.T)
    contour = place[wall]
    mesh.set_mask(Path(contour).contains_points(place[mesh.triangles].mean(axis=1)))
    both = [2 * values / speed**2 for values in (truth, forecast)]
    near = np.all([(low <= x) & (x <= high) for x, (low, high) in zip(place.T, AROUND, strict=True)], axis=0)
    difference = both[1] - both[0]
    limit = max(float(np.abs(difference[near]).max(initial=0.0)), 1e-12)
    field_map, low, high = colours(np.clip(both[0][near], -2.0, 1.0))
    rows = [
        ("truth", both[0], field_map, low, high),
        ("forecast", both[1], field_map, low, high),
        ("forecast - truth", difference, DIFFERENCE_MAP, -limit, limit),
    ]
    with look():
        figure = Figure(figsize=(11.5, 3.3))
        for axes, (name, values, colour_map, bottom, top) in zip(figure.subplots(1, 3), rows, strict=True):
            axes.grid(False)
            image = axes.tripcolor(mesh, values, cmap=colour_map, vmin=bottom, vmax=top, shading="gouraud")
            axes.fill(*contour.T, facecolor="0.6", edgecolor=ink(), linewidth=0.8)
            axes.set(xlim=AROUND[0], ylim=AROUND[1], aspect="equal", title=name, xticks=[], yticks=[])
            figure.colorbar(image, ax=axes, shrink=0.85, pad=0.02)
        figure.suptitle("pressure coefficient C_p")
        return figure


def pressure_curve(
    contour: Float[np.ndarray, "m 2"],
    truth: Float[np.ndarray, " m"],
    forecast: Float[np.ndarray, " m"],
    *,
    speed: float = 1.0,
) -> Figure:
    """C_p along the wall over x, and the shape of the aerofoil below it."""
    closed = np.append(np.arange(len(contour)), 0)
    with look():
        figure = Figure(figsize=(6.4, 5.6))
        curve, shape = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1.3])  # room for 22 % of the chord
        curve.plot(contour[:, 0], 2 * truth / speed**2, color=ink(), label="truth")
        curve.plot(contour[:, 0], 2 * forecast / speed**2, color=palette()[1], linestyle="--", label="forecast")
        curve.invert_yaxis()
        curve.set(ylabel="C_p", title="pressure along the wall")
        curve.legend()
        shape.plot(*contour[closed].T, color=ink())
        shape.set_aspect("equal", adjustable="datalim")
        shape.set(xlabel="x", yticks=[])
        shape.grid(False)
        return figure
