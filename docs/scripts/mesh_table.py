"""What training on large fields needs, on paper: writes the table of docs/design/mesh.md from formulas.

    python -m docs.scripts.mesh_table

Per point and frame of a field, in numbers of 4 bytes, for SS-NO with h channels, n layers, scans of d directions along
every axis and a hidden width H of the head:

    saved      h (n sum over axes of (w + d) + 3)     inputs and outputs of scans, of the memory and of the head
    products   n sum over axes of h (3 taps / 1 + 4 d 2h) + 4 (2 h^2 + h H)   gates are computed again in backward
    sent       h n sum over split axes of 4 (P - 1) / P                        `ssno.layers.space.costs`

w is 1 for a matrix and 2 for Fourier transforms (as counted), and twice that where an axis is padded
or mirrored. tests/docs/test_mesh_page.py counts all three as they are executed.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ssno.layers.space import AxisScan, Machine, choose, choose_split, costs
from ssno.models.ssno import SSNOConfig
from ssno.ssm.kernel import LINEAR_CONVOLUTION, WALLS

PAGE = Path(__file__).parents[1] / "design" / "mesh.md"
LONGEST_MATRIX = 256
NODE = 8


class Gpu(NamedTuple):
    """Bytes, single-precision operations and bytes of memory per second, and bytes per second to a process of the
    same node and of another."""

    name: str
    memory: float
    operations: float
    traffic: float
    inside: float
    between: float


GPUS = (
    Gpu("A100 80 GB", 80e9, 19.5e12, 2.039e12, 300e9, 25e9),
    Gpu("H100 80 GB", 80e9, 66.9e12, 3.35e12, 450e9, 50e9),
)
FIELDS = ((1024, 1024), (512, 512, 512))
COUNTS = (1, 8, 64)


class Need(NamedTuple):
    """Of one process, per step on one frame."""

    saved: float
    products: float
    sent: float
    parts: tuple[int, ...]


def need(config: SSNOConfig, axes: Sequence[AxisScan], parts: Sequence[int]) -> Need:
    """What a frame of a field takes in each of so many processes, turned where an axis is split."""
    h, layers = config.hidden_channels, config.n_layers
    points = 1.0
    for axis, number in zip(axes, parts, strict=True):
        points *= axis.points / number
    saved, products, sent = 3.0 * h, 4.0 * (2 * h * h + h * (config.head_channels + config.out_channels)), 0.0
    for axis, number in zip(axes, parts, strict=True):
        matrix = axis.points * (2 if axis.boundary in WALLS else 1) <= LONGEST_MATRIX
        doubled = axis.boundary in WALLS or (axis.boundary in LINEAR_CONVOLUTION and not matrix)
        saved += layers * h * ((2 if doubled else 1) * (1 if matrix else 2) + axis.directions)
        cost = costs(axis, number)["whole" if number == 1 else "turned"]
        products += layers * h * (cost.products + cost.transforms + 4 * axis.directions * 2 * h)
        sent += layers * h * cost.sent
    return Need(points * saved, points * products, points * sent, tuple(parts))


def seconds(found: Need, gpu: Gpu, count: int) -> tuple[float, float]:
    """Of computing and of sending, at the rates that vendors print."""
    computing = max(2 * found.products / gpu.operations, 4 * 3 * found.saved / gpu.traffic)
    return computing, 4 * found.sent / (gpu.inside if count <= NODE else gpu.between)


def table() -> str:
    """The rows of the page."""
    rows = ["| field | GPUs | pieces | activations, per GPU | " + " | ".join(f"{gpu.name}" for gpu in GPUS) + " |"]
    rows.append("|---|---:|---|---:|" + "---|" * len(GPUS))
    for grid in FIELDS:
        config = SSNOConfig(n_dims=len(grid), boundary="periodic")
        axes = [AxisScan(points, "periodic", config.d_state // 2, 2, True) for points in grid]
        for count in COUNTS:
            products = GPUS[0].operations / 2
            machine = Machine(GPUS[0].inside / 4, products, GPUS[0].traffic / 4, products)
            found = need(config, axes, choose_split(axes, (count,), machine))
            assert all(choose(a, n, machine)[0] != "carried" for a, n in zip(axes, found.parts, strict=True))
            cells = []
            for gpu in GPUS:
                computing, sending = seconds(found, gpu, count)
                fits = "" if 4 * found.saved < gpu.memory else ", does not fit"
                cells.append(f"{duration(computing)} + {duration(sending)}{fits}")
            name, pieces = " x ".join(map(str, grid)), " x ".join(map(str, found.parts))
            cells = [name, str(count), pieces, f"{4 * found.saved / 1e9:,.1f} GB", *cells]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def duration(value: float) -> str:
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def with_table(page: str) -> str:
    """The page with its table made anew."""
    return re.sub(r"\| field \|.*?\n\n", lambda _: table() + "\n", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
