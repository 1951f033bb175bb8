"""Read an exported ONNX file as something that forecasts, for `ssno predict model.onnx`.

A file may come from anybody. A child process with limited memory and time looks at it first: it parses the bytes, runs
ONNX's own checker, refuses other operations than ordinary ones and weights in other files (a name from a file is never
a path), and runs one step. What crashes or stalls there is a `DataError` here; only then are the same bytes loaded.
"""

import json
import math
import operator
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ssno.base import byte_size, description_from_json
from ssno.base.renamed import with_new_names
from ssno.data.errors import DataError
from ssno.data.normalise import Normalisers
from ssno.export.check import StepFunction
from ssno.export.write import onnx_function, require_onnx
from ssno.forecasting.forecaster import Forecaster
from ssno.models.operator import OperatorState, Spacing
from ssno.runs.load import Units
from ssno.runs.open import RunFolder

LARGEST = 2**31 - 1
"""Bytes of a file: more than that protocol buffers do not hold."""
SECONDS = 120
MEMORY = 4 * 2**30
LARGEST_ARRAY = 2**28
"""Numbers in a frame or buffer."""
CHILD = """
import json, resource, sys
megabytes, seconds, largest = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 2**20,) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (seconds,) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def refuse(why):
    print(json.dumps({"why": why}))
    raise SystemExit
data = sys.stdin.buffer.read()
try:
    import math, numpy, onnx, onnxruntime
    model = onnx.load_model_from_string(data)
    graph = model.graph
    nodes, texts = list(graph.node), {one.key: one.value for one in model.metadata_props}
    tensors = [*graph.initializer, *(a.t for node in nodes for a in node.attribute if a.HasField("t"))]
    if model.functions or graph.sparse_initializer or any(n.domain not in ("", "ai.onnx") for n in nodes):
        refuse("has operations of its own, which are not run")
    if any(a.HasField("g") or a.graphs for node in nodes for a in node.attribute):
        refuse("has graphs inside its graph (loops, branches), which are not run")
    if any(t.external_data or t.data_location == onnx.TensorProto.EXTERNAL for t in tensors):
        refuse("keeps its weights in other files, which are not opened")
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    inputs = {}
    for one in session.get_inputs():
        shape = [n if isinstance(n, int) else 1 for n in one.shape]
        if one.type != "tensor(float)" or math.prod(shape) > largest:
            refuse(f"takes {one.type} of shape {shape}, not frames")
        inputs[one.name] = numpy.zeros(shape, numpy.float32)
    found = session.run(None, inputs)
    shapes = {"inputs": [list(v.shape) for v in inputs.values()], "outputs": [list(v.shape) for v in found]}
    print(json.dumps({"metadata": texts, "names": list(inputs), **shapes}))
except Exception as error:
    refuse(f"is damaged or not an ONNX model ({type(error).__name__})")
"""


