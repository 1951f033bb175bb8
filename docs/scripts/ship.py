"""Bundle a trained run with the package:  python docs/scripts/ship.py RUN NAME  (where ./data holds its dataset).

Evaluates the run on its test split, writes src/ssno/pretrained/NAME, and evaluates what was written once more.
"""

from pathlib import Path

import tyro

from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.publish import FILES, ship


def main(run: tyro.conf.Positional[Path], name: tyro.conf.Positional[str], *, overwrite: bool = False) -> None:
    """Make the bundled checkpoint NAME of RUN; `--overwrite` replaces one of that name."""
    measured = evaluate(run, write=False)
    folder = ship(run, name, measured, overwrite=overwrite)
    again = evaluate(folder, write=False)
    size = sum((folder / file).stat().st_size for file in FILES)
    stated = measured.scores.means["rel_l2"]
    print(f"{folder}: {size:,} bytes, rel_l2 {stated:.5g}; read back: {again.scores.means['rel_l2']:.5g}.")


if __name__ == "__main__":
    tyro.cli(main)
