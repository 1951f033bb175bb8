"""The layout of The Well, which is also the layout of our own shards.

    t0_fields/NAME   scalars, (sample, time, *space)
    t1_fields/NAME   vectors, one more axis of D components at the end
    t2_fields/NAME   tensors, two more axes
    dimensions/      `time`, and one coordinate per name in the attribute `spatial_dims`
    scalars/NAME     (sample,) numbers of each trajectory
    boundary_conditions/*   with attributes `bc_type`, `associated_dims`

Every field says which axes it has: an axis for which `sample_varying`, `time_varying` or `dim_varying` is false is
not stored. Fields that do not vary in time are context, as are those listed in our root attribute `context_fields`;
all others are predicted. The Well's coordinates may be inside other fields' files,
ours carry `length`, `offset` and `periodic`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ssno.data.errors import DataError
from ssno.data.grids import axis_from_coordinates
from ssno.data.readers.arrays import LayerArray, LazyArray
from ssno.data.readers.blocks import Block, Part, Pattern
from ssno.data.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.sandbox.parent import Contents, StoredArray
from ssno.data.trajectories import Trajectories
from ssno.data.units import unit_of
from ssno.pde.geometry import CARTESIAN, GEOMETRIES
from ssno.pde.problems.problem import Axis

OWN_CHOICE = ("ssno data convert", "ssno predict")  # generators whose datasets are called as the user likes
PERIODIC = ("periodic", "2")  # The Well's boundary codes: wall 0, open 1, periodic 2


def recognise(contents: Contents) -> bool:
    """Groups `dimensions` and `t0_fields`."""
    return contents.kind == "hdf5" and {"dimensions", "t0_fields"} <= set(contents.groups)


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """All trajectories of one file."""
    space = tuple(contents.attributes("dimensions").get("spatial_dims", ()))
    fine = all(isinstance(name, str) and name not in ("batch", "time", "channel", "1") for name in space)
    if not fine or not 1 <= len(set(space)) == len(space) <= 3:
        raise DataError(f"{contents.path}: `spatial_dims` of `dimensions` must name 1 to 3 axes, got {space}.")
    grid = str(contents.attributes().get("grid_type", "cartesian"))
    known = set(contents.attributes().get("context_fields", ()))
    state: dict[str, Block] = {}
    context: dict[str, Block] = {}
    for name, names, block in _fields(contents, space):
        constant = block.pattern.axis("time") is None
        chosen = context if constant or name in known or known & set(names) else state
        chosen.update(dict.fromkeys(names, block))
    if not state:
        raise DataError(f"{contents.path} has no field that varies in time and is to be predicted.")
    root = contents.attributes()
    mask = root.get("mask_field")
    part = Part(tuple(dict.fromkeys(state.values())), tuple(dict.fromkeys(context.values())))
    data = Trajectories.from_parts(
        [part],
        name=str(root.get("dataset_name", contents.path.stem)),
        published="dataset_name" in root and root.get("generator") not in OWN_CHOICE,
        fields=list(state),
        context_fields=list(context),
        times=_times(contents),
        axes=[_axis(contents, name) for name in space],
        parameters=_parameters(contents, part.count),
        notes=[] if grid in GEOMETRIES else [f"`grid_type` is {grid!r}; its axes are used as if they were Cartesian."],
        geometry=GEOMETRIES.get(grid, CARTESIAN),
        axis_units={name: unit_of(contents[f"dimensions/{name}"].attributes) for name in space},
        time_unit=unit_of(contents["dimensions/time"].attributes),
    )
    return {WHOLE: data.masked(mask) if mask in context else data}


def _fields(contents: Contents, space: tuple[str, ...]) -> Iterator[tuple[str, list[str], Block]]:
    """Every stored field with the names of its channels; a tensor comes row by row."""
    for order in range(3):
        group = f"t{order}_fields"
        listed = contents.attributes(group).get("field_names")
        stored = [name.removeprefix(f"{group}/") for name in contents.arrays if name.startswith(f"{group}/")]
        for name in stored if listed is None else listed:
            field = contents[f"{group}/{name}"]
            pattern, unit = _pattern(field, space, order), unit_of(field.attributes)
            if order == 0:
                yield name, [name], Block(field.array, pattern, space, unit=unit)
                continue
            suffixes = _components(field.shape[-1], space)
            channels = tuple(range(len(suffixes)))
            if order == 1:
                yield name, [f"{name}_{b}" for b in suffixes], Block(field.array, pattern, space, channels, unit=unit)
                continue
            for row, a in enumerate(_components(field.shape[-2], space)):
                layer: LazyArray = LayerArray(field.array, axis=len(field.shape) - 2, index=row)
                yield name, [f"{name}_{a}{b}" for b in suffixes], Block(layer, pattern, space, channels, unit=unit)


def _components(count: int, space: tuple[str, ...]) -> list[str]:
    return list(space) if count == len(space) else [str(i) for i in range(count)]


def _pattern(field: StoredArray, space: tuple[str, ...], order: int) -> Pattern:
    """The axes that a field has, from its flags."""
    flags = field.attributes
    varying = flags.get("dim_varying", [True] * len(space))
    if not isinstance(varying, list) or len(varying) != len(space):
        raise DataError(f"{field.array.label}: `dim_varying` must have one flag per axis {space}, got {varying}.")
    words = ["batch"] * bool(flags.get("sample_varying", True)) + ["time"] * bool(flags.get("time_varying", True))
    words += [word for word, flag in zip(space, varying, strict=True) if flag]
    words += {0: [], 1: ["channel"], 2: ["1", "channel"]}[order]
    if len(words) != len(field.shape):
        raise DataError(f"{field.array.label} has shape {field.shape}, its attributes declare ({', '.join(words)}).")
    return Pattern(tuple(words))


def _times(contents: Contents) -> np.ndarray:
    times = contents.values("dimensions/time").astype(np.float64)
    if times.ndim == 2 and len(times) and np.allclose(times, times[:1], rtol=1e-6, atol=0):
        times = times[0]
    if times.ndim != 1:
        raise DataError(f"{contents.path}: `dimensions/time` has shape {times.shape}; trajectories must share times.")
    return times


def _axis(contents: Contents, name: str) -> Axis:
    stored = contents[f"dimensions/{name}"]
    own: Any = [stored.attributes.get(key) for key in ("length", "offset", "periodic")]
    coordinates = contents.values(f"dimensions/{name}").astype(np.float64)
    if coordinates.ndim != 1:
        raise DataError(f"{stored.array.label} has shape {coordinates.shape}; only fixed uniform grids are read.")
    if all(isinstance(value, int | float) for value in own):
        try:
            return Axis(name, float(own[0]), len(coordinates), float(own[1]), bool(own[2]))
        except ValueError as error:
            raise DataError(f"{stored.array.label}: {error}") from error
    periodic = any(
        str(attributes.get("bc_type", "")).lower() in PERIODIC
        and name in attributes.get("associated_dims", [group.rsplit("/", 1)[-1].split("_")[0]])
        for group, attributes in contents.groups.items()
        if group.startswith("boundary_conditions/")
    )
    return axis_from_coordinates(name, coordinates, periodic=periodic, what=stored.array.label)


def _parameters(contents: Contents, count: int) -> dict[str, np.ndarray]:
    """Numbers of each trajectory: drawn ones, and constants of the whole file that the root attributes list."""
    found = {}
    for name, stored in contents.arrays.items():
        if name.startswith("scalars/") and stored.shape[:1] == (count,) and not stored.attributes.get("time_varying"):
            found[name.removeprefix("scalars/")] = contents.values(name)
    root = contents.attributes()
    for name in root.get("simulation_parameters", ()):
        if isinstance(root.get(name), int | float) and name not in found:
            found[name] = np.full(count, root[name])
    return found


READER = Reader("The Well / ssno", frozenset(), recognise, open_file)
