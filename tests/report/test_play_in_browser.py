"""The page of `ssno play` in a real browser: the same numbers as PyTorch, drawing, links, keys, widths, no requests."""

import base64
import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.browser import PROGRAMS, Browser, running_driver
from tests.report.test_play import HOSTILE, trained
from torch import nn

from ssno.forecasting.rollout import stream
from ssno.layers.axial import BlockOptions
from ssno.models.ssno import SSNO
from ssno.report import play
from ssno.report.play import SEED, find_physics, make_play
from ssno.runs.open import RunFolder, open_run

NAMES = ["ks-0.1-64", "burgers-64", "torus-li-64"]
LARGEST_ERROR = 1e-3
"""Of 50 free steps against PyTorch in float32, relative. Float32 and float64 differ by 4e-5 (ks) to 1e-3 (torus)."""
installed = all(any(map(shutil.which, names)) for names in PROGRAMS.values())
CURVE = "document.querySelector('#curve, #model')"


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Iterator[str]:
    """The address of a running chromedriver."""
    with running_driver(tmp_path_factory.mktemp("driver") / "log") as address:
        yield address


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: make_play(open_run(name), folder / f"{name}.html") for name in NAMES}


def opened(browser: Browser, page: Path, *, link: str = "") -> None:
    browser.post("/url", url="about:blank")
    browser.post("/url", url=page.as_uri() + link)
    for _ in range(300):
        if browser.run("return document.body.dataset.ready") == "true":
            return
        time.sleep(0.1)
    pytest.fail(f"The page did not start: {browser.messages()}")


def state(browser: Browser, role: str = "model", frame: int | None = None) -> np.ndarray:
    """A field of the page, bit by bit."""
    script = "const s = ssno.sim, f = s.frames[arguments[0]][arguments[1] ?? s.shown]; return btoa(Array.from("
    script += "new Uint8Array(f.buffer, f.byteOffset, f.byteLength), (b) => String.fromCharCode(b)).join(''))"
    return np.frombuffer(base64.b64decode(browser.run(script, role, frame)), dtype="<f4")


def drag(browser: Browser) -> None:
    """Draw with a finger or mouse across the picture."""
    script = f"const c = {CURVE}, b = c.getBoundingClientRect(); for (const [t, x, y] of [['down', .3, .2],"
    script += " ['move', .5, .7], ['up', .5, .7]]) c.dispatchEvent(new PointerEvent('pointer' + t, {pointerId: 1,"
    script += " clientX: b.left + x * b.width, clientY: b.top + y * b.height, bubbles: true}))"
    browser.run(f"{CURVE}.setPointerCapture = () => {{}}; {script}")


def press(browser: Browser, key: str) -> None:
    browser.run("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true}))", key)


def compare_with_pytorch(browser: Browser, run: RunFolder | Path | str, steps: int) -> float:
    """The error of the page's forecast after free steps from the same input frames."""
    forecaster = (run if isinstance(run, RunFolder) else open_run(run)).forecaster
    script = "ssno.sim.playing = false; const K = ssno.page.input_frames; ssno.computeTo(K - 1);"
    script += " const given = ssno.sim.frames.truth.slice(0, K).map((f) => Array.from(f)); ssno.engine.start(given);"
    script += " let f; for (let i = 0; i < arguments[0]; i++) f = ssno.engine.step(); return [given, Array.from(f)]"
    given, last = browser.run(script, steps)
    grid = browser.run("return ssno.page.grid")
    frames = torch.tensor(given, dtype=torch.float32).view(1, len(given), 1, *grid)
    reference = next(islice(stream(forecaster, frames), steps - 1, None)).flatten()
    return float((torch.tensor(last) - reference).norm() / reference.norm())


@pytest.mark.skipif(not installed, reason="Chromium and chromedriver are not installed")
def test_a_small_model_runs_in_the_browser_as_in_pytorch(driver, tmp_path) -> None:
    folder = trained(tmp_path / HOSTILE.replace("/", ""), field=HOSTILE)
    page = make_play(open_run(folder), tmp_path / "play.html", dataset="ks", viscosity=0.1)
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, page)
        assert compare_with_pytorch(browser, folder, 10) < 1e-5
        assert browser.run("return document.images.length") == 0
        assert HOSTILE in browser.run("return document.querySelector('#curve').getAttribute('aria-label')")
        assert browser.messages() == []
    finally:
        browser.close()


