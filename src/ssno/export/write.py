"""Write a trained model as a file that other programs run, and check that the file computes what PyTorch does.

    export_run(open_run("ks-0.1-64"), "ks.onnx", format="onnx", resolution=(64,))

    onnx    for ONNX Runtime and others; ordinary operations of opset 20, real numbers only
    torch   `torch.export.load`: the graph and its weights
    aoti    compiled for this processor (AOTInductor): loaded from Python, or from C++ (examples/aoti)

What is exported is one streaming step on one grid (`ssno.export.step`) in real arithmetic (`ssno.export.real`).

The file is run beside PyTorch over 50 steps from smooth random states. Two rules, both relative to the size of each
field, and nothing is left on disk if one is broken:

    one step      from each of PyTorch's own 50 states the next frame differs by at most 1e-4
    free running  step k differs by at most 1e-4, or, where the forecast itself amplifies errors, by ten times what a
                  start perturbed by 1e-6 changes PyTorch's own step k
"""

import json
import logging
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.export import Dim, ExportedProgram

from ssno.base import package_version, require_one_of, require_positive
from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.export.real import RealStep, UnsupportedOperation
from ssno.export.step import ForecastStep
from ssno.forecasting.forecaster import Forecaster, rescaled
from ssno.forecasting.rollout import rollout
from ssno.runs.open import RunFolder
from ssno.ssm.kernel import PERIODIC

ExportFormat = Literal["onnx", "torch", "aoti"]
ENDINGS = {"onnx": ".onnx", "torch": ".pt2", "aoti": ".aoti.pt2"}
OPSET = 20
CHECKED_STEPS = 50
TOLERANCE = 1e-4
PERTURBATION, AMPLIFIED = 1e-6, 10.0
"""Size of a perturbation in units of each field, and how many times its growth free-running forecasts may differ."""
LICENCE = "MIT"
"""Of the package and the checkpoints that come with it. Weights trained by others belong to whoever trained them."""

StepFunction = Callable[[np.ndarray, np.ndarray | None], Sequence[np.ndarray]]
"""(frame, buffer) -> (frames, buffer, buffer after the first step), as far as there are any."""


class ExportMismatch(ValueError):
    """An exported file that does not compute what PyTorch does."""


@dataclass(frozen=True)
class Agreement:
    """How closely an exported file follows PyTorch, relative to the size of each field."""

    steps: int
    """Steps compared: fewer than 50 if PyTorch's own forecast diverges before."""
    one_step: float
    """Largest difference of one step from PyTorch's own states."""
    free_running: float
    """Difference of the last compared step of the free-running forecasts."""
    amplification: float
    """How many times the forecast has enlarged a small perturbation at that step."""


@dataclass(frozen=True)
class ExportedModel:
    """A file that was written."""

    path: Path
    format: ExportFormat
    bytes: int
    agreement: Agreement
    metadata: dict[str, Any]


def export_run(
    run: RunFolder,
    path: str | Path | None = None,
    *,
    format: ExportFormat = "onnx",
    resolution: Sequence[int] | None = None,
    batch: int | Literal["any"] = 1,
    steps: int = 1,
    overwrite: bool = False,
) -> ExportedModel:
    """Write the step of a run's forecaster on one grid as a file, after comparing the two.

    Args:
        run: what `open_run` opened.
        path: the new file; by default the run's name with the ending of the format, in the current folder.
        format: "onnx", "torch" or "aoti".
        resolution: points along the first axis (others in proportion) or along each; by default those of training.
        batch: trajectories per call, or "any".
        steps: steps per call, unrolled.
        overwrite: replace an existing file.
    """
    require_one_of("format", format, get_args(ExportFormat))
    require_positive("steps", steps)
    if batch != "any":
        require_positive("batch", batch)
    path = Path(f"{run.name.replace('/', '-')}{ENDINGS[format]}") if path is None else Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"`output` must name a file, but {path} is a folder.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already. Choose another name, or replace it with --overwrite.")
    if format == "onnx":
        require_onnx()
    forecaster = run.forecaster.cpu().in_precision("float32").eval()
    grid, spacing = grid_for(run, resolution)
    step = ForecastStep(forecaster, grid=grid, spacing=spacing, steps=steps).eval().requires_grad_(False)
    metadata = describe(run, step, spacing=spacing, batch=batch)
    with _quiet():
        program = traced_step(step, batch=batch, model=run.model)
        with tempfile.TemporaryDirectory() as folder:
            built = Path(folder) / f"model{ENDINGS[format]}"
            WRITERS[format](program, built, step, metadata)
            agreement = compare(
                RUNNERS[format](built), forecaster, step, spacing=spacing, batch=3 if batch == "any" else batch
            )
            data = built.read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)
    return ExportedModel(path, format, len(data), agreement, metadata)


