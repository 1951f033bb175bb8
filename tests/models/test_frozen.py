"""Frozen models: the same forecasts, everything cached; a step that exports and compiles."""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.fno import FFNOConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.frozen import freeze
from ssno.models.registry import model_config
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native.engine import use


def forecast(model, first_frames, steps: int) -> torch.Tensor:
    state, frame, frames = model.start(first_frames), first_frames[:, -1], []
    with torch.no_grad():
        for _ in range(steps):
            frame, state = model.step(frame, state)
            frames.append(frame)
    return torch.stack(frames, dim=1)


@pytest.mark.parametrize("engine", ["torch", "fused", "plain"])
@pytest.mark.parametrize("given", [1, 2, 4, 6])
@pytest.mark.parametrize("window", [0, 1, 4])
def test_a_frozen_model_forecasts_like_the_model(engine, given, window) -> None:
    torch.manual_seed(0)
    model, x = SSNO(SSNOConfig.tiny(memory=MemoryOptions(window, d_state=8))).eval(), torch.randn(2, given, 1, 24)
    with use(engine):
        frozen = freeze(model, grid=(24,), batch=2)
        torch.testing.assert_close(frozen.rollout(x, 7), forecast(model, x, 7), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", [FFNOConfig.tiny(n_dims=2), UNetConfig.tiny(n_dims=2), SSNOConfig.tiny(n_dims=2)])
def test_baselines_freeze_too(config) -> None:
    torch.manual_seed(0)
    model, x = config.build().eval(), torch.randn(1, 3, 1, 16, 16)
    frozen = freeze(model, grid=(16, 16))
    torch.testing.assert_close(frozen.rollout(x, 3), forecast(model, x, 3), rtol=1e-4, atol=1e-5)


def test_weights_are_a_copy_without_gradients() -> None:
    model = SSNO(SSNOConfig.tiny())
    frozen, x = freeze(model, grid=(16,)), torch.randn(1, 4, 1, 16)
    before = frozen.rollout(x, 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(frozen.rollout(x, 2), before)
    assert not any(parameter.requires_grad for parameter in frozen.parameters())


def test_kernels_are_not_computed_again(monkeypatch) -> None:
    frozen, x = freeze(SSNO(SSNOConfig.tiny()), grid=(16,)), torch.randn(1, 4, 1, 16)
    monkeypatch.setattr("ssno.layers.modes.kernel", lambda *_, **__: pytest.fail("a kernel was sampled"))
    assert frozen.rollout(x, 3).shape == (1, 3, 1, 16)


def test_frames_on_another_grid_are_refused() -> None:
    frozen = freeze(SSNO(SSNOConfig.tiny()), grid=(16,))
    with pytest.raises(ValueError, match=r"frozen for 1 trajectories on a grid of \(16,\), got shape \(1, 4, 1, 32\)"):
        frozen.rollout(torch.randn(1, 4, 1, 32), 2)


@pytest.mark.usefixtures("as_users_call_it")
def test_what_cannot_be_frozen_is_refused() -> None:
    with pytest.raises(ValueError, match="frames_as_channels=4 has no features to remember"):
        freeze(SSNO(SSNOConfig.tiny(frames_as_channels=4, memory=MemoryOptions(0, d_state=8))), grid=(16,))
    with pytest.raises(TypeError, match="`model` must be a model of this library, got Linear"):
        freeze(torch.nn.Linear(2, 2), grid=(16,))


def test_another_spacing_reaches_the_frozen_kernels() -> None:
    torch.manual_seed(0)
    model, x = SSNO(SSNOConfig.tiny()), torch.randn(1, 4, 1, 16)
    state = model.start(x, spacing=0.5)
    with torch.no_grad():
        expected, _ = model.step(x[:, -1], state)
    found = freeze(model, grid=(16,), spacing=0.5).rollout(x, 1)[:, 0]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("grid", "spacing"), [((16,), None), ((8, 9), None), ((16,), 0.5), ((20,), 0.8)])
def test_a_step_exports(grid, spacing) -> None:
    torch.manual_seed(0)
    frozen = freeze(SSNO(SSNOConfig.tiny(n_dims=len(grid), boundary="periodic")), grid=grid, spacing=spacing)
    x = torch.randn(1, 4, 1, *grid)
    buffer, frame = frozen.buffer(x), x[:, -1]
    program = torch.export.export(frozen, (frame, buffer))
    for found, expected in zip(program.module()(frame, buffer), frozen(frame, buffer), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


COMPILED = """
import contextlib, torch
from ssno.models.registry import model_config
torch.manual_seed(0)
bf16 = torch.autocast("cpu", dtype=torch.bfloat16)
for name, grid, context, tolerance in {cases}:
    model = model_config(name, n_dims=len(grid)).for_grid(grid).build()
    x = torch.randn(2, 5, model.config.in_channels, *grid)
    with context:
        expected = model(x)
    grad = torch.randn_like(expected)
    expected.backward(grad)
    wanted = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    with context:
        out = torch.compile(model, fullgraph=True, dynamic=False, backend="{backend}")(x)
    assert (out - expected).norm() <= tolerance * expected.norm()
    out.backward(grad)
    found = [p.grad for p in model.parameters() if p.grad is not None]
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine - theirs).norm() <= tolerance * theirs.norm().clamp_min(1e-3), (name, grid)
counters = torch._dynamo.utils.counters
assert not counters["graph_break"], counters["graph_break"]
print(counters["stats"]["unique_graphs"], "graphs")
"""
LINE = '("ssno:tiny", (16,), contextlib.nullcontext(), 1e-4)'
PLANE = '("ssno:tiny", (6, 8), contextlib.nullcontext(), 1e-4)'
LOW = '("ssno:tiny", (16,), bf16, 5e-2)'
SPHERE = '("ssno-sphere:tiny", (8, 16), contextlib.nullcontext(), 1e-3)'
WARP = '("ssno-warp:tiny", (6, 8), contextlib.nullcontext(), 1e-4)'
BOX = '("ssno-warp:tiny", (4, 6, 8), contextlib.nullcontext(), 1e-4)'


def compiled_with(backend: str, *cases: str) -> str:
    program = COMPILED.replace("{backend}", backend).replace("{cases}", f"({', '.join(cases)},)")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=3000)
    assert not run.returncode, run.stderr[-2000:]
    return run.stdout


def test_the_whole_model_is_one_graph() -> None:
    assert compiled_with("eager", LINE) == "1 graphs\n"


@pytest.mark.verify
def test_every_geometry_and_precision_is_one_graph_forwards_and_backwards() -> None:
    assert compiled_with("aot_eager", LINE, PLANE, SPHERE, LOW, WARP, BOX) == "6 graphs\n"


@pytest.mark.verify
def test_the_whole_model_compiles() -> None:
    assert compiled_with("inductor", LINE, PLANE, SPHERE, LOW, WARP) == "5 graphs\n"


WAITS = ("_local_scalar_dense", "equal", "is_nonzero", "item", "masked_select", "nonzero", "_unique2")


class Waiting(TorchDispatchMode):
    """Counts operations whose result the host must wait for."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += operation._schema.name.removeprefix("aten::") in WAITS
        return operation(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["ssno", "ffno", "fno"])
def test_a_streamed_frame_waits_for_no_device(name) -> None:
    frozen = freeze(model_config(f"{name}:tiny").build(), grid=(16,), batch=16)
    first, mode = torch.randn(16, 4, 1, 16), FakeTensorMode()

    def away(value):
        if not isinstance(value, torch.Tensor):
            return value
        return FakeTensor(mode, value.detach().to("meta"), torch.device("cpu"))

    frame, buffer = away(first[:, -1]), away(frozen.buffer(first))
    frozen.weights = tree_map(away, frozen.weights)
    weights = {key: away(value) for key, value in frozen.state_dict().items()}
    with mode, Waiting() as waiting, torch.no_grad():
        for _ in range(2):
            frame, buffer = torch.func.functional_call(frozen, weights, (frame, buffer))
        assert waiting.count == 0
        with pytest.raises(DataDependentOutputException):  # numbers that are not there cannot be looked at
            frame.sum().item()
        assert waiting.count == 1


def test_streaming_in_place_is_the_rollout_and_moves_nothing() -> None:
    torch.manual_seed(0)
    frozen = freeze(SSNOConfig.tiny().build(), grid=(16,))
    frames = torch.randn(1, 6, 1, 16)
    expected = frozen.rollout(frames, 4)
    frame, buffer = frames[:, -1].clone(), frozen.buffer(frames)
    places = frame.data_ptr(), buffer.data_ptr()
    for step in range(4):
        frozen.advance(frame, buffer)
        torch.testing.assert_close(frame, expected[:, step])
    assert places == (frame.data_ptr(), buffer.data_ptr())


def test_new_weights_and_another_dtype_reach_the_frozen_kernels() -> None:
    first, second = (SSNOConfig.tiny(memory=MemoryOptions(2, d_state=8)).build().eval() for _ in range(2))
    frames = torch.randn(1, 3, 1, 16)
    frozen = freeze(first, grid=(16,))
    frozen.model.load_state_dict(second.state_dict())
    expected = freeze(second, grid=(16,)).rollout(frames, 2)
    torch.testing.assert_close(frozen.rollout(frames, 2), expected)
    torch.testing.assert_close(frozen.double().rollout(frames.double(), 2), expected.double(), rtol=1e-4, atol=1e-5)
