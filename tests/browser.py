"""A real browser for tests: Chromium, driven by the WebDriver protocol with the standard library alone."""

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

LONGEST = 180
"""Seconds that a command may take."""
PROGRAMS = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "driver": ("chromedriver",)}


def program(kind: str) -> str:
    for name in PROGRAMS[kind]:
        if (found := shutil.which(name)) is not None:
            return found
    pytest.fail(f"No {PROGRAMS[kind][0]} found. Install it: apt-get install chromium chromium-driver")


class Browser:
    """A window of Chromium without a screen."""

    def __init__(self, address: str, *, width: int, height: int, dark: bool = False):
        phone = {"deviceMetrics": {"width": width, "height": height, "pixelRatio": 2.0}} if width < 500 else None
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        words += [f"--window-size={width},{height}", *(["--force-dark-mode"] if dark else [])]
        options = {"binary": program("chromium"), "args": words, **({"mobileEmulation": phone} if phone else {})}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.address = address
        self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self.post("/timeouts", script=1000 * (LONGEST - 10))  # a busy machine computes fifty frames for minutes

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=LONGEST) as answer:
            return json.load(answer)["value"]

    def post(self, path: str, **body: Any) -> Any:
        return self._call("POST", f"/session/{self.session}{path}", body)

    def open(self, page: Path) -> None:
        self.post("/url", url=page.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.post("/execute/sync", script=script, args=list(arguments))

    def command(self, name: str, **parameters: Any) -> Any:
        return self.post("/goog/cdp/execute", cmd=name, params=parameters)

    def click(self, selector: str) -> None:
        found = self.post("/element", using="css selector", value=selector)
        self.post(f"/element/{next(iter(found.values()))}/click")

    def press(self, selector: str, keys: str) -> None:
        found = self.post("/element", using="css selector", value=selector)
        self.post(f"/element/{next(iter(found.values()))}/value", text=keys)

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.post("/se/log", type="browser")]

    def screenshot(self, path: Path) -> None:
        """The whole page, however long."""
        size = self.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._call("DELETE", f"/session/{self.session}")


@contextmanager
def running_driver(log: Path) -> Iterator[str]:
    """The address of a chromedriver that runs inside this context."""
    with log.open("w") as file:
        process = subprocess.Popen([program("driver"), "--port=0"], stdout=file, stderr=subprocess.STDOUT)
    try:
        for _ in range(150):
            if found := re.search(r"started successfully on port (\d+)", log.read_text()):
                break
            time.sleep(0.2)
        else:
            pytest.fail(f"chromedriver did not start: {log.read_text()}")
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        process.terminate()
        process.wait()
