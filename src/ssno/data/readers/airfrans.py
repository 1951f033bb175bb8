"""AirfRANS: a folder of steady flows past aerofoils, or its PyTorch-Geometric file, as clouds of points.

    manifest.json                     lists of case names: full_train, full_test, scarce_train, reynolds_*, aoa_*
    NAME/NAME_internal.vtu            all nodes: U, p, nut, implicit_distance (negative in the fluid)
    NAME/NAME_aerofoil.vtp            the wall: two-point lines in any order, Normals pointing into the foil
    airFoil2D_SST_<speed>_<degrees>_<3 or 4 numbers>        speed and angle exist only in the name
    AirfRANS.pt                       a list of dicts pos, x, y, surf in the order full_train, full_test

A case becomes a trajectory of two frames, the undisturbed stream and the flow, as kt-foil's are: fields v_x, v_y, p,
nu_t; known x, y, wall_distance, normal_x, normal_y with outward normals. Wall points come first, in order around the
contour; the rest is a draw of the other nodes that depends on the case's name alone. Validation is the last tenth of
the training cases.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ssno.base import read_json
from ssno.data.errors import DataError
from ssno.data.readers.arrays import LazyArray, Selection, Stamp
from ssno.data.readers.blocks import Block, Part, Pattern
from ssno.data.readers.registry import WHOLE, Reader, ReadOptions
from ssno.data.sandbox.parent import Contents, check_regular, read_by_child
from ssno.data.sandbox.report import whole_limit
from ssno.data.sandbox.vtk_xml import VTKPiece
from ssno.data.trajectories import Trajectories
from ssno.pde.geometry import POINT_CLOUD, Axis

FIELDS = ("v_x", "v_y", "p", "nu_t")
KNOWN = ("x", "y", "wall_distance", "normal_x", "normal_y")
POINTS = 32_768
LONGEST_NAME = 120
Case = Callable[[], Mapping[str, np.ndarray]]
TEST_OF = {"scarce": "full"}
NAME = re.compile(r"airFoil2D_SST((_-?\d+(\.\d+)?){5,6})")
STATE, CONTEXT = Pattern(("batch", "time", "channel", "point")), Pattern(("batch", "channel", "point"))


def open_airfrans(folder: Path, *, task: str = "full", points: int = POINTS) -> dict[str, Trajectories]:
    """The splits of a task; files are read when their cases are."""
    manifest = folder / "manifest.json"
    check_regular(manifest, folder)
    listed = read_json(manifest, remedy="Download it again.")
    if not isinstance(listed, dict):
        raise DataError(f"{manifest} is no object with lists of cases, as AirfRANS's is. Download it again.")
    train, test = f"{task}_train", f"{TEST_OF.get(task, task)}_test"
    for key in (train, test):
        names = listed.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{manifest} has no list {key!r} of names of cases; it has {', '.join([*listed][:20])}.")
        if len({*names}) < len(names):
            raise DataError(f"{manifest} lists a case twice in {key!r}. Download it again.")
    if not listed[train] and not listed[test]:
        raise DataError(f"{manifest} lists no cases in {train!r} and {test!r}.")
    fitting = len(listed[train]) - math.ceil(len(listed[train]) / 10)
    splits = {"train": listed[train][:fitting], "valid": listed[train][fitting:], "test": listed[test]}
    return {split: _cases(folder, names, points) for split, names in splits.items() if names}


def _cases(folder: Path, names: list[str], points: int) -> Trajectories:
    inlets = [inlet_of(name) for name in names]
    cases = [partial(case_fields, folder, name, points) for name in names]
    labels = [str(folder / name) for name in names]
    return _trajectories(cases, labels, points, speed=[u for u, _ in inlets], angle=[a for _, a in inlets])


def _trajectories(cases: Sequence[Case], labels: Sequence[str], points: int, **parameters: list[float]) -> Trajectories:
    def block(case: Case, label: str, part: str) -> Block:
        pattern, channels = (STATE, 4) if part == "state" else (CONTEXT, 5)
        return Block(CaseArray(case, label, points, part), pattern, ("point",), tuple(range(channels)))

    return Trajectories.from_parts(
        [
            Part((block(case, label, "state"),), (block(case, label, "context"),))
            for case, label in zip(cases, labels, strict=True)
        ],
        name="airfrans",
        published=True,
        fields=FIELDS,
        context_fields=KNOWN,
        times=np.array([0.0, 1.0]),
        axes=[Axis("point", float(points), points, periodic=False)],
        parameters={key: np.array(values) for key, values in parameters.items()},
        geometry=POINT_CLOUD,
    )


def inlet_of(name: str) -> tuple[float, float]:
    """Speed and angle of attack (degrees) from a case's name."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        shown = name[:LONGEST_NAME]
        raise DataError(f"{shown!r} is not a case of AirfRANS: airFoil2D_SST_<speed>_<degrees>_<3 or 4 numbers>.")
    speed, angle = map(float, name.split("_")[2:4])
    return speed, angle


