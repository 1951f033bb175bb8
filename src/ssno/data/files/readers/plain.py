"""Any file of arrays: the user's own HDF5, NetCDF, NPZ, NPY or Zarr.

What the user says (`axes`, `arrays`, `fields`, `context`, `dt`, `lengths`) comes first; then what the file says:
names of dimensions (NetCDF, HDF5 labels, Zarr), coordinate arrays called `time`, `x`, ... of fitting length,
attributes that pack numbers (`scale_factor`, `add_offset`, `_FillValue`). What remains unknown is an error that lists
what was found, except the time step and the lengths, which are 1 and noted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from jaxtyping import Float

from ssno.data.concatenate import concatenate
from ssno.data.context import NONE
from ssno.data.errors import DataError
from ssno.data.files.arrays import MemoryArray
from ssno.data.files.blocks import Block, Part, default_fields
from ssno.data.files.patterns import MEANING, Pattern, example_pattern, parse_pattern
from ssno.data.files.probe import Contents, StoredArray
from ssno.data.files.readers.protocol import WHOLE, Reader, ReadOptions
from ssno.data.files.resampling import Resampling
from ssno.data.files.shared_axes import choose_pattern, fitting_patterns, reordered
from ssno.data.files.suggest import suggest_axes
from ssno.data.grids import axis_from_coordinates, box, uniform_step
from ssno.data.seeds import SPLITS
from ssno.data.trajectories import NAN, Trajectories
from ssno.pde.problems.problem import Axis

STEP = "dt"  # as the name of a known field: the time step of each trajectory
COORDINATES = ("time", "x", "y", "z", "lat", "lon")
COUNTS = ("step", "frame", "snapshot")  # may mean time, but time itself comes first
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
        runs = to_the_shortest(runs)
    numbers = [{key: float(n) for key, n in run.attributes().items() if type(n) in (int, float)} for run in groups]
    shared = set.intersection(*map(set, numbers))
    parameters = {key: np.array([number[key] for number in numbers]) for key in sorted(shared)}
    return {WHOLE: replace(concatenate(runs), parameters=parameters)}


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
        times, time_note, step = _steps(contents, names[0], sizes, options, pattern)
        context[STEP] = step
        part = Part(state, tuple(context.values()))
    elif options.resample is not None:
        key, clocks = _clocks(contents, sizes, options)
        if clocks is None:
            raise DataError(f"{contents.path} has no times to resample. Name them with --times, or give --dt.")
        resampling = Resampling.every(options.resample, clocks, what=contents[key].array.label)
        part = Part(
            *(tuple(_resampled(block, resampling) for block in blocks) for blocks in (part.state, part.context))
        )
        times, time_note = resampling.times, ""
    else:
        times, time_note = _times(contents, names[0], sizes, options)
    axes, space_note = _axes(contents, sizes, pattern, options)
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
    )


def run_groups(contents: Contents) -> list[Contents]:
    """The groups of a file as files of their own, if there are several that hold arrays of the same names: one per run.

    Arrays outside the groups (coordinates, a mask) belong to all. Numbers among a group's attributes can be named as
    known fields. Groups called like splits are not runs.
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

    def order(group: str) -> list[tuple[int, str]]:
        return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", group)]

    return [
        replace(
            contents,
            arrays={**loose, **inside[group]},
            groups={"": {**contents.attributes(), **contents.attributes(group)}},
        )
        for group in sorted(inside, key=order)
    ]


def to_the_shortest(runs: Sequence[Trajectories]) -> list[Trajectories]:
    """Runs that begin alike, cut to the frames that all have."""
    frames = min(len(run.times) for run in runs)
    return [run.select(time_index=slice(0, frames)) for run in runs]


def state_arrays(contents: Contents, options: ReadOptions) -> tuple[str, ...]:
    """Names of the arrays that hold the state: the user's choice, or all candidates if they look alike."""
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
    candidates = {name: stored for name, stored in candidates.items() if not _is_coordinate(name, stored, axes=most)}
    if not candidates:
        wanted = "at least 2" if axes is None else str(axes)
        raise DataError(f"{contents.path} has no array with {wanted} axes. It holds: {listing(contents)}.")
    if len({(stored.shape, stored.dims) for stored in candidates.values()}) > 1:
        told = "; ".join(f"{name} {stored.shape}" for name, stored in candidates.items())
        raise DataError(
            f"{contents.path} holds several arrays that could be the state: {told}. Choose with --arrays NAME, one or "
            "more; others can be known fields (--context NAME) or a mask (--mask NAME)."
        )
    return tuple(candidates)


