"""When does the chunked scan beat the FFT? Measured per length, number of lines and states; `ssno.ssm.scan` follows it.

    python -m benchmarks.long_axes                 print the table and the crossover
    python -m benchmarks.long_axes --csv-file F    append the rows, with machine, versions and commit, to F

A case is data and its name is derived from it. Both methods see the same modes and the same input, kernel generation
included; they run in turn, after a warm-up, and the median of the repeats is reported with its spread. The float32
output is checked against the float64 FFT first. "training" is forward and backward, kernel gradients included;
"saved" counts what the forward pass keeps for the backward one.
"""

import csv
import itertools
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import tyro

from ssno.layers.modes import Modes
from ssno.ssm.convolution import convolve
from ssno.ssm.kernel import Boundary
from ssno.ssm.scan import ScanMethod, choose_scan, scan

CHANNELS = 64
METHODS: tuple[ScanMethod, ...] = ("fft", "chunked")


@dataclass(frozen=True)
class Case:
    """One thing to measure."""

    length: int
    lines: int
    d_state: int
    training: bool
    boundary: Boundary = "zero"

    @property
    def name(self) -> str:
        use = "training" if self.training else "forward"
        return f"l{self.length}-b{self.lines}-n{self.d_state}-{self.boundary}-{use}"


@dataclass(frozen=True)
class Row:
    """What came out."""

    case: str
    method: str
    median_ms: float
    spread_ms: float
    saved_mb: float
    error: float


def measure(case: Case, *, repeats: int) -> list[Row]:
    """Time both methods in turn on one case."""
    torch.manual_seed(0)
    modes = Modes(CHANNELS, d_state=case.d_state)
    x = torch.randn(CHANNELS, case.length, case.lines, requires_grad=case.training)
    skip = torch.zeros(CHANNELS)

    def run(method: ScanMethod) -> torch.Tensor:
        return scan(modes.discretised(), modes.weight(), x, skip=skip, boundary=case.boundary, method=method)

    def step(method: ScanMethod) -> None:
        if not case.training:
            with torch.no_grad():
                run(method)
            return
        modes.zero_grad()
        x.grad = None
        run(method).square().mean().backward()

    exact = Modes(CHANNELS, d_state=case.d_state).double()
    exact.load_state_dict(modes.state_dict())
    with torch.no_grad():
        taps = exact.kernel(case.length, boundary=case.boundary)
        reference = convolve(x.double(), taps, periodic=case.boundary != "zero", method="fft")
        errors = {method: ((run(method) - reference).norm() / reference.norm()).item() for method in METHODS}
    saved = {method: _saved_bytes(lambda method=method: run(method)) / 1e6 for method in METHODS}
    times: dict[ScanMethod, list[float]] = {method: [] for method in METHODS}
    for repeat in range(repeats + 1):
        for method in METHODS:
            start = time.perf_counter()
            step(method)
            if repeat:  # the first is a warm-up
                times[method].append(1e3 * (time.perf_counter() - start))
    return [
        Row(
            case.name,
            method,
            round(statistics.median(times[method]), 3),
            round(max(times[method]) - min(times[method]), 3),
            round(saved[method], 3),
            float(f"{errors[method]:.1e}"),
        )
        for method in METHODS
    ]


def _saved_bytes(forward: Callable[[], torch.Tensor]) -> int:
    """Bytes of the tensors that autograd keeps, each storage once."""
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = forward()
    del result
    return sum(kept.values())


def machine() -> dict[str, str]:
    """Where a row was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    processor = next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": processor,
        "threads": str(torch.get_num_threads()),
    }


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def main(
    lengths: tuple[int, ...] = (1024, 4096, 16_384, 65_536),
    lines: tuple[int, ...] = (1, 4),
    d_states: tuple[int, ...] = (16, 64),
    boundaries: tuple[Boundary, ...] = ("zero", "periodic"),
    repeats: int = 3,
    threads: int = 1,
    csv_file: Path | None = None,
) -> None:
    """Measure every combination, print the table and where the chunked scan starts to win.

    Args:
        lengths: points on the axis.
        lines: lines scanned at once.
        d_states: states per channel.
        boundaries: what lies beyond the axis.
        repeats: timed runs per method.
        threads: threads torch may use.
        csv_file: append the rows here.
    """
    torch.set_num_threads(threads)
    wins: dict[tuple[Boundary, int], list[bool]] = {}
    rows = []
    print(f"{'case':36s} {'fft ms':>9s} {'chunked ms':>11s} {'ratio':>6s} {'saved MB (fft, chunked)':>25s}")
    for boundary, training, length, count, d_state in itertools.product(
        boundaries, (False, True), lengths, lines, d_states
    ):
        case = Case(length, count, d_state, training, boundary)
        fft, chunked = measure(case, repeats=repeats)
        rows += [fft, chunked]
        ratio = fft.median_ms / chunked.median_ms
        wins.setdefault((boundary, length), []).append(ratio > 1)
        print(
            f"{case.name:36s} {fft.median_ms:9.1f} {chunked.median_ms:11.1f} {ratio:6.2f} "
            f"{fft.saved_mb:12.1f} {chunked.saved_mb:12.1f}"
        )
    print("cases in which the chunked scan was faster, and what the automatic choice takes for one line:")
    for (boundary, length), won in wins.items():
        chosen = choose_scan(length, 1, torch.device("cpu"), boundary=boundary)
        print(f"  {boundary:10s} {length:7d} points  {sum(won)}/{len(won)}  {chosen}")
    if csv_file is not None:
        append(csv_file, rows)


def append(path: Path, rows: list[Row]) -> None:
    """Add rows with the machine they come from."""
    where = machine()
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [*asdict(rows[0]), *where])
        if new:
            writer.writeheader()
        writer.writerows({**asdict(row), **where} for row in rows)


if __name__ == "__main__":
    tyro.cli(main)