@dataclass(frozen=True)
class CaseArray:
    """The frames (1, 2, 4, points) or context fields (1, 5, points) of a case, read when asked for."""

    case: Case
    label: str
    points: int
    part: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 2, 4, self.points) if self.part == "state" else (1, 5, self.points)

    def read(self, selection: Selection) -> np.ndarray:
        return self.case()[self.part][selection]


@lru_cache(maxsize=2)
def case_fields(folder: Path, name: str, points: int) -> Mapping[str, np.ndarray]:
    """State and context fields of a case at its wall and at some other nodes."""
    inside = read_piece(folder / name / f"{name}_internal.vtu", folder)
    wall = read_piece(folder / name / f"{name}_aerofoil.vtp", folder)
    for where, piece, needed in (
        ("internal", inside, {"U": 2, "p": 1, "nut": 1, "implicit_distance": 1}),
        ("aerofoil", wall, {"Normals": 2}),
    ):
        for field, axes in {"points": 2, **needed}.items():
            values = piece.points if field == "points" else piece.fields.get(field)
            if values is None:
                raise DataError(f"{folder / name}: the {where} file lacks the field {field!r}.")
            if values.ndim != axes:
                raise DataError(
                    f"{folder / name}: {field!r} of the {where} file has shape {values.shape}, expected "
                    f"{'vectors' if axes == 2 else 'one number'} at every point."
                )
    if wall.lines is None:
        raise DataError(f"{folder / name}: the aerofoil file has no lines.")
    order = contour_order(wall.lines, wall.points[:, :2], where=str(folder / name))
    # The same numbers in two files: compared bit by bit, before anything is converted.
    nodes = {place.tobytes(): index for index, place in enumerate(inside.points[:, :2])}
    try:
        on_wall = np.array([nodes[place.tobytes()] for place in wall.points[order, :2]])
    except KeyError:
        raise DataError(f"{folder / name}: a wall point is not among the nodes of the internal file.") from None
    chosen = with_others(on_wall, len(inside.points), points, name)
    normals = np.zeros((points, 2))
    normals[: len(order)] = -wall.fields["Normals"][order, :2]
    fields = inside.fields
    flow = np.stack([fields["U"][:, 0], fields["U"][:, 1], fields["p"], fields["nut"]])[:, chosen]
    place = inside.points[chosen, :2].T
    context = np.concatenate([place, -fields["implicit_distance"][chosen][None], normals.T])
    return as_trajectory(flow, context, *inlet_of(name))


def as_trajectory(flow: np.ndarray, context: np.ndarray, speed: float, angle: float) -> Mapping[str, np.ndarray]:
    """Stream and flow as two frames, with the context fields."""
    stream = np.zeros_like(flow, dtype=np.float64)
    stream[0], stream[1] = speed * math.cos(math.radians(angle)), speed * math.sin(math.radians(angle))
    return {"state": np.stack([stream, flow])[None], "context": context[None]}


def with_others(on_wall: np.ndarray, nodes: int, points: int, name: str) -> np.ndarray:
    """Wall nodes and a draw of the others, `points` in all."""
    if not len(on_wall) <= points <= nodes:
        raise DataError(
            f"{name} has {nodes} nodes, {len(on_wall)} on the wall; `points` must be between these, got {points}."
        )
    others = np.setdiff1d(np.arange(nodes), on_wall)
    rng = np.random.Generator(np.random.Philox(zlib.crc32(name.encode())))
    return np.concatenate([on_wall, rng.permutation(others)[: points - len(on_wall)]])


