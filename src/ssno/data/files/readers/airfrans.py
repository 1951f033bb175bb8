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

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ssno.data.errors import DataError
from ssno.data.files.arrays import MemoryArray, Selection
from ssno.data.files.blocks import Block, Part
from ssno.data.files.patterns import Pattern
from ssno.data.files.vtk_xml import read_vtk
from ssno.data.trajectories import Trajectories
from ssno.pde.problems.problem import Axis

FIELDS = ("v_x", "v_y", "p", "nu_t")
KNOWN = ("x", "y", "wall_distance", "normal_x", "normal_y")
POINTS = 32_768
TEST_OF = {"scarce": "full"}
NAME = re.compile(r"airFoil2D_SST((_-?\d+(\.\d+)?){5,6})")
STATE, CONTEXT = Pattern(("batch", "time", "channel", "point")), Pattern(("batch", "channel", "point"))


def is_airfrans(folder: Path) -> bool:
    """Whether a folder has AirfRANS's list of cases."""
    manifest = folder / "manifest.json"
    return manifest.is_file() and b'"full_train"' in manifest.read_bytes()[: 64 * 2**20]


def open_airfrans(folder: Path, *, task: str = "full", points: int = POINTS) -> dict[str, Trajectories]:
    """The splits of a task; files are read when their cases are."""
    listed = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    train, test = f"{task}_train", f"{TEST_OF.get(task, task)}_test"
    for key in (train, test):
        if not isinstance(listed.get(key), list) or not all(isinstance(name, str) for name in listed[key]):
            raise DataError(f"{folder / 'manifest.json'} has no list {key!r}; it has {', '.join(map(str, listed))}.")
    fitting = len(listed[train]) - math.ceil(len(listed[train]) / 10)
    splits = {"train": listed[train][:fitting], "valid": listed[train][fitting:], "test": listed[test]}
    return {split: _cases(folder, names, points) for split, names in splits.items() if names}


def _cases(folder: Path, names: list[str], points: int) -> Trajectories:
    inlets = [inlet_of(name) for name in names]
    arrays = [(CaseArray(folder, name, points, "state"), CaseArray(folder, name, points, "context")) for name in names]
    parts = [
        Part(
            (Block(state, STATE, ("point",), tuple(range(4))),), (Block(context, CONTEXT, ("point",), tuple(range(5))),)
        )
        for state, context in arrays
    ]
    return _trajectories(parts, points, speed=[u for u, _ in inlets], angle=[a for _, a in inlets])


def _trajectories(parts: list[Part], points: int, **parameters: list[float]) -> Trajectories:
    return Trajectories.from_parts(
        parts,
        name="airfrans",
        published=True,
        fields=FIELDS,
        context_fields=KNOWN,
        times=np.array([0.0, 1.0]),
        axes=[Axis("point", float(points), points, periodic=False)],
        parameters={key: np.array(values) for key, values in parameters.items()},
        grid_type="points",
    )


def inlet_of(name: str) -> tuple[float, float]:
    """Speed and angle of attack (degrees) from a case's name."""
    if not NAME.fullmatch(name):
        raise DataError(f"{name!r} is not a case of AirfRANS: airFoil2D_SST_<speed>_<degrees>_<3 or 4 numbers>.")
    speed, angle = map(float, name.split("_")[2:4])
    return speed, angle


@dataclass(frozen=True)
class CaseArray:
    """The frames (1, 2, 4, points) or known fields (1, 5, points) of a case, read when asked for."""

    folder: Path
    name: str
    points: int
    part: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 2, 4, self.points) if self.part == "state" else (1, 5, self.points)

    @property
    def label(self) -> str:
        return str(self.folder / self.name)

    def read(self, selection: Selection) -> np.ndarray:
        return case_fields(self.folder, self.name, self.points)[self.part][selection]


