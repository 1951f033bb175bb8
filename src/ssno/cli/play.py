"""`ssno play RUN -o play.html`: a page on which a model runs live in the browser."""

from pathlib import Path
from typing import Annotated

import tyro

from ssno.base import byte_size, to_text
from ssno.report.play import make_play
from ssno.runs.open import open_run


def play(
    run: tyro.conf.Positional[Path],
    *,
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("play.html"),
    dataset: str | None = None,
    viscosity: float | None = None,
    json: bool = False,
) -> None:
    """Make one HTML page on which the model of a run forecasts live, beside a solver of its equation.

    The page is a single file that needs no network: draw an initial state, watch model and solver race, share the link.
    Supported: ssno, ssno-product and ssno-warp with periodic axes in one or two dimensions, trained on ks, burgers or
    torus-li.

    Args:
        run: Folder of a training run, or the name of a bundled checkpoint.
        out: The file. An earlier page is replaced, no other file.
        dataset: The dataset of training (ks, ks-attractor, burgers, torus-li), if the run does not record it.
        viscosity: The viscosity of the training data, if the run does not record it.
        json: Print where the page is as JSON.
    """
    path = make_play(open_run(run, device="cpu"), out, dataset=dataset, viscosity=viscosity)
    written = path.stat().st_size
    if json:
        print(to_text({"path": str(path), "bytes": written}, indent=2))
    else:
        print(f"{path}: {byte_size(written)}. Open it in any browser.")
