"""Every public name is documented and shown, and the examples of the reference run."""

import ast
import doctest
from pathlib import Path

import pytest
from docs.scripts import reference

from ssno.data.datasets import DATASETS
from ssno.models import registry

ALL = [one for package in reference.packages() for one in reference.public_names(package)]
SLOW = {"export-export_run", "report-make_report"}
"""Examples that import ONNX, or write a whole page."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_every_public_name_has_documentation() -> None:
    assert len(ALL) > 350
    assert not [f"{one.package}.{one.name}" for one in ALL if not one.documentation]


def test_every_public_name_has_an_example_that_uses_it() -> None:
    examples = reference.examples()
    known = {(one.package, one.name) for one in ALL}
    shown = {(package, name) for package, found in examples.items() for name in found}
    assert shown <= known, "an example of a name that is not exported"
    assert known == shown
    assert not [place for place in shown if place[1] not in examples[place[0]][place[1]]]


EXAMPLES = {
    f"{package.removeprefix('ssno.')}-{name}": text
    for package, found in reference.examples().items()
    for text, name in {text: name for name, text in reversed(found.items())}.items()
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.verify] if name in SLOW else []) for name in EXAMPLES]
)
def test_an_example_gives_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "REGISTERED", {})
    before = dict(DATASETS)
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"__name__": "__main__"}, name, None, 0)
    said: list[str] = []
    try:
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    finally:
        for extra in DATASETS.keys() - before.keys():
            del DATASETS[extra]
    assert test.examples
    assert not said, "".join(said)


def test_a_page_shows_signature_fields_methods_and_example() -> None:
    page = reference.package_page("ssno.data")
    assert "load_dataset(\n    name_or_path: str | Path,\n    split: str = 'train',\n    *,\n" in page
    assert "| `input_frames` | `int` | `10` | Input frames of protocol fno. |" in page
    assert "**`.select`**" in page
    assert "Example:" in page
    node = ast.parse("def f(a, *rest: int, b=1, **more): ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    assert reference.signature(node, "f") == "f(a, *rest: int, b=1, **more)"


def test_arguments_of_a_docstring_become_a_list() -> None:
    text = reference.markdown("Do it.\n\nArgs:\n    first: the frames,\n        oldest first.\n    steps: how many.")
    assert text == "Do it.\n\n**Args**\n\n- `first`: the frames,\n  oldest first.\n- `steps`: how many."