@lru_cache(maxsize=2)
def case_fields(folder: Path, name: str, points: int) -> Mapping[str, np.ndarray]:
    """State and known fields of a case at its wall and at some other nodes."""
    inside = read_vtk(folder / name / f"{name}_internal.vtu")
    wall = read_vtk(folder / name / f"{name}_aerofoil.vtp")
    for where, piece, needed in (
        ("internal", inside, ("U", "p", "nut", "implicit_distance")),
        ("aerofoil", wall, ("Normals",)),
    ):
        if missing := [field for field in needed if field not in piece.fields]:
            raise DataError(f"{folder / name}: the {where} file lacks the field {missing[0]!r}.")
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
    """Stream and flow as two frames, with the known fields."""
    stream = np.zeros_like(flow, dtype=np.float64)
    stream[0], stream[1] = speed * math.cos(math.radians(angle)), speed * math.sin(math.radians(angle))
    return {"state": np.stack([stream, flow])[None], "context": context[None]}


def with_others(on_wall: np.ndarray, nodes: int, points: int, name: str) -> np.ndarray:
    """Wall nodes and a draw of the others, `points` in all."""
    if not len(on_wall) <= points <= nodes:
        raise DataError(
            f"{name} has {nodes} nodes, {len(on_wall)} on the wall; `points` must lie between, got {points}."
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


def open_airfrans_pt(path: Path, *, points: int = POINTS) -> Trajectories:
    """The cases of `AirfRANS.pt`, a list of dicts of tensors; nothing else in the file is unpacked."""
    if not path.is_file():
        raise DataError(f"{path} is not a regular file (a folder, a pipe or a device). Give an ordinary file.")
    try:
        cases: Any = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except Exception as error:  # torch's unpickler names what it refuses
        raise DataError(f"{path} is not a file of plain tensors ({type(error).__name__}: {error}).") from error
    if not isinstance(cases, list) or not cases:
        raise DataError(f"{path} holds no list of cases.")
    parts, speeds, angles = [], [], []
    for number, case in enumerate(cases):
        try:
            tensors = [case[key] for key in ("pos", "x", "y", "surf")]
            if any(each.untyped_storage().nbytes() < each.numel() * each.element_size() for each in tensors):
                raise DataError(f"{path}: case {number} has more numbers than the file holds for it.")
            pos, x, y, surf = (each.numpy() for each in tensors)
            (n, _), fits = pos.shape, pos.shape[1:] == (2,) and x.shape[1:] == (5,) and y.shape[1:] == (4,)
            fits &= len(x) == len(y) == len(surf) == n > 0 and surf.dtype == bool
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError, NotImplementedError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: case {number} is not a dict of pos, x, y, surf ({error}).") from error
        if not fits:
            raise DataError(f"{path}: case {number} has shapes pos {pos.shape}, x {x.shape}, y {y.shape}.")
        speed, angle = float(np.hypot(*x[0, :2])), math.degrees(math.atan2(x[0, 1], x[0, 0]))
        chosen = with_others(around_by_normals(pos, x[:, 3:], surf), n, points, f"case {number}")
        context = np.concatenate([pos[chosen].T, x[chosen, 2][None], x[chosen, 3:].T])
        fields = as_trajectory(y[chosen].T, context, speed, angle)
        label = f"case {number} of {path}"
        parts.append(
            Part(
                (Block(MemoryArray(fields["state"].astype(np.float32), label), STATE, ("point",), tuple(range(4))),),
                (
                    Block(
                        MemoryArray(fields["context"].astype(np.float32), label), CONTEXT, ("point",), tuple(range(5))
                    ),
                ),
            )
        )
        speeds.append(speed)
        angles.append(angle)
    return _trajectories(parts, points, speed=speeds, angle=angles)


def around_by_normals(place: np.ndarray, normals: np.ndarray, wall: np.ndarray) -> np.ndarray:
    """Wall nodes around an aerofoil without its lines: along the upper side to the nose, along the lower one back.

    Where the outward normal points up, x falls along a counter-clockwise contour; where it points down, x rises.
    """
    on_wall = np.flatnonzero(wall)
    up = normals[on_wall, 1] > 0
    upper, lower = on_wall[up], on_wall[~up]
    return np.concatenate([upper[np.argsort(-place[upper, 0])], lower[np.argsort(place[lower, 0])]])