class ExportedOperator(nn.Module):
    """The step of an exported file behind `start` and `step`; frames are normalised outside, physical inside."""

    def __init__(self, function: StepFunction, normalisers: Normalisers, metadata: Mapping[str, Any]):
        super().__init__()
        self.function, self.normalisers = function, normalisers
        self.grid, self.batch, self.steps = tuple(metadata["grid"]), metadata["batch"], metadata["steps"]
        self.shape, self.axis = metadata["buffer"], metadata["buffer_batch_axis"]
        self.file = metadata["name"]

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        raise ValueError(f"{self.file!r} is an exported step: it forecasts (`rollout`, `predict`) and does not train.")

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Pass all frames but the newest, from an empty buffer."""
        grid = tuple(first_frames.shape[3:])
        if grid != self.grid or spacing is not None:
            wanted, got = (" x ".join(map(str, points)) for points in (self.grid, grid))
            other = f"{got} points" if grid != self.grid else "the same points at another spacing"
            advice = f"Export the run again with --resolution {' '.join(map(str, grid))}"
            if grid != self.grid and len(grid) == len(self.grid) and all(map(operator.ge, grid, self.grid)):
                advice += f", or read the data with --resolution {' '.join(map(str, self.grid))}"
            raise DataError(f"{self.file!r} was exported for a grid of {wanted} points, got {other}. {advice}.")
        buffer = first_frames.new_zeros(0)
        if self.shape is not None:
            buffer = first_frames.new_zeros(
                [len(first_frames) if a == self.axis else n for a, n in enumerate(self.shape)]
            )
        state = OperatorState(buffer)
        for frame in first_frames[:, :-1].unbind(1):
            _, state = self.step(frame, state)
        return state

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """The next frame, from a batch of any size: a file made for n trajectories takes n at a time."""
        count = len(self.normalisers.state.fields)
        context = frame[:, count:]
        physical = torch.cat(
            [
                self.normalisers.state.decode(frame[:, :count], dim=1),
                self.normalisers.context.decode(context, dim=1) if context.shape[1] else context,
            ],
            dim=1,
        )
        size = len(frame) if self.batch == "any" else int(self.batch)
        found = [self._call(physical, state.buffer, first, size) for first in range(0, len(frame), size)]
        following = torch.cat([one for one, _ in found])
        buffer = state.buffer if self.shape is None else torch.cat([one for _, one in found], dim=self.axis)
        return self.normalisers.state.encode(following, dim=1), OperatorState(buffer)

    def _call(self, frames: Tensor, buffer: Tensor, first: int, size: int) -> tuple[Tensor, Tensor]:
        """One call for trajectories from `first` on; the last one is repeated where there are fewer than `size`."""
        rows = torch.arange(first, first + size).clamp(max=len(frames) - 1)
        kept = min(size, len(frames) - first)
        known = None if self.shape is None else buffer.index_select(self.axis, rows).contiguous().numpy()
        outputs = self.function(frames[rows].contiguous().numpy(), known)
        frame = torch.from_numpy(outputs[0] if self.steps == 1 else np.ascontiguousarray(outputs[0][:, 0]))[:kept]
        if self.shape is None:
            return frame, buffer
        return frame, torch.from_numpy(outputs[1 if self.steps == 1 else 2]).narrow(self.axis, 0, kept)


def open_exported(path: str | Path) -> RunFolder:
    """An ONNX file that `ssno export` wrote, as a run to forecast with. Raises `DataError` for any other file."""
    path = Path(path)
    require_onnx()
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if path.stat().st_size > LARGEST:
        raise DataError(f"{path} has {byte_size(path.stat().st_size)}: an ONNX file has at most {byte_size(LARGEST)}.")
    data = path.read_bytes()
    found = examine(data, path)
    metadata = read_metadata(found, path)
    units = metadata["forecaster"]
    normalisers = units.normalisers()
    forecaster = Forecaster(
        ExportedOperator(onnx_function(data), normalisers, metadata),
        normalisers=normalisers,
        window=units.window,
        context_time=units.context_time,
        spacing=units.spacing,
        mask=units.mask,
        envelope=units.envelope,
    ).eval()
    config = {"config": {"model": metadata["model"]}, "data": {"train": metadata["trained_on"]}}
    return RunFolder(folder=path, name=path.stem, forecaster=forecaster, config=config, data=None)


def examine(data: bytes, path: Path) -> dict[str, Any]:
    """What a child process found in the bytes of a file: metadata, and the shapes of one step."""
    words = [str((MEMORY + 8 * len(data)) // 2**20), str(SECONDS), str(LARGEST_ARRAY)]
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", CHILD, *words], input=data, capture_output=True, timeout=600
        )
        answer = json.loads(child.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        raise DataError(f"{path} crashed or stalled the library that reads it: it is damaged or hostile.") from None
    if "why" in answer:
        raise DataError(f"{path} {answer['why']}.")
    return answer


def read_metadata(found: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The metadata of an exported file, checked against the shapes that its step has."""
    wanted = ("name", "model", "grid", "batch", "steps", "buffer", "buffer_batch_axis", "forecaster", "trained_on")
    texts = found["metadata"]
    if missing := [name for name in wanted if name not in texts]:
        raise DataError(f"{path} was not written by `ssno export`: its metadata lack {', '.join(missing)}.")
    try:
        metadata = {name: json.loads(texts[name]) for name in wanted}
        known = {field.name for field in fields(Units)}
        described = with_new_names(metadata["forecaster"], "forecaster.")
        section = {name: value for name, value in described.items() if name in known}
        units = description_from_json(Units, section, where="forecaster.")
        metadata["forecaster"] = units
        norms = units.normalisers()
        _check_shapes(metadata, norms, found)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError) as error:
        raise DataError(f"{path} is damaged: its metadata do not fit its step ({error}).") from None
    return metadata


def _check_shapes(metadata: Mapping[str, Any], norms: Normalisers, found: Mapping[str, Any]) -> None:
    grid, shape, steps, batch = (metadata[name] for name in ("grid", "buffer", "steps", "batch"))
    size = 1 if batch == "any" else int(batch)
    channels, inputs = len(norms.state.fields), len(norms.state.fields) + len(norms.context.fields)
    frames = [[size, inputs, *grid]]
    outputs = [[size, channels, *grid] if steps == 1 else [size, steps, channels, *grid]]
    if shape is not None:
        axis = metadata["buffer_batch_axis"]
        if not isinstance(axis, int) or not 0 <= axis < len(shape):
            raise ValueError("`buffer_batch_axis` is not an axis of the buffer")
        buffer = [size if number == axis else int(points) for number, points in enumerate(shape)]
        frames.append(buffer)
        outputs += [buffer] * (1 if steps == 1 else 2)
    if frames != found["inputs"] or outputs != found["outputs"] or math.prod(grid) < 1:
        raise ValueError(f"the step takes {found['inputs']} and returns {found['outputs']}")
    if not all(isinstance(metadata[name], str) for name in ("name", "model")):
        raise ValueError("names are texts")
    if not isinstance(metadata["trained_on"], dict):
        raise ValueError("`trained_on` is not a description")
