"""Speed and exactness of the pages of `ssno play`, in headless Chromium.

    python -m benchmarks.play              measure and print
    python -m benchmarks.play --store      also write results/play.json
    python -m benchmarks.play --blocks     instead: untrained models of one size with each kind of block

For every bundled model: frames per second of the model (100 steps: best, median, and per second of processor time,
which other jobs do not lower; of the kinds of blocks only these), of the whole page at its highest speed (model, both
solvers and all pictures), and the error after 50 free steps against PyTorch. Needs chromium and chromedriver. `load` is
the load average at the start.
"""

import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tyro
from tests.browser import Browser, running_driver
from tests.report.test_play import trained
from tests.report.test_play_in_browser import NAMES, compare_with_pytorch, opened

from ssno.base.provenance import provenance
from ssno.report.play import make_play
from ssno.runs.open import open_run

ROOT = Path(__file__).parents[1]
STEPS = """const times = []; for (let i = 0; i < 100; i++) { const t = performance.now(); ssno.engine.step();
times.push(performance.now() - t); } return times.sort((a, b) => a - b)"""
BLOCKS = ("ssno", "ssno-product", "ssno-warp")
SIZE = {"hidden_channels": 32, "n_layers": 4, "head_channels": 128}  # and 64 x 64 points
SHOWN = "ssno.sim.speed = 240; ssno.sim.playing = true; return [performance.now(), ssno.sim.shown]"


def main(*, store: bool = False, blocks: bool = False) -> None:
    """Measure the three bundled pages, or with `blocks` a page of each kind of block."""
    path = ROOT / "results" / "play.json"
    load = os.getloadavg()[0]
    with TemporaryDirectory() as folder, running_driver(Path(folder) / "log") as address:
        measure = measured_block if blocks else measured
        rows = [measure(name, Path(folder), address) for name in (BLOCKS if blocks else NAMES)]
    for row in rows:
        print(row)
    if store:
        document = json.loads(path.read_text()) if path.exists() else {}
        found = {"load": load, "provenance": provenance()}
        document.update({"blocks": {"rows": rows, "size": SIZE, **found}} if blocks else {"pages": rows, **found})
        path.write_text(json.dumps(document, indent=2) + "\n")


def processor_seconds(browser: Browser) -> float:
    """Processor time of the page's main thread so far."""
    metrics = browser.command("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def model_speed(browser: Browser) -> dict[str, float]:
    """Frames per second of the model alone."""
    browser.command("Performance.enable", timeDomain="threadTicks")
    before = processor_seconds(browser)
    times = browser.run(STEPS)
    busy = processor_seconds(browser) - before
    return {"best": 1000 / times[0], "median": 1000 / times[50], "per_core": len(times) / busy}


def measured_block(model: str, folder: Path, address: str) -> dict[str, Any]:
    """An untrained model on 64 x 64 points."""
    run = open_run(trained(folder / model, f"{model}:tiny", n_dims=2, points=64, **SIZE))
    page = make_play(run, folder / f"{model}.html", dataset="torus-li", viscosity=1e-4)
    browser = Browser(address, width=1280, height=900)
    try:
        opened(browser, page, link="#p=1&f=4")
        browser.run("ssno.sim.playing = false")
        return {"model": model, "model_frames_per_second": model_speed(browser)}
    finally:
        browser.close()


def measured(name: str, folder: Path, address: str) -> dict[str, Any]:
    """One page."""
    page = make_play(open_run(name), folder / f"{name}.html")
    browser = Browser(address, width=1280, height=900)
    try:
        opened(browser, page, link="#p=1&f=4")
        error = compare_with_pytorch(browser, name, 50)
        speed = model_speed(browser)
        opened(browser, page, link="#p=1&f=0")
        began, first = browser.run(SHOWN)
        time.sleep(0.7)
        ended, last = browser.run("return [performance.now(), ssno.sim.shown]")
        clock = browser.run("return ssno.sim.calibration")
    finally:
        browser.close()
    return {
        "name": name,
        "bytes": page.stat().st_size,
        "error_after_50_steps": error,
        "model_frames_per_second": speed,
        "page_frames_per_second": 1000 * (last - first) / (ended - began),
        "calibration_ms": clock,
    }


if __name__ == "__main__":
    tyro.cli(main)