def contour_order(lines: np.ndarray, place: np.ndarray, *, where: str = "the contour") -> np.ndarray:
    """Point numbers along a closed contour of two-point lines, counter-clockwise."""
    neighbours: dict[int, list[int]] = {}
    for one, other in lines.tolist():
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    if any(len(set(found)) != 2 for found in neighbours.values()):
        raise DataError(f"{where}: the wall is not a closed line.")
    order, before = [int(lines[0, 0])], -1
    while True:
        step = next(point for point in neighbours[order[-1]] if point != before)
        if step == order[0]:
            break
        before = order[-1]
        order.append(step)
    if len(order) != len(neighbours):
        raise DataError(f"{where}: the wall is not one closed line.")
    x, y = place[order].astype(np.float64).T
    area = (x * np.roll(y, -1) - np.roll(x, -1) * y).sum()
    return np.array(order if area > 0 else order[::-1])


def read_piece(path: Path, folder: Path) -> VTKPiece:
    """A VTK file of a folder, decoded by the child process."""
    check_regular(path, folder)
    stamp = Stamp.of(path.resolve())
    arrays = read_by_child(stamp, {"read": "vtk"}, work=stamp.size, size=stamp.size, most=whole_limit(stamp.size))
    return VTKPiece.of(arrays)


def recognise(contents: Contents) -> bool:
    """Any file of PyTorch: it is AirfRANS's or nothing that is known."""
    return contents.kind == "torch"


def open_file(contents: Contents, options: ReadOptions, *, points: int = POINTS) -> dict[str, Trajectories]:
    """The cases of `AirfRANS.pt`, a list of dicts of tensors; their numbers are read when the cases are."""
    count = len({name.split("/")[0] for name in (*contents.arrays, *contents.refused)})
    if count == 0:
        raise DataError(f"{contents.path} holds no list of cases.")
    cases, labels, speeds, angles = [], [], [], []
    for number in range(count):
        pos, x, y, surf = (contents[f"{number}/{key}"] for key in ("pos", "x", "y", "surf"))
        n = pos.shape[0] if pos.shape else 0
        if (pos.shape, x.shape, y.shape, surf.shape) != ((n, 2), (n, 5), (n, 4), (n,)) or n == 0 or surf.dtype != "|b1":
            raise DataError(
                f"{contents.path}: case {number} has shapes pos {pos.shape}, x {x.shape}, y {y.shape}, surf "
                f"{surf.shape}; expected (n, 2), (n, 5), (n, 4) and n booleans."
            )
        stream = x.array.read((slice(0, 1), slice(0, 2)))[0].astype(np.float64)
        speeds.append(float(np.hypot(*stream)))
        angles.append(math.degrees(math.atan2(stream[1], stream[0])))
        arrays = (pos.array, x.array, y.array, surf.array)
        cases.append(partial(tensor_fields, arrays, number, points, speeds[-1], angles[-1]))
        labels.append(f"case {number} of {contents.path}")
    return {WHOLE: _trajectories(cases, labels, points, speed=speeds, angle=angles)}


@lru_cache(maxsize=2)
def tensor_fields(
    arrays: tuple[LazyArray, ...], number: int, points: int, speed: float, angle: float
) -> Mapping[str, np.ndarray]:
    """State and context fields of a case of `AirfRANS.pt`."""
    pos, x, y, surf = (array.read((slice(None),) * len(array.shape)) for array in arrays)
    chosen = with_others(around_by_normals(pos, x[:, 3:], surf), len(pos), points, f"case {number}")
    context = np.concatenate([pos[chosen].T, x[chosen, 2][None], x[chosen, 3:].T])
    return as_trajectory(y[chosen].T, context, speed, angle)


def around_by_normals(place: np.ndarray, normals: np.ndarray, wall: np.ndarray) -> np.ndarray:
    """Wall nodes around an aerofoil without its lines: along the upper side to the nose, along the lower one back.

    Where the outward normal points up, x falls along a counter-clockwise contour; where it points down, x rises.
    """
    on_wall = np.flatnonzero(wall)
    up = normals[on_wall, 1] > 0
    upper, lower = on_wall[up], on_wall[~up]
    return np.concatenate([upper[np.argsort(-place[upper, 0])], lower[np.argsort(place[lower, 0])]])


READER = Reader("airfrans", frozenset(), recognise, open_file)
