"""Any file of arrays: the user's own HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch, or a Zarr store.

What the user says (`axes`, `arrays`, `fields`, `context`, `dt`, `lengths`) comes first; then what the file says:
names of dimensions (NetCDF, HDF5 labels, Zarr), coordinate arrays called `time`, `x`, ... of fitting length,
attributes that pack numbers (`scale_factor`, `add_offset`, `_FillValue`). What remains unknown is an error that lists
what was found, except the time step and the lengths, which are 1 and noted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import prod

import numpy as np

from ssno.data.context import NONE
from ssno.data.errors import DataError
from ssno.data.readers.arrays import MemoryArray, unit_of
from ssno.data.readers.axes import (
    COORDINATES,
    STEP,
    axes_of,
    choose_pattern,
    coordinate_lengths,
    fitting_patterns,
    is_coordinate,
    meaning_of,
    reordered,
    short,
    steps_of,
    stored_times,
    times_of,
)
from ssno.data.readers.blocks import Block, Part, Pattern, Resampling, default_fields, example_pattern, parse_pattern
from ssno.data.readers.registry import WHOLE, Reader, ReadOptions, listing
from ssno.data.readers.suggest import suggest_axes
from ssno.data.sandbox.parent import Contents, StoredArray
from ssno.data.splits import SPLITS
from ssno.data.trajectories import NAN, Trajectories, concatenate

NAMELESS = "array"  # what examiners call the one array of a file that has no names
TAKES = frozenset(field.name for field in fields(ReadOptions)) - {"viscosity"}


def recognise(contents: Contents) -> bool:
    """Any file with an array of at least two axes."""
    return any(len(stored.shape) >= 2 for stored in contents.arrays.values())


def open_file(contents: Contents, options: ReadOptions) -> dict[str, Trajectories]:
    """The arrays that the user names, or the only ones that can be meant; of every group, if each holds one run."""
    groups = run_groups(contents)
    if not groups:
        return {WHOLE: open_arrays(contents, options)}
    runs = [open_arrays(run, options) for run in groups]
    if options.resample is not None:
        runs = cut_to_shortest(runs)
    numbers = [{key: float(n) for key, n in run.attributes().items() if type(n) in (int, float)} for run in groups]
    shared = set.intersection(*map(set, numbers))
    whole = concatenate(runs)
    parameters = {key: np.array([number[key] for number in numbers]) for key in sorted(shared)}
    return {WHOLE: replace(whole, parameters={**whole.parameters, **parameters})}


def open_arrays(contents: Contents, options: ReadOptions) -> Trajectories:
    """One set of arrays."""
    names = state_arrays(contents, options)
    pattern = pattern_for(contents, names[0], options)
    own_steps = STEP in options.context and STEP not in contents.arrays
    if own_steps:
        options = replace(options, context=tuple(name for name in options.context if name != STEP) or NONE)
    fields, state, context, known_notes = _fields(contents, names, pattern, options)
    part = Part(state, tuple(context.values()))
    sizes = {word: part.size(word) for word in ("batch", "time", *part.space)}
    if own_steps:
        times, time_note, step = steps_of(contents, names[0], sizes, options, pattern)
        time_unit = ""
        context[STEP] = step
        part = Part(state, tuple(context.values()))
    elif options.resample is not None:
        key, time_rows = stored_times(contents, sizes, options)
        if time_rows is None:
            raise DataError(f"{contents.path} has no times to resample. Name them with --times, or give --dt.")
        resampling = Resampling.every(options.resample, time_rows, what=contents[key].array.label)
        part = Part(
            *(tuple(_resampled(block, resampling) for block in blocks) for blocks in (part.state, part.context))
        )
        times, time_unit, time_note = resampling.times, unit_of(contents[key].attributes), ""
    else:
        times, time_unit, time_note = times_of(contents, names[0], sizes, options)
    axes, axis_units, space_note = axes_of(contents, sizes, pattern, options)
    return Trajectories.from_parts(
        [part],
        name=contents.path.stem,
        fields=fields,
        context_fields=list(context),
        times=times,
        axes=axes,
        parameters=_parameters(
            contents, sizes, used={*names, *options.context, *options.coordinates, options.times, options.mask}
        ),
        notes=[
            note
            for note in (
                time_note,
                space_note,
                *known_notes,
                *(contents[name].remark for name in names),
                _taken_for_fields(names, options),
            )
            if note
        ],
        axis_units=axis_units,
        time_unit=time_unit,
    )


def run_groups(contents: Contents) -> list[Contents]:
    """The groups of a file as files of their own, if there are several that hold arrays of the same names: one per run.

    Arrays outside the groups (coordinates, a mask) belong to all. Numbers among a group's attributes can be named as
    context fields. Groups called like splits are not runs.
    """
    inside: dict[str, dict[str, StoredArray]] = {}
    for name, stored in contents.arrays.items():
        group, slash, inner = name.partition("/")
        if slash:
            inside.setdefault(group, {})[inner] = stored
    names = {tuple(sorted(arrays)) for arrays in inside.values()}
    large = any(len(stored.shape) >= 2 for arrays in inside.values() for stored in arrays.values())
    loose = {name: stored for name, stored in contents.arrays.items() if "/" not in name}
    if len(inside) < 2 or len(names) > 1 or not large or any(group in SPLITS for group in inside):
        return []
    return [
        replace(
            contents,
            arrays={**loose, **inside[group]},
            groups={"": {**contents.attributes(), **contents.attributes(group)}},
        )
        for group in sorted(inside, key=natural_order)
    ]


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts names by their numbers: `part_2` before `part_10`."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def cut_to_shortest(runs: Sequence[Trajectories]) -> list[Trajectories]:
    """Runs cut to the number of frames of the shortest."""
    frames = min(len(run.times) for run in runs)
    return [run.select(time_index=slice(0, frames)) for run in runs]


def state_arrays(contents: Contents, options: ReadOptions) -> tuple[str, ...]:
    """Names of the arrays that hold the state: the user's choice, or all candidates if their shapes agree."""
    if options.arrays:
        for name in options.arrays:
            _ = contents[name]  # an unknown name is an error that says what there is
        return options.arrays
    axes = None if options.axes is None else len(parse_pattern(options.axes).words)
    candidates = {
        name: stored
        for name, stored in contents.arrays.items()
        if name not in (options.mask, *options.context, options.times, *options.coordinates)
        and (len(stored.shape) >= 2 if axes is None else len(stored.shape) == axes)
    }
    most = max((len(stored.shape) for stored in candidates.values()), default=0)
    candidates = {name: stored for name, stored in candidates.items() if not is_coordinate(name, stored, axes=most)}
    if not candidates:
        wanted = "at least 2" if axes is None else str(axes)
        raise DataError(f"{contents.path} has no array with {wanted} axes. It holds: {listing(contents)}.")
    if len({(stored.shape, stored.dims) for stored in candidates.values()}) > 1:
        told = "; ".join(f"{name} {stored.shape}" for name, stored in candidates.items())
        raise DataError(
            f"{contents.path} holds several arrays that could be the state: {told}. Choose with --arrays NAME, one or "
            "more; others can be context fields (--context NAME) or a mask (--mask NAME)."
        )
    return tuple(candidates)


