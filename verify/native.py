"""The native code, built with address and undefined-behaviour sanitizers, on tensors that few people make.

    python -m verify.native SEED COUNT      so many cases, in a process with the sanitizer's library loaded first

A case draws an operation, sizes from 0 to 5 and a few larger ones, dtypes, numbers of threads, and for every tensor a
layout: contiguous, transposed, every second element, misaligned, or one row shown many times. Its result and gradients
must be those of plain PyTorch to rounding. A read or write outside a tensor ends the process.
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ssno.layers.gate import gate
from ssno.layers.pointwise import ChannelMLP
from ssno.layers.warp import warped
from ssno.models.registry import model_config
from ssno.native import build, operations
from ssno.native.engine import use
from ssno.native.operations import WarpGrid

CASES = 60  # in one process
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 -O1"
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 6e-2}
KINDS = ("gate", "product", "warp", "mlp", "model", "refusal")


def trial(number: int, place: Path) -> Counter[str]:
    """Some cases in a process whose native code has sanitizers."""
    cache = Path(tempfile.gettempdir()) / f"ssno-verify-sanitized-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    compiler = cache / "c++"
    written = cache / f"c++-{os.getpid()}"
    written.write_text(f'#!/bin/sh\nexec c++ "$@" {SANITIZE}\n')
    written.chmod(0o700)
    written.replace(compiler)
    # The sanitizer looks for the C++ library, whose exceptions it follows, when it is loaded: both come first.
    names = ("libasan.so", "libstdc++.so")
    found = [subprocess.run(["c++", f"-print-file-name={n}"], capture_output=True, text=True).stdout for n in names]
    options = "detect_leaks=0:halt_on_error=1:exitcode=99:allocator_may_return_null=1:detect_odr_violation=0"
    environment = {**os.environ, "CXX": str(compiler), "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "4"}
    environment |= {
        "LD_PRELOAD": " ".join(path.strip() for path in found),
        "ASAN_OPTIONS": options,
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    words = [sys.executable, "-m", "verify.native", str(number), str(CASES)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=3000)
    errors = [line for line in done.stderr.splitlines() if re.search("Sanitizer|runtime error|Error", line)]
    assert done.returncode == 0, f"exit code {done.returncode}: {(errors or [done.stderr[-800:]])[:3]}"
    return Counter(json.loads(done.stdout.splitlines()[-1]))


def laid_out(values: Tensor, rng: random.Random, seen: Counter[str]) -> Tensor:
    """The same numbers in another layout, or one row of them many times."""
    way = rng.choice(("contiguous", "transposed", "every second", "misaligned", "one row"))
    seen[way] += 1
    if way == "transposed" and values.ndim > 1:
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if way == "every second" and values.ndim:
        wide = values.new_empty(*values.shape[:-1], 2 * values.shape[-1])[..., ::2]
        return wide.copy_(values)
    if way == "misaligned":
        return values.new_empty(values.numel() + 1)[1:].view(values.shape).copy_(values)
    if way == "one row" and values.ndim and len(values):
        return values[:1].expand(values.shape)
    return values


def size(rng: random.Random) -> int:
    return rng.randint(0, 5) if rng.random() < 0.7 else rng.choice((7, 8, 15, 16, 17, 31, 33, 64, 65))


def case(rng: random.Random, seen: Counter[str]) -> None:
    """One operation on odd tensors, by native code and by PyTorch."""
    kind = rng.choice(KINDS)
    dtype = rng.choice((torch.float32, torch.float32, torch.bfloat16, torch.float64))
    torch.set_num_threads(rng.randint(1, 4))
    if dtype == torch.bfloat16 and not operations.available_bf16():
        dtype = torch.float32
    seen[kind] += 1
    seen[str(dtype).removeprefix("torch.")] += 1
    if kind == "refusal":
        refused(rng, seen)
        return
    inputs, function = drawn(kind, dtype, rng, seen)
    outcomes = []
    for engine in ("auto", "plain"):
        plain = engine == "plain"  # of bfloat16 in float32, of copies that are laid out as usual
        given = [(one.float() if plain and one.dtype == torch.bfloat16 else one).detach() for one in inputs]
        given = [(one.contiguous().clone() if plain else one).requires_grad_() for one in given]
        with use(engine):  # type: ignore[arg-type]
            out = function(*given)
            found = torch.autograd.grad(out.float().square().sum(), given, allow_unused=True)
        outcomes.append([out.detach(), *found])
    for mine, theirs in zip(*outcomes, strict=True):
        if mine is None or theirs is None:
            assert mine is theirs or not (mine if theirs is None else theirs).any()
            continue
        off = float((mine.double() - theirs.double()).norm())
        assert off <= TOLERANCE[dtype] * (1 + float(theirs.double().norm())), f"{kind} {dtype}: {off:.2g} off"


def drawn(
    kind: str, dtype: torch.dtype, rng: random.Random, seen: Counter[str]
) -> tuple[list[Tensor], Callable[..., Tensor]]:
    """The inputs of an operation and the function of them."""
    generator = torch.Generator().manual_seed(rng.randrange(2**40))

    def tensor(*shape: int, dtype: torch.dtype = dtype) -> Tensor:
        return laid_out(torch.randn(shape, generator=generator).to(dtype), rng, seen)

    weights = torch.float64 if dtype == torch.float64 else torch.float32
    if kind in ("gate", "product"):
        h, d, p = max(1, size(rng)), rng.randint(1, 2), size(rng)
        inputs = [tensor(h, d, p), tensor(d, 2 * h, h, dtype=weights), tensor(d, 2 * h, dtype=weights), tensor(h, p)]
        options = {"residual_weight": rng.randint(0, 2), "product": kind == "product"}
        return inputs, lambda y, w, b, x: gate(y, w, b, residual=x, **options)
    if kind == "warp":
        axes = rng.randint(1, 3)
        copies = tuple(rng.randint(1, 3) for _ in range(axes))
        points = tuple(c * rng.randint(1, 5) for c in copies)
        grid = WarpGrid(
            points, copies, tuple(rng.random() < 0.5 for _ in copies), tuple(rng.uniform(0.3, 2) for _ in copies)
        )
        count, heads = torch.tensor(points).prod().item(), rng.randint(1, 3)
        frames, channels = rng.randint(1, 4), rng.choice((1, 2, 3, 8, 16))
        inputs = [
            tensor(count, frames, heads, channels, dtype=weights),
            3 * tensor(count, frames, heads, axes, dtype=weights),
        ]
        return inputs, lambda values, displacements: warped(values, displacements, grid)
    if kind == "mlp":
        h, w, c, p = (max(1, size(rng)) for _ in range(4))
        torch.manual_seed(rng.randrange(2**40))
        layer = ChannelMLP(h, hidden=w, out_channels=c).to(weights)
        return [tensor(h, p, dtype=weights)], layer
    torch.manual_seed(rng.randrange(2**40))
    name, axes = rng.choice(("ssno", "ssno-product", "ssno-warp", "ssno-uni")), rng.randint(1, 3)
    boundary = rng.choice(("zero", "periodic", "periodic-truncated", "neumann", "dirichlet"))
    model = model_config(f"{name}:tiny", n_dims=axes, boundary=boundary).build().to(weights)
    grid = [max(2 if boundary == "dirichlet" else 1, size(rng) % 20) for _ in range(axes)]
    return [tensor(rng.randint(1, 3), rng.randint(1, 5), 1, *grid, dtype=weights)], model


def refused(rng: random.Random, seen: Counter[str]) -> None:
    """Tensors that native code cannot take are refused before it is called."""
    h, d, p = rng.randint(1, 4), rng.randint(1, 2), rng.randint(1, 5)
    y, weight, bias = torch.randn(h, d, p), torch.randn(d, 2 * h, h), torch.randn(d, 2 * h)
    wrong = rng.choice(("shape", "dtype", "empty", "sparse", "negated"))
    given = {
        "shape": (y, weight[:, :-1], bias),
        "dtype": (y, weight.double(), bias),
        "empty": (y[:, :, :0], weight, bias),
        "sparse": (y, weight.to_sparse(), bias),
        "negated": (y, torch._neg_view(weight), bias),
    }[wrong]
    try:
        out = operations.gate_forward(*given, None, 0)
    except ValueError:
        assert wrong != "negated"
        seen["refused"] += 1
    else:
        assert wrong == "negated", f"native code took a tensor of wrong {wrong}"
        with use("plain"):
            torch.testing.assert_close(out, gate(y, -weight, bias), atol=1e-4, rtol=1e-3)


def main(seed: int, count: int) -> None:
    build.LONGEST_BUILD = 2400
    assert operations.available(torch.zeros(1)), "the sanitized library was not built"
    seen: Counter[str] = Counter()
    for number in range(count):
        try:
            case(random.Random(seed * 10_000 + number), seen)
        except Exception as error:
            raise AssertionError(f"Error in case {number} of seed {seed}: {error}") from error
    print(json.dumps({"cases": count, **seen}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
