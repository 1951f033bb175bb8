"""Where the flow past an aerofoil is sampled: points on its wall, close to it, and anywhere in a box.

    wall    angles -beta + (j + phi) 2 pi / m of the circle, counter-clockwise; never the tail, where the pressure jumps
    close   zeta = mu + R (1 + e^s) e^{i theta}, s uniform in [log 1e-3, log 15]: dense at the wall, thin far away
    far     uniform in the box outside the foil

Wall points come first, in order around the contour; three quarters of the rest are close ones. Distances to the wall
are those to a polygon of 4096 corners, right to 1.5e-7 chords. Axes: m wall point, p point.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

from ssno.pde.equations.karman_trefftz import Foil

BOX = ((-2.0, 4.0), (-1.5, 1.5))
CLOSEST, FARTHEST = 1e-3, 15.0
PHASES = (0.25, 0.75)
CORNERS = 4096
Points = tuple[Complex[np.ndarray, " p"], Complex[np.ndarray, " p"]]
"""zeta in the circle's plane, and x + i y."""


class Cloud(NamedTuple):
    """Sampling points of one aerofoil, the wall first."""

    zeta: Complex[np.ndarray, " p"]
    """In the circle's plane."""
    place: Complex[np.ndarray, " p"]
    """x + i y."""
    distance: Float[np.ndarray, " p"]
    """To the wall; exactly 0 on it."""
    normal: Complex[np.ndarray, " p"]
    """Unit outward normal on the wall, 0 elsewhere."""


def sample_cloud(foil: Foil, rng: np.random.Generator, *, points: int, wall_points: int) -> Cloud:
    """Draw `points` points, `wall_points` of them on the wall."""
    phase = rng.uniform(*PHASES)
    angle = -foil.beta + (np.arange(wall_points) + phase) * 2 * np.pi / wall_points
    far = (points - wall_points) // 4
    wall = foil.circle(angle)
    pairs = [(wall, foil.placed(wall)), close(foil, rng, points - wall_points - far), anywhere(foil, rng, far)]
    zeta, place = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    normal = np.zeros(points, dtype=complex)
    normal[:wall_points] = foil.outward_normal(angle)
    distance = np.concatenate([np.zeros(wall_points), wall_distance(foil, place[wall_points:])])
    return Cloud(zeta, place, distance, normal)


def close(foil: Foil, rng: np.random.Generator, count: int) -> Points:
    """Points that crowd at the wall, those inside the box only."""

    def some() -> Points:
        log_height = rng.uniform(np.log(CLOSEST), np.log(FARTHEST), size=count)
        zeta = foil.circle(rng.uniform(0, 2 * np.pi, size=count), stretch=1 + np.exp(log_height))
        place = foil.placed(zeta)
        (left, right), (low, high) = BOX
        inside = (left <= place.real) & (place.real <= right) & (low <= place.imag) & (place.imag <= high)
        return zeta[inside], place[inside]

    return _until(count, some)


def anywhere(foil: Foil, rng: np.random.Generator, count: int) -> Points:
    """Points uniform in the box outside the foil."""

    def some() -> Points:
        place = rng.uniform(*BOX[0], size=count) + 1j * rng.uniform(*BOX[1], size=count)
        zeta, outside = foil.unplaced(place)
        return zeta[outside], place[outside]

    return _until(count, some)


def _until(count: int, some: Callable[[], Points]) -> Points:
    """Draw until there are `count` points."""
    zeta = place = np.empty(0, dtype=complex)
    while len(zeta) < count:
        more_zeta, more_place = some()
        zeta, place = np.concatenate([zeta, more_zeta]), np.concatenate([place, more_place])
    return zeta[:count], place[:count]


def wall_distance(foil: Foil, place: Complex[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Distance to the nearest of the two sides that meet in the nearest corner of the wall polygon."""
    corners = foil.wall(-foil.beta + np.arange(CORNERS) * 2 * np.pi / CORNERS)
    from scipy.spatial import cKDTree  # takes a third of a second, and `ssno.pde` is imported everywhere

    _, nearest = cKDTree(_columns(corners), compact_nodes=False).query(_columns(place))
    sides = []
    for neighbour in (nearest - 1, (nearest + 1) % CORNERS):
        start, side = corners[nearest], corners[neighbour] - corners[nearest]
        along = ((place - start) * side.conj()).real / np.abs(side) ** 2
        sides.append(np.abs(place - start - np.clip(along, 0, 1) * side))
    return np.minimum(*sides)


def _columns(place: Complex[np.ndarray, " p"]) -> Float[np.ndarray, "p 2"]:
    return np.stack([place.real, place.imag], axis=1)