def _taken_for_fields(names: tuple[str, ...], options: ReadOptions) -> str:
    """A remark about fields that are called like coordinates, unless the user chose them."""
    odd = [name for name in names if _word(name) in COORDINATES and not options.arrays]
    return f"{', '.join(odd)}: read as fields, having all axes of the state. Choose with --arrays." * bool(odd)


def pattern_for(contents: Contents, name: str, options: ReadOptions) -> Pattern:
    """The names of an array's axes: from the user, from the file's dimensions, or from its coordinates."""
    stored = contents[name]
    if options.axes is not None:
        pattern = parse_pattern(options.axes)
        pattern.check(stored.shape, what=stored.array.label)
        return pattern
    if stored.dims:
        words = ["time" if dim == options.times else _word(dim) for dim in stored.dims]
    else:
        lengths = _coordinate_lengths(contents, options)
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
    known = "have no names" if not stored.dims else f"are called {', '.join(stored.dims)}, which does not say all"
    hint = "" if not stored.dims or "time" in words else "Say which is time, --times NAME. Or else: "
    raise DataError(
        f"The axes of {stored.array.label}, of shape {stored.shape}, {known}. {hint}Name them, one word per axis: "
        f'--axes "{suggest_axes(stored.shape, beside) or example_pattern(len(stored.shape))}" (a guess).'
    )


def listing(contents: Contents) -> str:
    """Names, shapes and types of everything in a file, and what will not be read."""
    found = [f"{name} {stored.shape} {np.dtype(stored.dtype)}" for name, stored in contents.arrays.items()]
    found += [f"{name} (not read: {why})" for name, why in contents.refused.items()]
    return "; ".join(found) or "nothing"


def _fields(
    contents: Contents, names: tuple[str, ...], pattern: Pattern, options: ReadOptions
) -> tuple[list[str], tuple[Block, ...], dict[str, Block], list[str]]:
    """Names of the predicted channels, their blocks, a block for each context channel, and remarks."""
    first = contents[names[0]]
    patterns = [_own_pattern(contents[name], first, pattern) for name in names]
    channels = pattern.size("channel", first.shape)
    if channels == 1:
        labels = ["u" if name == NAMELESS else _short(name) for name in names]
    elif len(names) == 1:
        labels = list(default_fields(channels))
    else:
        labels = [f"{_short(name)}{i}" for name in names for i in range(channels)]
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
    found = {dim: word for dim in dims if (word := own.get(dim, _word(dim))) in pattern.words}
    return found if len({*dims}) == len(dims) and len({*found.values()}) == len(found) else {}


def _context_array(
    contents: Contents, name: str, state: StoredArray, pattern: Pattern, *, is_mask: bool
) -> tuple[dict[str, Block], str]:
    """A known field in an array of its own, and a remark: it may lack any axes of the state."""
    number = contents.attributes().get(name)
    if name not in contents.arrays and type(number) in (int, float):
        values = MemoryArray(np.array([number], np.float64), f"{name!r} of {contents.path}")
        return {name: Block(values, Pattern(("batch",)), pattern.space)}, ""
    stored = contents[name]
    if stored.shape in ((), (1,)):  # one number for the whole file or group
        values = MemoryArray(np.asarray(contents.values(name), np.float64).reshape(1), stored.array.label)
        return {_short(name): Block(values, Pattern(("batch",)), pattern.space)}, ""
    dims = stored.dims if len(stored.dims) == len(stored.shape) else ("",) * len(stored.shape)
    if len(stored.shape) == 1 and not stored.dims and _word(name) not in ("batch", "channel"):
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
    labels = [_short(name)] if channels == 1 else [f"{_short(name)}{i}" for i in range(channels)]
    return {label: _block(stored, own, pattern.space, (i,)) for i, label in enumerate(labels)}, note


def _block(stored: StoredArray, pattern: Pattern, space: tuple[str, ...], channels: tuple[int, ...]) -> Block:
    return Block(stored.array, pattern, space, channels, stored.packing)


