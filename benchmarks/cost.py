"""Has a change made a model cheaper or dearer? Measure the cost of all models and compare with stored rows.

    python -m benchmarks.cost                      all of `ssno bench`, compared with results/cost/cost.json
    python -m benchmarks.cost --quick              the short one
    python -m benchmarks.cost --replace            then make the new rows the stored ones

Times count as changed if the middle halves of the rounds do not overlap and the medians differ by more than a tenth,
because two runs on a shared machine differ by that much; operations and parameters if they differ at all.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from ssno.cli.bench import bench
from ssno.evaluation.cost_table import Row, read_costs

STORED = Path(__file__).parents[1] / "results" / "cost"
TOLERANCE = 1.1


def main(*, quick: bool = False, models: tuple[str, ...] = (), baseline: Path = STORED, replace: bool = False) -> None:
    """Measure, compare with the rows stored in `baseline`, and keep the new ones there if asked to.

    Args:
        quick: the short measurement of `ssno bench --quick`.
        models: only these models.
        baseline: folder with the cost.json to compare with.
        replace: store the new rows in that folder.
    """
    before = read_costs(baseline / "cost.json") if (baseline / "cost.json").exists() else []
    with TemporaryDirectory() as folder:
        bench(quick=quick, models=models, out=Path(folder))
        after = read_costs(Path(folder) / "cost.json")
        if replace:
            baseline.mkdir(parents=True, exist_ok=True)
            for name in ("cost.json", "cost.csv"):
                shutil.copy(Path(folder) / name, baseline / name)
    compared = changes(before, after)
    print("\n".join(compared) if compared else f"No change against {len(before)} stored rows.")


def changes(before: Iterable[Row], after: Iterable[Row]) -> list[str]:
    """A line for every row whose cost changed."""
    old = {key(row): row for row in before}
    lines = []
    for row in after:
        if key(row) not in old:
            continue
        was = old[key(row)]
        where = f"{row['model']}, {row['task']}, {row['grid']} points, batch {row['batch']}"
        for name in ("parameters", "gflop"):
            if abs(row[name] - was[name]) > 1e-9 * was[name]:
                lines.append(f"{where}: {name} {was[name]:.6g} -> {row[name]:.6g}")
        ratio = row["ms"] / was["ms"]
        apart = row["ms_lower"] > was["ms_upper"] or row["ms_upper"] < was["ms_lower"]
        if apart and max(ratio, 1 / ratio) > TOLERANCE:
            word = f"{ratio:.2f} times slower" if ratio > 1 else f"{1 / ratio:.2f} times faster"
            lines.append(f"{where}: {was['ms']:.3g} -> {row['ms']:.3g} ms, {word}")
    return lines


def key(row: Row) -> tuple[str, str, str, int, int]:
    """What makes two rows comparable."""
    return row["model"], row["task"], row["grid"], row["batch"], row["frames"]


if __name__ == "__main__":
    tyro.cli(main)