def _taken_for_fields(names: tuple[str, ...], options: ReadOptions) -> str:
    """A remark about fields that are called like coordinates, unless the user chose them."""
    odd = [name for name in names if meaning_of(name) in COORDINATES and not options.arrays]
    return f"{', '.join(odd)}: read as fields, having all axes of the state. Choose with --arrays." * bool(odd)


def pattern_for(contents: Contents, name: str, options: ReadOptions) -> Pattern:
    """The names of an array's axes: from the user, from the file's dimensions, or from its coordinates."""
    stored = contents[name]
    if options.axes is not None:
        pattern = parse_pattern(options.axes)
        pattern.check(stored.shape, what=stored.array.label)
        return pattern
    if stored.dims:
        words = ["time" if dim == options.times else meaning_of(dim) for dim in stored.dims]
    else:
        lengths = coordinate_lengths(contents, options)
        owners = [[word for word, n in lengths.items() if n == size] for size in stored.shape]
        if not any("time" in owner for owner in owners):  # PDEBench has one time more than frames
            late = [size + 1 == lengths.get("time") for size in stored.shape]
            owners = [[*owner, "time"] if one else owner for owner, one in zip(owners, late, strict=True)]
        words = [owner[0] if len(owner) == 1 else "" for owner in owners]
        if words and not words[0] and all(words[1:]):
            words[0] = "batch"  # everything after the first axis has a coordinate, so the first counts trajectories
    if all(words) and len(set(words)) == len(words) and "time" in words:
        return parse_pattern(" ".join(words))
    beside = {name: other.shape for name, other in contents.arrays.items()}
    known = "have no names" if not stored.dims else f"are called {', '.join(stored.dims)}, which is not enough"
    hint = "" if not stored.dims or "time" in words else "Name the time axis with --times NAME. Or else: "
    raise DataError(
        f"The axes of {stored.array.label}, of shape {stored.shape}, {known}. {hint}Name them, one word per axis: "
        f'--axes "{suggest_axes(stored.shape, beside) or example_pattern(len(stored.shape))}" (a guess).'
    )