def _times(contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions) -> tuple[np.ndarray, str]:
    """Times of the frames, and a remark if something about them has to be said."""
    frames = sizes["time"]
    if options.dt is not None:
        return options.dt * np.arange(frames, dtype=np.float64), ""
    key, clocks = _clocks(contents, sizes, options)
    if clocks is not None:
        if not np.isfinite(clocks).all():
            raise DataError(f"{contents[key].array.label} has times that are not finite. Give --dt, or mend the file.")
        if not np.allclose(clocks, clocks[:1], rtol=1e-6, atol=1e-6 * float(np.ptp(clocks[0]))):
            raise DataError(
                f"{contents[key].array.label} has other times for other trajectories. Trajectories of one dataset "
                "share their times: give --resample STEP to interpolate them, --context dt if each has a constant "
                "step of its own for the model to know, or --dt to count frames as equally spaced."
            )
        spare = contents[key].shape == (frames + 1,)
        return _equally_spaced(contents, key, clocks[0]), f"The last entry of {key!r} belongs to no frame." * spare
    step = {**contents.attributes(), **contents[name].attributes}.get("dt")
    if isinstance(step, int | float) and 0 < step < float("inf"):
        return float(step) * np.arange(frames, dtype=np.float64), ""
    return np.arange(frames, dtype=np.float64), "The file has no times: the step is taken as 1. Give --dt."


def _clocks(
    contents: Contents, sizes: Mapping[str, int], options: ReadOptions
) -> tuple[str, Float[np.ndarray, "n t"] | None]:
    """The array of times and its numbers, a line for each trajectory or one for all; None if the file has none."""
    named = [options.times] if options.times else [key for key in contents.arrays if _word(key) == "time"]
    found = {key: clocks for key in named if (clocks := _clock_lines(contents, key, sizes)) is not None}
    if options.times and not found:
        stored = contents[options.times]
        raise DataError(f"{stored.array.label} has shape {stored.shape}, which are no times of {sizes['time']} frames.")
    counts = [key for key in found if _short(key).lower().removesuffix("s") in COUNTS]
    found = {key: clocks for key, clocks in found.items() if key not in counts or len(counts) == len(found)}
    if not found:
        return "", None
    (first, clocks), *others = found.items()
    for other, theirs in others:
        if not np.allclose(clocks, theirs, rtol=1e-6, atol=1e-6 * float(np.ptp(clocks))):
            raise DataError(
                f"{contents.path} has two arrays of times that differ, {first} and {other}. Choose with --times NAME."
            )
    return first, clocks


def _clock_lines(contents: Contents, key: str, sizes: Mapping[str, int]) -> Float[np.ndarray, "n t"] | None:
    """Numbers of an array as times, if it has the shape of times."""
    frames, shape = sizes["time"], contents[key].shape
    if shape in ((frames,), (frames + 1,)):
        return contents.values(key)[None, :frames].astype(np.float64)
    return contents.values(key).astype(np.float64) if shape == (sizes["batch"], frames) else None


def _steps(
    contents: Contents, name: str, sizes: Mapping[str, int], options: ReadOptions, pattern: Pattern
) -> tuple[np.ndarray, str, Block]:
    """Frames counted as times, a remark, and the time step of every trajectory as a known field."""
    key, clocks = _clocks(contents, sizes, options)
    if clocks is None or clocks.shape[1] < 2:
        given = {**contents.attributes(), **contents[name].attributes}.get(STEP)
        if type(given) not in (int, float):
            raise DataError(f"{contents.path} has no times from which the steps of trajectories could be known.")
        steps = np.array([given], np.float64)
    else:
        for clock in clocks:
            _equally_spaced(contents, key, clock)
        steps = (clocks[:, -1] - clocks[:, 0]) / (clocks.shape[1] - 1)
    steps = np.broadcast_to(steps, (sizes["batch"],)).copy()
    block = Block(MemoryArray(steps, f"the time steps of {contents.path}"), Pattern(("batch",)), pattern.space)
    note = "Times count frames: each trajectory has a time step of its own, the known field 'dt'."
    return np.arange(sizes["time"], dtype=np.float64), note, block