def enlarged(model: nn.Module, *, displaced: float) -> None:
    """Make every part of the blocks of a new model matter: maps start small, and so do displacements."""
    assert isinstance(model, SSNO)
    with torch.no_grad():
        for block in model.spatial_blocks():
            for linear in (block.scans[0].ahead.mix, block.scans[0].back.mix):
                linear.weight.mul_(3)
            if block.warp is not None:
                block.warp.out.weight.mul_(3)
                block.warp.displacements.weight.mul_(3)
                block.warp.displacements.bias.copy_(displaced * torch.randn_like(block.warp.displacements.bias))


SIXTY_FOUR = {"n_layers": 4, "block": BlockOptions("product", warp_heads=16)}


@pytest.mark.skipif(not installed, reason="Chromium and chromedriver are not installed")
@pytest.mark.parametrize(("n_dims", "points", "dataset", "viscosity"), [(1, 64, "ks", 0.1), (2, 16, "torus-li", 1e-4)])
@pytest.mark.parametrize(
    ("model", "displaced", "fields"),
    [
        ("ssno-warp:tiny", 3, {}),
        pytest.param("ssno-product:tiny", 0, {}, marks=pytest.mark.verify),
        pytest.param("ssno-warp:tiny", 300, SIXTY_FOUR, marks=pytest.mark.verify, id="64 wild warps"),
    ],
)
def test_products_and_warps_run_in_the_browser_as_in_pytorch(
    driver, tmp_path, n_dims, points, dataset, viscosity, model, displaced, fields
) -> None:
    change = partial(enlarged, displaced=displaced)
    folder = trained(tmp_path / "run", model, n_dims=n_dims, points=points, change=change, **fields)
    run = open_run(folder)
    page = make_play(run, tmp_path / "play.html", dataset=dataset, viscosity=viscosity)
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, page)
        assert compare_with_pytorch(browser, folder, 10) < 1e-5
        if displaced:
            with torch.no_grad():
                for block in run.forecaster.model.spatial_blocks():
                    block.warp.displacements.bias.zero_()
            assert compare_with_pytorch(browser, run, 10) > 1e-2  # so that a page without displacements would fail
        assert browser.messages() == []
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("name", NAMES)
def test_fifty_free_steps_agree_with_pytorch(driver, pages, name) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages[name])
        assert compare_with_pytorch(browser, name, 50) < LARGEST_ERROR
    finally:
        browser.close()


@pytest.mark.verify
def test_an_engine_built_here_computes_the_same(driver, tmp_path, monkeypatch) -> None:
    shutil.copy(play.ENGINE.with_suffix(".c"), tmp_path)
    subprocess.run(play.BUILD, cwd=tmp_path, check=True)
    monkeypatch.setattr(play, "ENGINE", tmp_path / "engine.wasm")
    page = make_play(open_run("ks-0.1-64"), tmp_path / "play.html")
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, page)
        assert compare_with_pytorch(browser, "ks-0.1-64", 50) < LARGEST_ERROR
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("name", NAMES)
def test_the_solver_of_the_page_is_ours(driver, pages, name) -> None:
    """From the same state as our own solver; Burgers starts from 64 of its 1024 cells, so its frames differ by more."""
    physics = find_physics(open_run(name), None, None)
    rng = np.random.Generator(np.random.Philox(SEED))
    solved = physics.problem.solve([physics.problem.draw(rng)]).state[0, :, 0]
    every = solved.shape[1] // physics.grid[0]
    at = int(np.abs(physics.problem.times - physics.times[5]).argmin())
    ours = solved[(at, *(slice(None, None, every),) * (solved.ndim - 1))].ravel()
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages[name], link="#p=1&f=5")
        if not browser.run("return ssno.page.samples_from").startswith("our solver"):
            pytest.fail("This test needs the initial states of the sampler: run it where ./data has none.")
        found = state(browser, "truth", 5)
        assert np.linalg.norm(found - ours) / np.linalg.norm(ours) < (2e-2 if name == "burgers-64" else 1e-4)
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("name", NAMES)
def test_drawing_changes_the_state_and_the_link_restores_every_bit(driver, pages, name) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages[name], link="#p=2&f=0")
        before = state(browser, "truth", 0)
        drag(browser)
        browser.run("document.querySelector('#play').click()")  # drawing starts it; pause
        time.sleep(0.5)
        drawn = state(browser, "truth", 0)
        assert np.abs(drawn - before).max() > 0.05
        for _ in range(6):
            press(browser, "ArrowRight")
        time.sleep(1)
        link = browser.run("return location.hash")
        assert "d=" in link
        assert len(link) < 8000
        shown, expected = browser.run("return ssno.sim.shown"), {}
        for role in ("truth", "model", "equal"):
            expected[role] = state(browser, role)
        opened(browser, pages[name], link=link)
        assert browser.run("return ssno.sim.shown") == shown >= 6
        assert all(np.array_equal(state(browser, role), expected[role]) for role in expected)
        assert browser.messages() == []
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
@pytest.mark.parametrize("name", NAMES)
def test_the_page_moves_by_itself_and_fits_every_width(driver, pages, name, width, height, dark) -> None:
    browser = Browser(driver, width=width, height=height)
    try:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.command("Emulation.setEmulatedMedia", features=[feature])
        opened(browser, pages[name])
        time.sleep(2)
        assert browser.run("return ssno.sim.shown") > 0
        assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth + 1")
        fetched = browser.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        assert [address for address in fetched if not address.startswith("data:")] == []
        assert browser.messages() == []
    finally:
        browser.close()


