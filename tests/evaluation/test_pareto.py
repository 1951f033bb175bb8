"""Error against cost: files of errors, joining, the front, the picture."""

import json

import pytest

from ssno.evaluation.cost_table import Point, front, join, read_errors
from ssno.plots.curves import pareto_figure

COSTS = [
    {"model": "ssno", "task": "forward", "batch": 1, "grid": "64", "gflop": 0.08, "ms": 2.0},
    {"model": "ssno", "task": "forward", "batch": 1, "grid": "128", "gflop": 0.2, "ms": 3.0},
    {"model": "gkt", "task": "forward", "batch": 1, "grid": "64", "gflop": 0.01, "ms": 4.0},
    {"model": "gkt", "task": "train", "batch": 1, "grid": "64", "gflop": 9.0, "ms": 9.0},
]
ERRORS = [{"name": "ssno", "rel_l2": 0.01, "grid": "64"}, {"name": "gkt", "rel_l2": 0.05}]


def test_errors_are_read_from_json_and_csv_alike(tmp_path) -> None:
    (tmp_path / "errors.json").write_text(json.dumps(ERRORS))
    (tmp_path / "errors.csv").write_text("name,rel_l2,grid\nssno,0.01,64\ngkt,0.05,\n")
    points = [join(read_errors(tmp_path / name), COSTS) for name in ("errors.json", "errors.csv")]
    assert points[0] == points[1] == [Point("ssno", "64", 0.01, 0.08, 2.0), Point("gkt", "64", 0.05, 0.01, 4.0)]


def test_the_front_holds_what_nothing_beats_twice() -> None:
    cheap, good, beaten = (
        Point("a", "64", 0.1, 1.0, 1.0),
        Point("b", "64", 0.01, 2.0, 0.5),
        Point("c", "64", 0.1, 3.0, 3.0),
    )
    assert front([beaten, good, cheap], "gflop") == [cheap, good]
    assert front([beaten, good, cheap], "ms") == [good]


def test_the_picture_shows_every_model_in_both_panels() -> None:
    figure = pareto_figure(join([*ERRORS, {"name": "ssno", "rel_l2": 0.02, "grid": "128"}], COSTS))
    for axes, cost in zip(figure.axes, ("gflop", "ms"), strict=True):
        lines = {line.get_label(): line.get_xdata().tolist() for line in axes.get_lines() if line.get_label()[0] != "_"}
        assert lines["ssno"] == [row[cost] for row in COSTS[:2]]
        assert lines["gkt"] == [COSTS[2][cost]]
        assert axes.get_xscale() == axes.get_yscale() == "log"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is not valid JSON"),
        ("[]", "must have a row for every evaluated run"),
        ('[{"name": "ssno"}]', "row 1: expected `name` and a number `rel_l2`, got {'name': 'ssno'}"),
        ('[{"name": "ssno", "rel_l2": -1}]', "row 1: `rel_l2` of ssno must be positive and finite, got -1.0"),
        ('[{"name": "ssno", "rel_l2": NaN}]', "expected `name` and a number `rel_l2`"),
    ],
)
def test_wrong_error_files_are_refused(tmp_path, text, message) -> None:
    (tmp_path / "errors.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_errors(tmp_path / "errors.json")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"name": "ssno", "rel_l2": 1.0}, r"No cost was measured for ssno on grid \(not given\); .*ssno on 64/128"),
        ({"name": "unet", "rel_l2": 1.0, "grid": "64"}, "No cost was measured for unet on grid 64"),
    ],
)
def test_errors_without_a_cost_are_refused(error, message) -> None:
    with pytest.raises(ValueError, match=message):
        join([error], COSTS)