def _resampled(block: Block, resampling: Resampling) -> Block:
    """A block at other times; one that does not change stays as it is."""
    return block if block.pattern.axis("time") is None else replace(block, resampling=resampling)


def _equally_spaced(contents: Contents, key: str, times: np.ndarray) -> np.ndarray:
    """Times that a model with one time step can use; others are an error with the remedy."""
    times = times.astype(np.float64)
    if len(times) > 1:
        try:
            uniform_step(times, what=f"{contents[key].array.label} (the times)")
        except DataError as error:
            raise DataError(
                f"{error} Models step by a constant time: give --resample STEP to interpolate, choose equally spaced "
                "frames, or give --dt to count frames as equally spaced."
            ) from error
    return times


def _axes(
    contents: Contents, sizes: Mapping[str, int], pattern: Pattern, options: ReadOptions
) -> tuple[tuple[Axis, ...], str]:
    named = pattern.stored_space
    stored = box(named, [sizes[w] for w in named], lengths=options.lengths or None, periodic=options.periodic)
    if options.coordinates and len(options.coordinates) != len(named):
        raise DataError(f"`coordinates` must name one array per space axis {named}, got {options.coordinates}.")
    found = {axis.name: axis for axis in stored}
    sources = dict(zip(named, options.coordinates, strict=True)) if options.coordinates else {}
    if not options.lengths and not sources:
        sources = {_word(key): key for key, array in contents.arrays.items() if len(array.shape) == 1}
    for word, key in sources.items():
        if word not in found or sizes[word] == 1 or (not options.coordinates and contents[key].shape != (sizes[word],)):
            continue
        try:
            values, label = contents.values(key).astype(np.float64), contents[key].array.label
            if values.shape != (sizes[word],):
                raise DataError(f"{label} has shape {values.shape} for {sizes[word]} points along {word}.")
            found[word] = axis_from_coordinates(word, values, periodic=found[word].periodic, what=label)
        except DataError as error:
            raise DataError(f"{error} Give --lengths to use the points as equally spaced.") from error
    unknown = [] if options.lengths else [word for word in pattern.space if word not in sources or sizes[word] == 1]
    note = f"The file has no coordinates for {', '.join(unknown)}: length 1 is assumed. Give --lengths." * bool(unknown)
    return tuple(found[word] for word in pattern.space), note


def _parameters(contents: Contents, sizes: Mapping[str, int], *, used: set[str | None]) -> dict[str, np.ndarray]:
    """Arrays with one number per trajectory, if nothing else has that length."""
    count = sizes["batch"]
    if count == 1 or count in [size for word, size in sizes.items() if word != "batch"]:
        return {}
    return {
        _short(name): contents.values(name)
        for name, stored in contents.arrays.items()
        if stored.shape == (count,) and name not in used and _word(name) not in sizes
    }


def _coordinate_lengths(contents: Contents, options: ReadOptions) -> dict[str, int]:
    """Lengths of one-axis arrays called time, x, y or z (or lat, lon), or named by the user."""
    named = {_word(name): stored.shape for name, stored in contents.arrays.items() if len(stored.shape) == 1}
    found = {word: shape[0] for word, shape in named.items() if word in COORDINATES}
    if options.times and len(contents[options.times].shape) == 1:
        found["time"] = contents[options.times].shape[0]
    return found | {_word(name): contents[name].shape[0] for name in options.coordinates if contents[name].shape}


def _is_coordinate(name: str, stored: StoredArray, *, axes: int) -> bool:
    """Whether an array is called like a coordinate and is one: T or Z with all the axes of a state is a field."""
    line = sum(size > 1 for size in stored.shape) <= 1  # in MATLAB, lists are columns
    return name in stored.dims or (_word(name) in COORDINATES and (line or len(stored.shape) < axes))


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _word(name: str) -> str:
    """What a dimension or coordinate called so means: `t-coordinate` and `times` are time, `longitude` is lon."""
    word = _short(name).lower()
    for ending in ("-coordinate", "_coordinate", "_coord", "-coord", "coord", "itude"):
        word = word.removesuffix(ending)
    word = {"times": "time", "long": "lon", "latit": "lat", "longit": "lon", "xs": "x", "ts": "time"}.get(word, word)
    return MEANING.get(word, word)


READER = Reader("arrays", TAKES, recognise, open_file)