def grid_for(run: RunFolder, resolution: Sequence[int] | None) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """The grid to export on, and its spacing (None: that of training). Refuses grids that the model does not take."""
    forecaster, axes = run.forecaster, getattr(run.forecaster.model, "config").n_dims  # noqa: B009
    trained = run.grid
    if trained is None and run.data is not None and run.data.resolution is not None:
        trained = (run.data.resolution,) * axes
    if resolution is None and trained is None:
        raise ValueError(
            f"`resolution` is needed: {run.name} does not record the grid of its training data. Give the points along "
            f"each of its {axes} axes."
        )
    chosen = tuple(resolution or trained or ())
    if len(chosen) == 1 < axes:
        others = [points * chosen[0] for points in trained or (1,) * axes]
        first = (trained or (1,) * axes)[0]
        if any(points % first for points in others):
            raise ValueError(
                f"`resolution`: {chosen[0]} points along the first axis leave no whole number along the others of "
                f"{trained}. Give the points along each axis."
            )
        chosen = tuple(points // first for points in others)
    if len(chosen) != axes or min(chosen) < 1:
        raise ValueError(f"`resolution` must have 1 or {axes} positive numbers for this model, got {chosen}.")
    if trained is None or chosen == tuple(trained) or forecaster.spacing is None:
        return chosen, forecaster.spacing
    config: Any = run.forecaster.model.config
    boundaries = config.boundaries() if hasattr(config, "boundaries") else ("periodic",)
    if "cartesian" not in config.geometries or any(one not in PERIODIC for one in boundaries):
        raise ValueError(
            f"`resolution` must be the training grid, {' x '.join(map(str, trained))}: the spacing of another one is "
            "known for periodic axes only, and this model has walls or works on a sphere."
        )
    spacing = rescaled(forecaster.spacing, trained, chosen)
    working = forecaster.working_grid(chosen, spacing=spacing)
    if working != chosen:
        raise ValueError(
            f"`resolution`: on {' x '.join(map(str, chosen))} points this model forecasts on "
            f"{' x '.join(map(str, working))} and resamples. Export it with --resolution {' '.join(map(str, working))}."
        )
    return chosen, spacing


def traced_step(step: ForecastStep, *, batch: int | Literal["any"], model: str) -> ExportedProgram:
    """The step in real arithmetic, as `torch.export` has it."""
    example = 2 if batch == "any" else batch
    buffer = step.empty_buffer(example)
    frame = step.state_shift.new_zeros(example, step.inputs, *step.grid)
    inputs = (frame,) if buffer is None else (frame, buffer)
    shapes: Any = None
    if batch == "any":
        size = Dim("batch", min=1)
        shapes = ({0: size},) if buffer is None else ({0: size}, {step.batch_dim % buffer.ndim: size})
    with torch.no_grad():
        step(*inputs)  # tables that are made once and kept must not be made while PyTorch traces; refuses wrong grids
        program = torch.export.export(step, inputs, dynamic_shapes=shapes)
        try:
            real = RealStep(program)
            return torch.export.export(real, inputs, dynamic_shapes=None if shapes is None else (shapes,))
        except UnsupportedOperation as error:
            raise ValueError(f"{model!r} cannot be exported: {error}.") from error


def describe(
    run: RunFolder, step: ForecastStep, *, spacing: Sequence[float] | None, batch: int | Literal["any"]
) -> dict[str, Any]:
    """What the file says about itself, as JSON values; None for what the run does not record."""
    forecaster, buffer = run.forecaster, step.empty_buffer(1)
    shape: list[Any] | None = None
    if buffer is not None:
        shape = list(buffer.shape)
        shape[step.batch_dim] = batch
    data = run.config.get("data")
    trained = data.get("train", {}) if isinstance(data, dict) else {}
    config: Any = forecaster.model.config
    described = forecaster.describe()
    units = {**described["forecaster"], "spacing": spacing, "spacings": [], "predict_increment": False}
    return {
        "name": run.name,
        "model": run.model,
        "fields": list(forecaster.normalisers.state.fields),
        "context_fields": list(forecaster.normalisers.context.fields),
        "units": trained.get("units"),
        "axes": trained.get("axes"),
        "grid": list(step.grid),
        "spacing": None if spacing is None else list(spacing),
        "dt": run.time_step,
        "boundary": list(config.boundaries()) if hasattr(config, "boundaries") else None,
        "normalisation": {"state": units["state"], "context": units["context"]},
        "predict_increment": forecaster.predict_increment,
        "batch": batch,
        "steps": step.steps,
        "input_frames": step.input_frames,
        "buffer": shape,
        "buffer_batch_axis": None if shape is None else step.batch_dim % len(shape),
        "licence": LICENCE if run.folder.is_relative_to(Path(__file__).parents[1]) else "not stated",
        "commit": provenance()["commit"],
        "ssno_version": package_version(),
        "torch_version": torch.__version__,
        "opset": OPSET,
        "forecaster": units,
        "trained_on": {name: trained[name] for name in ("shape", "times") if name in trained},
    }


# The three formats.


def require_onnx() -> None:
    """Say what to install, before anything is computed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(f"ONNX files need {error.name}: pip install 'ssno[onnx]'.") from error


def as_texts(metadata: dict[str, Any]) -> dict[str, str]:
    """Metadata as files hold them: a JSON text for each name."""
    return {name: json.dumps(value) for name, value in metadata.items()}


def _write_onnx(program: ExportedProgram, path: Path, step: ForecastStep, metadata: dict[str, Any]) -> None:
    inputs = ["frame"] if step.input_frames == 1 else ["frame", "buffer"]
    outputs = ["next", "next_buffer", "first_buffer"][: 1 if len(inputs) == 1 else 2 if step.steps == 1 else 3]
    written: Any = torch.onnx.export(
        program, dynamo=True, opset_version=OPSET, input_names=inputs, output_names=outputs, verbose=False
    )
    proto = written.model_proto
    check_operations(proto)
    del proto.metadata_props[:]
    for name, text in as_texts(metadata).items():
        proto.metadata_props.add(key=name, value=text)
    path.write_bytes(proto.SerializeToString())


def check_operations(proto: Any) -> None:
    """Refuse a graph with transforms, complex numbers or operations of anybody's own: an assertion of ours."""
    from onnx import TensorProto

    for node in proto.graph.node:
        assert node.domain in ("", "ai.onnx"), f"{node.op_type} is not an operation of ONNX"
        assert node.op_type not in ("DFT", "STFT"), "transforms are matrix products"
    kinds = {one.data_type for one in proto.graph.initializer}
    assert not kinds & {TensorProto.COMPLEX64, TensorProto.COMPLEX128}, "numbers are real"


def _run_onnx(path: Path) -> StepFunction:
    return onnx_function(path.read_bytes())


def onnx_function(data: bytes) -> StepFunction:
    """The step of an ONNX file, on this processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(frame: np.ndarray, buffer: np.ndarray | None) -> Sequence[np.ndarray]:
        return session.run(None, dict(zip(names, (frame, buffer), strict=False)))

    return run


def _write_torch(program: ExportedProgram, path: Path, step: ForecastStep, metadata: dict[str, Any]) -> None:
    torch.export.save(program, path, extra_files={"metadata.json": json.dumps(metadata)})


def _run_torch(path: Path) -> StepFunction:
    return _of_tensors(torch.export.load(path).module())


def _write_aoti(program: ExportedProgram, path: Path, step: ForecastStep, metadata: dict[str, Any]) -> None:
    configs = {"aot_inductor.metadata": as_texts(metadata)}
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=configs)


def _run_aoti(path: Path) -> StepFunction:
    return _of_tensors(torch._inductor.aoti_load_package(str(path)))


def _of_tensors(function: Callable[..., Any]) -> StepFunction:
    def run(frame: np.ndarray, buffer: np.ndarray | None) -> Sequence[np.ndarray]:
        inputs = [torch.from_numpy(one) for one in (frame, buffer) if one is not None]
        with torch.no_grad():
            found = function(*inputs)
        return [one.numpy() for one in ([found] if isinstance(found, Tensor) else found)]

    return run


WRITERS: dict[str, Callable[[ExportedProgram, Path, ForecastStep, dict[str, Any]], None]] = {
    "onnx": _write_onnx,
    "torch": _write_torch,
    "aoti": _write_aoti,
}
RUNNERS: dict[str, Callable[[Path], StepFunction]] = {"onnx": _run_onnx, "torch": _run_torch, "aoti": _run_aoti}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch's exporters say about themselves and about packages that are not there."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


# The exported step beside PyTorch.


def compare(
    function: StepFunction, forecaster: Forecaster, step: ForecastStep, *, spacing: Sequence[float] | None, batch: int
) -> Agreement:
    """Run both over 50 steps; an `ExportMismatch` if they differ by more than the rules above allow."""
    first, context = smooth_states(forecaster, step, batch=batch)
    many = context[:, :1].expand(-1, first.shape[1] + CHECKED_STEPS + 1, *[-1] * (context.ndim - 2))

    def forecast(start: Tensor) -> np.ndarray:
        known = many if context.shape[2] else None
        return rollout(forecaster, start, CHECKED_STEPS, context=known, spacing=spacing).numpy()

    noise = torch.randn(first.shape, generator=torch.Generator().manual_seed(1))
    size = torch.tensor(forecaster.normalisers.state.scale).view(-1, *(1,) * len(step.grid)).float()
    expected, twin = forecast(first), forecast(first + PERTURBATION * size * noise)
    sizes = field_sizes(expected, size.numpy())
    good = np.isfinite(expected).all(axis=tuple(d for d in range(expected.ndim) if d != 1))
    steps = CHECKED_STEPS if good.all() else int(np.argmin(good))
    if not steps:
        raise ExportMismatch("The model's own first step is not finite in PyTorch, so there is nothing to compare.")
    known = context[:, 0].numpy()
    forced, free = _exported_steps(function, step, first.numpy(), known, expected)
    forced_error, free_error, growth = (
        relative_differences(found, expected, sizes)[:steps] for found in (forced, free, twin)
    )
    worst = int(np.nanargmax(np.where(np.isfinite(forced_error), forced_error, np.inf)))
    if not forced_error[worst] <= TOLERANCE:
        raise ExportMismatch(
            f"The exported step differs from PyTorch's by {forced_error[worst]:.1e} of a field's size at state "
            f"{worst + 1} of {steps}, more than {TOLERANCE:g}. Nothing was written."
        )
    allowed = np.maximum(TOLERANCE, AMPLIFIED * np.nan_to_num(growth, nan=np.inf))
    if not (late := free_error <= allowed).all():
        at = int(np.argmin(late))
        raise ExportMismatch(
            f"The exported forecast differs from PyTorch's by {free_error[at]:.1e} of a field's size at step {at + 1}, "
            f"more than {allowed[at]:.1e}. Nothing was written."
        )
    return Agreement(steps, float(forced_error[worst]), float(free_error[-1]), float(growth[-1] / PERTURBATION))


def _exported_steps(
    function: StepFunction, step: ForecastStep, first: np.ndarray, context: np.ndarray, expected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts of the exported step: each from PyTorch's frames, and all from its own."""

    def call(frame: np.ndarray, buffer: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """The frames of one call (b, n, c, *grid), and the buffers after all of them and after the first."""
        found = function(np.concatenate([frame, context], axis=1), buffer)
        frames = found[0] if step.steps > 1 else found[0][:, None]
        return (frames, None, None) if len(found) == 1 else (frames, found[1], found[-1])

    empty = step.empty_buffer(len(first))
    buffer = None if empty is None else empty.numpy()
    for frame in np.moveaxis(first[:, :-1], 1, 0):
        _, _, buffer = call(np.ascontiguousarray(frame), buffer)
    newest = np.ascontiguousarray(first[:, -1])
    own, free = buffer, list[np.ndarray]()
    frame = newest
    while sum(one.shape[1] for one in free) < CHECKED_STEPS:
        frames, own, _ = call(frame, own)
        free.append(frames)
        frame = np.ascontiguousarray(frames[:, -1])
    forced, frame = list[np.ndarray](), newest
    for number in range(CHECKED_STEPS):
        frames, _, buffer = call(frame, buffer)
        forced.append(frames[:, 0])
        frame = np.ascontiguousarray(expected[:, number])
    return np.stack(forced, axis=1), np.concatenate(free, axis=1)[:, :CHECKED_STEPS]


def smooth_states(forecaster: Forecaster, step: ForecastStep, *, batch: int) -> tuple[Tensor, Tensor]:
    """Input frames (b, t, c, *grid) and context fields (b, 1, k, *grid) in physical units: long waves of usual size."""
    generator = torch.Generator().manual_seed(0)
    centre, spread = (0.5, 0.15) if forecaster.normalisers.state.method == "minmax" else (0.0, 1.0)

    def waves(frames: int, channels: int) -> Tensor:
        total = torch.zeros(batch, frames, channels, *step.grid)
        for _ in range(6):
            shape = (batch, 1, channels, *(1,) * len(step.grid))
            phase = 2 * math.pi * torch.rand(shape, generator=generator)
            phase = phase + 0.05 * torch.arange(frames).view(1, -1, 1, *(1,) * len(step.grid))
            for axis, points in enumerate(step.grid):
                number = int(torch.randint(0, 4, (1,), generator=generator))
                line = 2 * math.pi * number * torch.arange(points) / points
                phase = phase + line.view(*(1,) * (3 + axis), -1, *(1,) * (len(step.grid) - axis - 1))
            total = total + torch.sin(phase) / math.sqrt(3)
        return centre + spread * total

    names = forecaster.normalisers.context.fields
    state = forecaster.normalisers.state.decode(waves(step.input_frames, step.fields))
    context = waves(1, len(names))
    if names:
        context = forecaster.normalisers.context.decode(context)
    if forecaster.mask is not None:
        inside = torch.zeros(step.grid)
        inside[tuple(slice(0, max(1, points // 4)) for points in step.grid)] = 1.0
        context[:, :, names.index(forecaster.mask)] = inside
        state = state.masked_fill(inside.bool(), 0.0)
    return state, context


def field_sizes(frames: np.ndarray, scale: np.ndarray) -> Float[np.ndarray, "b t c"]:
    """Root mean square of every field of every frame, at least the spread that it has in training data."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt(np.square(frames, dtype=np.float64).reshape(*frames.shape[:3], -1).mean(-1))
    return np.maximum(np.maximum(size, scale.reshape(-1)), np.finfo(np.float32).tiny)


def relative_differences(found: np.ndarray, expected: np.ndarray, sizes: np.ndarray) -> Float[np.ndarray, " t"]:
    """Root mean square difference of every frame in units of its fields, the largest of all fields and trajectories."""
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.subtract(found, expected, dtype=np.float64).reshape(*expected.shape[:3], -1)
        return (np.sqrt(np.square(gaps).mean(-1)) / sizes).max(axis=(0, 2))


def summary(made: ExportedModel) -> dict[str, Any]:
    """What was written, as JSON values."""
    return {**asdict(made), "path": str(made.path)}