@pytest.mark.verify
def test_keys_presets_and_viscosity(driver, pages) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages["ks-0.1-64"], link="#p=1&f=3")
        press(browser, "ArrowRight")
        assert browser.run("return ssno.sim.shown") == 4
        press(browser, "ArrowLeft")
        assert browser.run("return ssno.sim.shown") == 3
        press(browser, " ")
        assert browser.run("return ssno.sim.playing")
        press(browser, "5")
        time.sleep(2.5)
        assert "training saw" in browser.run("return document.getElementById('note').textContent")
        press(browser, " ")
        slide = "const s = document.getElementById('viscosity'); s.value = 1; s.dispatchEvent(new Event('input'))"
        browser.run(slide)
        time.sleep(0.5)
        assert browser.run("return ssno.sim.viscosity") == 0.2
        assert "knows only 0.1" in browser.run("return document.getElementById('note').textContent")
    finally:
        browser.close()


@pytest.mark.verify
def test_with_reduced_motion_it_waits(driver, pages) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        feature = {"name": "prefers-reduced-motion", "value": "reduce"}
        browser.command("Emulation.setEmulatedMedia", features=[feature])
        opened(browser, pages["ks-0.1-64"])
        time.sleep(1)
        assert browser.run("return [ssno.sim.playing, ssno.sim.shown]") == [False, 0]
        browser.click("#play")
        time.sleep(1)
        assert browser.run("return ssno.sim.shown") > 0
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("link", ["#d=%%%&f=3", "#p=99&v=-4&f=x&e=77", "#d=AAAA", "#" + "x" * 5000])
def test_a_broken_link_gives_the_first_state(driver, pages, link) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages["ks-0.1-64"], link=link)
        assert browser.run("return [ssno.sim.preset, ssno.sim.drawn, ssno.sim.viscosity]") == [0, False, 0.1]
        assert browser.messages() == []
    finally:
        browser.close()


@pytest.mark.verify
def test_another_engine_than_the_packages_is_refused(driver, pages, tmp_path) -> None:
    html = pages["ks-0.1-64"].read_text()
    assert html.count('"wasm":"AGFzbQ') == 1
    (tmp_path / "page.html").write_text(html.replace('"wasm":"AGFzbQEAAAAB', '"wasm":"AGFzbQEAAAAC'))
    browser = Browser(driver, width=1280, height=900)
    try:
        browser.open(tmp_path / "page.html")
        time.sleep(1)
        assert "SHA-256 differs" in browser.run("return document.getElementById('note').textContent")
    finally:
        browser.close()


@pytest.mark.verify
@pytest.mark.parametrize(("name", "least"), [("ks-0.1-64", 60), ("burgers-64", 60), ("torus-li-64", 10)])
def test_the_model_is_fast_enough_for_moving_pictures(driver, pages, name, least) -> None:
    browser = Browser(driver, width=1280, height=900)
    try:
        opened(browser, pages[name], link="#p=1&f=4")
        script = "let best = Infinity; for (let i = 0; i < 20; i++) { const t = performance.now();"
        script += " ssno.engine.step(); best = Math.min(best, performance.now() - t); } return 1000 / best"
        assert browser.run(script) >= least
    finally:
        browser.close()
