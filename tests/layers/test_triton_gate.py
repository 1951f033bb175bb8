"""The gate in Triton's interpreter: results and gradients of the formula, in every shape and precision, and its engine.

Triton comes with PyTorch's builds for CUDA. With a CPU build give an interpreter that has both:

    python -m venv --without-pip triton-env
    python -m pip --python triton-env/bin/python install --no-deps triton
    echo $PWD/.venv/lib/python3.11/site-packages > triton-env/lib/python3.11/site-packages/ours.pth
    SSNO_TRITON_PYTHON=triton-env/bin/python pytest -m verify tests/layers/test_triton_gate.py
"""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from ssno.native import engine
from ssno.native.engine import by_triton, measured_engines, runs_triton, use

GATES = """
import itertools, torch
from ssno.layers.gate import gate, plain_gate
from ssno.native.engine import by_triton, use
torch.manual_seed(0)
low, full = torch.bfloat16, torch.float32
shapes = (16, 2, 64), (5, 1, 37), (24, 2, 200), (64, 2, 130), (3, 2, 9)
for (h, d, p), (features, beside), times in itertools.product(shapes, ((full, full), (low, low), (low, full)), (0, 2)):
    given = torch.randn(h, d, p, dtype=features), torch.randn(d, 2 * h, h), torch.randn(d, 2 * h)
    given += (torch.randn(h, p, dtype=beside),)
    found, wanted = [], []
    for answers, precise in ((found, False), (wanted, True)):
        y, w, b, r = (v.double() if precise else v.clone() for v in given)
        leaves = [v.requires_grad_() for v in ((y, w, b, r) if times else (y, w, b))]
        with use("plain" if precise else "triton"):
            assert precise or by_triton(y, w, b)
            out = gate(y, w, b, residual=r, residual_weight=times)
        generator = torch.Generator().manual_seed(1)
        grad = torch.randn(h, p, generator=generator).to(out.dtype)
        assert precise or out.dtype == (torch.promote_types(features, beside) if times else features)
        answers += [out, *torch.autograd.grad(out, leaves, grad)]
    kept = [v.dtype for v in found[1:]]
    assert kept == [v.dtype for v in (given if times else given[:3])], kept
    for mine, exact in zip(found, wanted, strict=True):
        off = (mine - exact).norm() / exact.norm()
        assert off < (1e-6 if features == full else 2**-5), (h, d, p, features, times, off)
print("gates agree")
"""

MODELS = """
import torch
from ssno.models.registry import model_config
from ssno.native.engine import measured_engines, use
from ssno.training.checks import SmallTraining, off_by
torch.manual_seed(0)
for name, grid in (("ssno:tiny", (16,)), ("ssno-uni:tiny", (6, 9)), ("ssno-product:tiny", (12,))):
    model = model_config(name, n_dims=len(grid)).build()
    x, grad = torch.randn(2, 5, 1, *grid), torch.randn(2, 5, 1, *grid)
    answers = []
    for engine in ("plain", "triton", "triton"):
        model.zero_grad()
        with use(engine):
            out = model(x)
        out.backward(grad)
        answers.append([out, *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    plain, first, again = answers
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "not the same bits"
    for mine, theirs in zip(first, plain, strict=True):
        assert (mine - theirs).norm() <= 2e-5 * theirs.norm().clamp_min(1e-3), name
    with use("triton"), torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
    out.float().backward(grad)
    assert (out - plain[0]).norm() < 5e-2 * plain[0].norm()
x = torch.randn(2, 5, 1, 16, requires_grad=True)
model = model_config("ssno:tiny").build()
twice = []
for engine in ("plain", "triton"):
    with use(engine):
        (slope,) = torch.autograd.grad(model(x).square().sum(), x, create_graph=True)
        twice.append(torch.autograd.grad(slope.square().sum(), x)[0])
assert (twice[0] - twice[1]).norm() < 1e-4 * twice[0].norm()
cpu = torch.device("cpu")
assert off_by(cpu, "triton", SmallTraining(cpu, "plain")) < 1e-4
print("models agree")
"""


def interpreted(program: str) -> str:
    python = os.environ.get("SSNO_TRITON_PYTHON", sys.executable)
    if python == sys.executable and find_spec("triton") is None:
        pytest.skip("needs triton (here or in SSNO_TRITON_PYTHON), which PyTorch's CPU builds do not bring along")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, timeout=900)
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


@pytest.mark.verify
def test_the_kernel_is_the_formula_forwards_and_backwards() -> None:
    assert interpreted(GATES) == "gates agree\n"


@pytest.mark.verify
def test_models_and_the_machine_check_compute_with_it() -> None:
    assert interpreted(MODELS) == "models agree\n"


def test_it_is_measured_on_cuda_alone_and_used_where_it_was_chosen(monkeypatch) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="Engine 'triton' needs the package triton"), use("triton"):
        pass
    assert measured_engines(torch.device("cuda")) == ("torch", "plain", "compiled")
    monkeypatch.setattr(engine, "find_spec", lambda name: name)
    assert measured_engines(torch.device("cuda")) == ("torch", "plain", "compiled", "triton")
    assert "triton" not in measured_engines(torch.device("cpu"))
    assert not runs_triton(torch.device("cpu"))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    x = torch.zeros(2)
    assert not by_triton(x)
    with use("triton"):
        assert by_triton(x)
        assert not by_triton(x, x.double())
        assert not torch.func.vmap(lambda value: torch.tensor(by_triton(value)))(x[None]).any()
