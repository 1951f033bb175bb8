"""Write a trained model as a file that other programs run, after checking what it computes.

    export_run(open_run("ks-0.1-64"), "ks.onnx", format="onnx", resolution=(64,))

    onnx    for ONNX Runtime and others; ordinary operations of opset 20, real numbers only
    torch   `torch.export.load`: the graph and its weights
    aoti    compiled for this processor (AOTInductor): loaded from Python, or from C++ (examples/aoti)

What is exported is one streaming step on one grid (`ssno.export.step`) in real arithmetic (`ssno.export.real`). The
file is then run beside PyTorch (`ssno.export.check`); nothing is left on disk if the two differ.
"""

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from ssno.base import package_version, require_one_of, require_positive
from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.export.check import Agreement, StepFunction, compare
from ssno.export.real import RealStep, UnsupportedOperation
from ssno.export.step import ForecastStep
from ssno.forecasting.forecaster import rescaled
from ssno.runs.open import RunFolder
from ssno.ssm.kernel import PERIODIC

ExportFormat = Literal["onnx", "torch", "aoti"]
ENDINGS = {"onnx": ".onnx", "torch": ".pt2", "aoti": ".aoti.pt2"}
OPSET = 20


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
    units = {
        **described["forecaster"],
        "spacing": spacing,
        "spacings": [],
        "predict_increment": False,
        "conserve_mean": False,
    }
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
        "licence": run.licence,
        "commit": provenance()["commit"],
        "ssno_version": package_version(),
        "torch_version": torch.__version__,
        "opset": OPSET,
        "forecaster": units,
        "trained_on": {name: trained[name] for name in ("shape", "times") if name in trained},
    }


# The three formats.


def require_onnx() -> None:
    """Say what to install, before anything is computed. ONNX Runtime's telemetry stays off, unless it is asked for."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
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


def _write_aoti(program: ExportedProgram, path: Path, step: ForecastStep, metadata: dict[str, Any]) -> None:
    configs = {"aot_inductor.metadata": as_texts(metadata)}
    torch._inductor.aoti_compile_and_package(program, package_path=str(path), inductor_configs=configs)


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
RUNNERS: dict[str, Callable[[Path], StepFunction]] = {
    "onnx": lambda path: onnx_function(path.read_bytes()),
    "torch": lambda path: _of_tensors(torch.export.load(path).module()),
    "aoti": lambda path: _of_tensors(torch._inductor.aoti_load_package(str(path))),
}


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


def summary(made: ExportedModel) -> dict[str, Any]:
    """What was written, as JSON values."""
    return {**asdict(made), "path": str(made.path)}
