"""The page in a real browser: no console messages, controls work, nothing overflows, at phone and desktop width."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.browser import Browser, running_driver

from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.models.registry import model_config
from ssno.report.template import render
from ssno.runs.log import Silent
from ssno.training.train import train

SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Iterator[str]:
    """The address of a running chromedriver."""
    with running_driver(tmp_path_factory.mktemp("driver") / "log") as address:
        yield address


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[int, Path]:
    """A page about a 1D run and one about a 2D run with two fields."""
    made = {}
    for n_dims, fields in ((1, 1), (2, 2)):
        folder = tmp_path_factory.mktemp(f"report-{n_dims}d")
        angle = 2 * np.pi * np.arange(16) / 16
        grid = sum(np.meshgrid(*[angle] * n_dims, indexing="ij"))
        rng = np.random.default_rng(0)
        phase = rng.uniform(0, 6, (24, 1, fields)) + 0.3 * np.arange(9)[:, None]
        array = np.sin(grid - phase[..., *(None,) * n_dims]).astype(np.float32)
        np.save(folder / "mine.npy", array)
        names = ["u", "v"][:fields]
        data = Trajectories.from_array(array, lengths=[4.0] * n_dims, fields=names, dt=0.5)
        torch.manual_seed(0)
        model = model_config("ssno:tiny", n_dims=n_dims, in_channels=fields, out_channels=fields).build()
        train(model, data, folder=folder / "run", epochs=2, batch_size=6, reporter=Silent())
        described = {"path": str(folder / "mine.npy"), "axes": " ".join(["batch time channel", *"xy"[:n_dims]])}
        described |= {"dt": 0.5, "lengths": [4.0] * n_dims, "fields": names}
        document = json.loads((folder / "run" / "config.json").read_text())
        document["run"] = {"data": described, "model": document["config"], "train": document["run"]["train"]}
        (folder / "run" / "config.json").write_text(json.dumps(document))
        main(["report", str(folder / "run"), "--out", str(folder / "report.html")])
        made[n_dims] = folder / "report.html"
    return made


FRAME = "return Number(document.querySelector('.player input').value)"
DRAWN = "return document.querySelector('.player .panel[data-panel=truth]').toDataURL()"
LOOK = "return document.querySelector('.player .lines, .player .panel').toDataURL()"


@pytest.mark.verify
@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("n_dims", [1, 2])
def test_the_page_works_in_a_browser(driver, pages, n_dims, size, tmp_path) -> None:
    width, height = SIZES[size]
    browser = Browser(driver, width=width, height=height)
    try:
        browser.open(pages[n_dims])
        assert browser.run("return document.querySelector('.player').dataset.ready") == "true"
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1")
        assert browser.run("return [...document.images].every((image) => image.complete && image.naturalWidth > 0)")
        check_slider(browser)
        check_playing(browser)
        check_choices(browser, fields=n_dims)
        browser.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 50_000
        assert browser.messages() == []
    finally:
        browser.close()


def check_slider(browser: Browser) -> None:
    """Arrow keys move by a frame, and the picture and the words follow."""
    start, before = browser.run(FRAME), browser.run(LOOK)
    browser.press(".player input", "\ue014\ue014")  # right, right
    assert browser.run(FRAME) == start + 2 == 7
    assert browser.run(LOOK) != before
    assert browser.run("return document.querySelector('.player output').textContent").startswith("t = 3.5, error ")
    browser.press(".player input", "\ue011")  # home
    assert browser.run("return document.querySelector('.player output').textContent") == "t = 0, input"


def check_playing(browser: Browser) -> None:
    """Play runs to the end and stops; pause stops at once."""
    label = "return document.querySelector('.player .play').getAttribute('aria-label')"
    browser.click(".player .play")
    assert browser.run(label) == "Pause"
    browser.click(".player .play")
    assert browser.run(label) == "Play"
    stopped = browser.run(FRAME)
    time.sleep(0.6)
    assert browser.run(FRAME) == stopped
    browser.press(".player .play", " ")  # the keyboard works too
    for _ in range(50):
        if browser.run(label) == "Play":
            break
        time.sleep(0.2)
    assert browser.run(FRAME) == 8


def check_choices(browser: Browser, *, fields: int) -> None:
    """Another trajectory and another field give another picture; settings unfold."""
    change = "const menu = document.querySelector(arguments[0]); menu.selectedIndex = arguments[1];"
    change += " menu.dispatchEvent(new Event('change'));"
    seen = {browser.run(DRAWN)}
    browser.run(change, ".player .trajectory", 1)
    seen.add(browser.run(DRAWN))
    if fields > 1:
        browser.run(change, ".player .field", 1)
        seen.add(browser.run(DRAWN))
    assert len(seen) == 1 + fields
    browser.run("document.querySelector('summary').scrollIntoView({block: 'center'})")
    browser.click("summary")
    assert browser.run("return document.querySelector('details').open")


@pytest.mark.verify
def test_the_page_prints_without_controls_and_fetches_nothing(driver, pages) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        browser.command("Network.enable")
        browser.open(pages[1])
        fetched = browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert [name for name in fetched if not name.startswith("data:")] == []
        browser.command("Emulation.setEmulatedMedia", media="print")
        hidden = "return getComputedStyle(document.querySelector('.controls')).display"
        assert browser.run(hidden) == "none"
        assert len(base64.b64decode(browser.post("/print"))) > 50_000
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("size", [*SIZES.values(), (1100, 900)])
def test_long_claims_wrap_and_labels_stay_whole(driver, tmp_path, size) -> None:
    claim = "public, t = 20: SS-NO, great circles at least 2 times below SFNO with latitude " * 3
    page = render(
        "finding.html",
        command="ssno reproduce",
        heading="Shallow water",
        lead="",
        links=[],
        verdicts=[
            (claim, "not decidable at this scale", "0.357 ± 0.024 against 0.13 ± 0.0085: 0.364 times, p = 6e-06", "0.1")
        ],
        pictures=[],
        tables=[],
        notes=[],
        environment={"commit": "0123456789abcdef" * 3, "python": "3.11"},
        reproduce="ssno reproduce swe",
        settings="",
    )
    (tmp_path / "page.html").write_text(page)
    browser = Browser(driver, width=size[0], height=size[1])
    try:
        browser.open(tmp_path / "page.html")
        verdict = "return document.querySelector('.prose td').getBoundingClientRect().right"
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth + 1")
        assert browser.run(verdict) <= size[0], "the verdict is seen without scrolling sideways"
        fits = "return [...document.querySelectorAll('.scroll')].every((e) => e.scrollWidth <= e.clientWidth + 1)"
        assert browser.run(fits)
        assert browser.run("return [...document.querySelectorAll('dt')].every((e) => e.offsetHeight < 30)")
    finally:
        browser.close()
