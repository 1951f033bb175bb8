"""Matrix product or FFT? Measured over axis length and lines; `ssno.ssm.convolution.choose_method` follows it.

    python -m benchmarks.short_axes                 print the table
    python -m benchmarks.short_axes --csv-file F    append the rows, with machine, versions and commit, to F

Both methods see the same kernel and input and run in turn; the ratio is the speed-up of the matrix product.
Outputs are compared first. "training" is forward and backward, kernel gradients included.
"""

import csv
import itertools
import time
from functools import partial
from pathlib import Path

import torch
import tyro

from ssno.base.provenance import provenance
from ssno.evaluation.cost import time_interleaved
from ssno.ssm.convolution import ConvolutionMethod, choose_method, convolve

CHANNELS = 64


def main(
    lengths: tuple[int, ...] = (32, 64, 128, 256, 512),
    lines: tuple[int, ...] = (1, 4, 16, 64, 400),
    seconds: float = 0.5,
    csv_file: Path | None = None,
) -> None:
    """Measure every combination and print how many times faster the matrix product is.

    Args:
        lengths: points on the axis.
        lines: lines convolved at once.
        seconds: time to spend on each case, at least seven rounds.
        csv_file: append the rows here.
    """
    rows = [measure(*case, seconds=seconds) for case in itertools.product((False, True), lengths, lines)]
    for row in rows:
        use = "training" if row["training"] else "forward"
        print(
            f"{use:9s} {row['length']:5d} points {row['lines']:5d} lines  fft {row['fft_ms']:8.3f} ms  matrix "
            f"{row['toeplitz_ms']:8.3f} ms  ratio {row['ratio']:6.2f}  chosen {row['chosen']}"
        )
    if csv_file is not None:
        where = {"date": time.strftime("%Y-%m-%d"), "threads": torch.get_num_threads(), **provenance()}
        new = not csv_file.exists()
        with csv_file.open("a", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0], *where])
            if new:
                writer.writeheader()
            writer.writerows({**row, **where} for row in rows)


def measure(training: bool, length: int, lines: int, *, seconds: float) -> dict[str, float | int | str | bool]:
    """Time both methods on one case."""
    torch.manual_seed(0)
    x = torch.randn(CHANNELS, length, lines, requires_grad=training)
    kernel = torch.randn(CHANNELS, length, requires_grad=training)

    def run(method: ConvolutionMethod) -> None:
        with torch.set_grad_enabled(training):
            y = convolve(x, kernel, method=method)
        if training:
            y.square().mean().backward()

    torch.testing.assert_close(
        convolve(x, kernel, method="fft"), convolve(x, kernel, method="toeplitz"), atol=1e-3, rtol=1e-3
    )
    methods: tuple[ConvolutionMethod, ...] = ("fft", "toeplitz")
    times = time_interleaved({name: partial(run, name) for name in methods}, budget=seconds, least_rounds=7)
    fft, matrix = (times[name].median * 1e3 for name in methods)
    return {
        "training": training,
        "length": length,
        "lines": lines,
        "fft_ms": round(fft, 4),
        "toeplitz_ms": round(matrix, 4),
        "ratio": round(fft / matrix, 3),
        "chosen": choose_method(length, lines, torch.device("cpu")),
    }


if __name__ == "__main__":
    tyro.cli(main)
