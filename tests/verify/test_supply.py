"""Packages are pinned for CI, floors are those of pyproject.toml, and every package says under which licence it is."""

import json
import re

from verify.supply import CONSTRAINTS, FLOORS, MATERIALS, closure, licence
from verify.tests import floors


def versions(text: str) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(map(int, re.findall(r"\d+", version)))
        for name, version in re.findall(r"(?m)^([\w-]+)==(.+)$", text)
    }


def test_ci_installs_versions_that_are_allowed() -> None:
    assert FLOORS.read_text().splitlines()[1:] == floors(), "run `python -m verify.supply`"
    pinned, lowest = versions(CONSTRAINTS.read_text()), versions(FLOORS.read_text())
    assert len(lowest) >= 9
    assert all(pinned[name] >= version for name, version in lowest.items())


def test_the_bill_of_materials_lists_what_is_pinned_with_licences() -> None:
    components = json.loads(MATERIALS.read_text())["components"]
    listed = {one["name"]: one["version"] for one in components}
    assert {name for name in listed if name != "torch"} == versions(CONSTRAINTS.read_text()).keys()
    assert all(one["licenses"][0]["license"]["name"] for one in components)
    required = {one["name"] for one in components if one["scope"] == "required"}
    assert {"torch", "numpy", "h5py", "safetensors"} <= required
    assert "onnx" not in required


def test_no_package_that_an_installation_needs_is_copyleft() -> None:
    needed = {name: licence(one) for name, one in closure(extras=("",)).items()}
    assert not {name: found for name, found in needed.items() if re.search(r"\bA?GPL|LGPL", found)}
