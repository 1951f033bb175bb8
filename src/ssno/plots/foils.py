"""Flow past an aerofoil on a cloud of points: the pressure around it, and C_p along its wall.

C_p = 2 p / U^2, drawn upside down over x as is usual, so that suction points up. Axes: p point, m wall point.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.tri import Triangulation
from torch import Tensor

from ssno.data.point_clouds import wall_mask
from ssno.data.trajectories import Frames
from ssno.plots.style import DIFFERENCE_MAP, Figure, colours, ink, look, palette

AROUND = ((-0.5, 1.5), (-0.75, 0.75))


def flow_pictures(
    frames: Frames, forecast: Float[Tensor, "c p"], *, fields: Sequence[str], context_fields: Sequence[str]
) -> dict[str, Callable[[], Figure]]:
    """Pictures of one case by name, drawn on request: pressure around the foil, and along its wall."""
    names = list(context_fields)
    place = frames.context[0, 0, [names.index("x"), names.index("y")]].T.double().numpy()
    wall = wall_mask(frames.context[:1], context_fields)[0].numpy()
    speed = float(frames.state[0, 0, :2, 0].double().norm())
    pressure = list(fields).index("p")
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
    """C_p near the foil: truth, forecast and their difference. Wall points are in order around the contour."""
    mesh = Triangulation(*place.T)
    contour = place[wall]
    mesh.set_mask(_inside(place[mesh.triangles].mean(axis=1), contour))
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
    """C_p along the wall over x, and the foil below it."""
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


def _inside(place: Float[np.ndarray, "q 2"], contour: Float[np.ndarray, "m 2"]) -> Bool[np.ndarray, " q"]:
    """Which places lie inside a closed polygon: a ray to the right crosses it an odd number of times."""
    inside = np.zeros(len(place), dtype=bool)
    for (x0, y0), (x1, y1) in zip(contour, np.roll(contour, -1, axis=0), strict=True):
        spans = (y0 > place[:, 1]) != (y1 > place[:, 1])
        slope = (x1 - x0) / (y1 - y0) if y1 != y0 else 0.0
        inside ^= spans & (place[:, 0] < x0 + (place[:, 1] - y0) * slope)
    return inside