def _fields(
    contents: Contents, names: tuple[str, ...], pattern: Pattern, options: ReadOptions
) -> tuple[list[str], tuple[Block, ...], dict[str, Block], list[str]]:
    """Names of the predicted channels, their blocks, a block for each context channel, and remarks."""
    first = contents[names[0]]
    patterns = [_own_pattern(contents[name], first, pattern) for name in names]
    channels = pattern.size("channel", first.shape)
    if channels == 1:
        labels = ["u" if name == NAMELESS else short(name) for name in names]
    elif len(names) == 1:
        labels = list(default_fields(channels))
    else:
        labels = [f"{short(name)}{i}" for name in names for i in range(channels)]
    if options.fields:
        if len(options.fields) != len(labels):
            raise DataError(f"{contents.path} has {len(labels)} channels, but `fields` names {options.fields}.")
        labels = list(options.fields)
    context: dict[str, Block] = {}
    notes = []
    wanted = () if options.context == NONE else options.context
    mask = () if options.mask in (None, NAN, *wanted) else (options.mask,)
    for known in (*wanted, *mask):
        if known in labels:
            owner, channel = divmod(labels.index(known), channels)
            context[known] = _block(contents[names[owner]], patterns[owner], pattern.space, (channel,))
        else:
            found, note = _context_array(contents, known, first, pattern, is_mask=known == options.mask)
            context |= found
            notes.append(note)
    predicted = [label for label in labels if label not in context]
    blocks = []
    for owner, name in enumerate(names):
        mine = tuple(i for i in range(channels) if labels[owner * channels + i] in predicted)
        if mine:
            blocks.append(_block(contents[name], patterns[owner], pattern.space, mine))
    if not blocks:
        raise DataError(f"No field to predict: all of {labels} were named as context.")
    return predicted, tuple(blocks), context, notes


def _own_pattern(stored: StoredArray, first: StoredArray, pattern: Pattern) -> Pattern:
    """The pattern of one of the state's arrays, where `pattern` is that of the first: its dimensions may be swapped."""
    return reordered(pattern, stored.dims, _meanings(stored.dims, first, pattern))


def _meanings(dims: Sequence[str], state: StoredArray, pattern: Pattern) -> dict[str, str]:
    """Axes of the state that the dimensions of an array mean: those of the same name, else what the name says."""
    own = dict(zip(state.dims, pattern.words, strict=True)) if len(state.dims) == len(pattern.words) else {}
    own |= {dim: "" for dim in state.dims if state.dims.count(dim) > 1}
    found = {dim: word for dim in dims if (word := own.get(dim, meaning_of(dim))) in pattern.words}
    return found if len({*dims}) == len(dims) and len({*found.values()}) == len(found) else {}


def _context_array(
    contents: Contents, name: str, state: StoredArray, pattern: Pattern, *, is_mask: bool
) -> tuple[dict[str, Block], str]:
    """A context field in an array of its own, and a remark: it may lack any axes of the state."""
    number = contents.attributes().get(name)
    if name not in contents.arrays and type(number) in (int, float):
        values = MemoryArray(np.array([number], np.float64), f"{name!r} of {contents.path}")
        return {name: Block(values, Pattern(("batch",)), pattern.space)}, ""
    inside = [key for key in contents.arrays if short(key) == name]
    name = (
        inside[0] if name not in contents.arrays and len(inside) == 1 else name
    )  # parameters are listed by short names
    stored = contents[name]
    if prod(stored.shape) == 1:  # one number for the whole file or group
        values = MemoryArray(np.asarray(contents.values(name), np.float64).reshape(1), stored.array.label)
        unit = unit_of(stored.attributes)
        return {short(name): Block(values, Pattern(("batch",)), pattern.space, unit=unit)}, ""
    dims = stored.dims if len(stored.dims) == len(stored.shape) else ("",) * len(stored.shape)
    if len(stored.shape) == 1 and not stored.dims and meaning_of(name) not in ("batch", "channel"):
        dims = (name,)  # an array called `time` or `x` that has one axis
    found = fitting_patterns(stored.shape, dims, _meanings(dims, state, pattern), pattern=pattern, state=state.shape)
    if not found:
        raise DataError(
            f"Context {stored.array.label} has shape {stored.shape}, which does not fit {state.shape} = ({pattern})."
        )
    if is_mask:  # says something about every point
        found = [one for one in found if {*pattern.space} <= {*one.words}] or found
    own, note = choose_pattern(found, what=stored.array.label, shape=stored.shape, pattern=pattern)
    channels = own.size("channel", stored.shape)
    labels = [short(name)] if channels == 1 else [f"{short(name)}{i}" for i in range(channels)]
    return {label: _block(stored, own, pattern.space, (i,)) for i, label in enumerate(labels)}, note


def _block(stored: StoredArray, pattern: Pattern, space: tuple[str, ...], channels: tuple[int, ...]) -> Block:
    return Block(stored.array, pattern, space, channels, stored.packing, unit=unit_of(stored.attributes))


def _resampled(block: Block, resampling: Resampling) -> Block:
    """A block at other times; one that does not change stays as it is."""
    return block if block.pattern.axis("time") is None else replace(block, resampling=resampling)


def _parameters(contents: Contents, sizes: Mapping[str, int], *, used: set[str | None]) -> dict[str, np.ndarray]:
    """Arrays with one number per trajectory, if nothing else has that length, and single numbers of the whole file."""
    count = sizes["batch"]
    listed = count > 1 and count not in [size for word, size in sizes.items() if word != "batch"]
    found = {}
    for name, stored in contents.arrays.items():
        if name in used or meaning_of(name) in sizes or short(name) == STEP:
            continue
        if prod(stored.shape) == 1:
            found[short(name)] = np.full(count, contents.values(name).item())
        elif stored.shape == (count,) and (listed or [meaning_of(dim) for dim in stored.dims] == ["batch"]):
            found[short(name)] = contents.values(name)
    return found


READER = Reader("arrays", TAKES, recognise, open_file)
