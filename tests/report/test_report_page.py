"""The report page: complete, self-contained, escaped, and its player's numbers are those of the forecast."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from markupsafe import escape
from matplotlib.figure import Figure

from ssno.cli.main import main
from ssno.data.trajectories import Trajectories
from ssno.data.units import PhysicalUnits
from ssno.evaluation.evaluate import evaluate
from ssno.evaluation.examples import Examples, make_examples
from ssno.evaluation.record import read_evaluation
from ssno.models.registry import model_config
from ssno.pde.geometry import SPHERE
from ssno.plots.curves import Band, error_bands
from ssno.report.page import (
    HEADINGS,
    best_model,
    build_page,
    gather,
    mean_spectrum,
    no_spectrum,
    overview,
    reading,
    summary,
    typical,
)
from ssno.report.player import NOT_FINITE, player_data, quantised
from ssno.report.template import ENVIRONMENT, Picture, encode, picture
from ssno.runs.log import Silent
from ssno.runs.open import open_run
from ssno.training.train import train

MACROS = ENVIRONMENT.get_template("macros.html").module
HOSTILE = "<script>alert(1)</script>&\"'"


def waves(count: int = 20) -> Trajectories:
    rng = np.random.default_rng(0)
    x = 2 * np.pi * np.arange(16) / 16
    phase = rng.uniform(0, 6, (count, 1)) + 0.3 * np.arange(7)
    array = np.sin(x - phase[..., None])[:, :, None].astype(np.float32)
    return Trajectories.from_array(array, lengths=[4.0], dt=0.5, name="waves")


def make_run(folder: Path, name: str, *, seed: int = 0, model: str = "ssno", described: bool = True) -> Path:
    """A run, and its data beside it."""
    data = waves()
    torch.manual_seed(seed)
    settings = {"epochs": 1, "batch_size": 9, "seed": seed, "reporter": Silent()}
    train(model_config(f"{model}:tiny").build(), data, folder=folder / name, **settings)
    if described:
        np.save(folder / "waves.npy", data.read(slice(None)).state.numpy())
        path = folder / name / "config.json"
        document = json.loads(path.read_text())
        values = {"path": str(folder / "waves.npy"), "axes": "batch time channel x", "dt": 0.5, "lengths": [4.0]}
        document["run"] = {"data": values, "model": document["config"], "train": document["run"]["train"]}
        path.write_text(json.dumps(document))
    return folder / name


@pytest.fixture(autouse=True)
def quick_pictures(monkeypatch) -> None:
    """Figures take most of the time; here none is drawn, in a browser (`make verify`) they are."""
    quick = lambda draw, words, caption="", **_: Picture("data:,", "data:,", words, caption)  # noqa: E731
    monkeypatch.setattr("ssno.report.page.picture", quick)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [make_run(folder, "first"), make_run(folder, "second", seed=1), make_run(folder, "other", model="fno-r")]


class Elements(HTMLParser):
    """Every start tag with its attributes, and whether all are closed in order."""

    EMPTY = frozenset({"meta", "link", "img", "input", "source", "br"})

    def __init__(self, page: str):
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page_of(*folders: Path, **options: str) -> str:
    main(
        ["report", *map(str, folders), "--out", str(folders[0] / "page.html"), *(w for p in options.items() for w in p)]
    )
    return (folders[0] / "page.html").read_text(encoding="utf-8")


def test_the_page_is_whole_and_needs_nothing_else(runs, capsys) -> None:
    page = page_of(runs[0])
    assert "Open it in any browser" in capsys.readouterr().out
    elements = Elements(page)
    assert elements.open == []
    for tag, attributes in elements.seen:
        for name in ("src", "href", "srcset", "action"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#")), (tag, address)
    outside = re.sub(r'"data:[^"]*"', '""', page)
    assert not re.search(r"https?://|@import|url\(", outside)
    assert "default-src 'none'" in page
    names = [attributes.get("id") for _, attributes in elements.seen if attributes.get("id")]
    assert len(names) == len(set(names))
    targets = {
        attributes["href"][1:] for tag, attributes in elements.seen if tag == "a" and attributes["href"][:1] == "#"
    }
    assert targets <= {*names}


def test_the_page_says_what_the_evaluation_says_and_how_to_repeat_it(runs) -> None:
    page = page_of(runs[0])
    evaluation = read_evaluation(runs[0] / "evaluation.json")
    assert escape(summary(evaluation)).replace(" %", "\xa0%") in page
    assert f"{evaluation.parameters:,}" in page
    for heading in HEADINGS.values():
        assert f"<h3>{heading}</h3>" in page
    assert "ssno train --config run.json --name first" in page
    link = re.search(r'download="run.json" href="data:application/json;base64,([^"]+)"', page)
    assert json.loads(base64.b64decode(link[1])) == open_run(runs[0]).config["run"]


def test_the_stored_evaluation_is_used_unless_the_weights_are_newer(runs, tmp_path, capsys) -> None:
    folder = make_run(tmp_path, "mine")
    main(["report", str(folder), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told == {"path": str(folder / "report.html"), "bytes": (folder / "report.html").stat().st_size}
    path = folder / "evaluation.json"
    document = json.loads(path.read_text())
    document["scores"]["means"]["rel_l2"] = 0.123456
    path.write_text(json.dumps(document))
    assert "0.123" in page_of(folder)
    (folder / "model.safetensors").touch()
    assert "0.123" not in page_of(folder)


def test_hostile_names_stay_text(tmp_path) -> None:
    folder = make_run(tmp_path, "plain")
    run = open_run(folder)
    evaluation = evaluate(folder, write=False)
    evil = {"name": HOSTILE, "dataset": HOSTILE, "model": HOSTILE}
    report = gather(run, run.load("test"), type(evaluation)(**{**vars(evaluation), **evil}))
    run.config["run"][HOSTILE] = {HOSTILE: HOSTILE}
    run.config["provenance"]["processor"] = HOSTILE
    page = build_page([report, report])
    assert "<script>alert" not in page
    assert escape(HOSTILE) in page
    assert Elements(page).open == []
    assert ENVIRONMENT.autoescape is True
    templates = [ENVIRONMENT.loader.get_source(ENVIRONMENT, name)[0] for name in ENVIRONMENT.list_templates()]
    assert len(templates) == 12
    assert not [source for source in templates if re.search(r"\|\s*safe\b|autoescape|Markup", source)]


def test_examples_are_forecast_once_and_are_those_of_single_forecasts(runs, monkeypatch) -> None:
    run, calls = open_run(runs[0]), []
    monkeypatch.setattr(
        "ssno.report.page.make_examples",
        lambda *arguments: calls.append(arguments[2]) or make_examples(*arguments),
    )
    report = gather(run, run.load("test"), evaluate(runs[0], write=False))
    assert len(calls) == 1
    for seen in (report.examples, report.spectrum_examples):
        alone = make_examples(run.forecaster, report.data, seen.indices)
        torch.testing.assert_close(seen.forecast, alone.forecast, rtol=0, atol=0)
        assert torch.equal(seen.truth, alone.truth)


def test_several_runs_are_compared_by_seeds_or_not_at_all(runs) -> None:
    page = page_of(*runs)
    assert "Not separable in rel_l2" in page
    assert page.count('class="player"') == 3
    assert "neither state-space layers nor a memory" in page
    evaluations = [read_evaluation(run / "evaluation.json") for run in runs]
    assert best_model(evaluations[:2]) == "2 seeds of one model."
    assert overview(evaluations[:2], PhysicalUnits(time="h"))["headings"][-1] == "valid_time (h)"
    assert "are one model trained with the same seed" in best_model([evaluations[0], evaluations[0]])
    elsewhere = type(evaluations[0])(**{**vars(evaluations[1]), "split": "valid"})
    opened = open_run(runs[0])
    reports = [gather(opened, opened.load("test"), evaluation) for evaluation in (evaluations[0], elsewhere)]
    assert "were evaluated on different split" in build_page(reports)


def test_an_ensemble_shows_its_bands_and_its_calibration(runs) -> None:
    main(["report", str(runs[0]), str(runs[1]), "--ensemble", "--out", str(runs[0] / "both.html")])
    page = (runs[0] / "both.html").read_text()
    assert 'id="ensemble"' in page
    assert "Calibration of the ensemble" in page
    assert "the median: mean, one and two standard deviations" in page


def test_another_split_and_grid_can_be_reported(runs) -> None:
    page = page_of(runs[0], **{"--split": "valid", "--resolution": "8"})
    assert "2 valid trajectories of" in page
    assert "8 points" in page


def test_a_run_started_from_python_says_so(tmp_path, capsys) -> None:
    folder = make_run(tmp_path, "python", described=False)
    with pytest.raises(SystemExit):
        main(["report", str(folder)])
    assert "started from Python" in capsys.readouterr().err
    evaluation = evaluate(folder, data=waves(), write=False)
    stated = replace(waves(), units=PhysicalUnits({"u": "m"}, {"x": "m"}, "s"))
    page = build_page([gather(open_run(folder), stated, evaluation)])
    assert re.search(r"of \d[\d.]* s: error below", page), "times have the unit that the data state"
    assert re.search(r"time until the error exceeds \d+ % \(s\)", page)
    assert "This run was started from Python" in page


def test_the_player_carries_the_numbers_of_truth_and_forecast() -> None:
    data = waves(2)
    state = data.read(slice(None)).state
    seen = Examples((0, 1), state, state[:, 4:] + 0.25, tuple(data.times.tolist()))
    payload = player_data(seen, data, {0: "median"})
    assert (payload["input_frames"], payload["grid"], payload["labels"]) == (4, [16], ["median", "trajectory 1"])
    values = payload["values"][0]
    for name, shift in (("truth", 0.0), ("forecast", 0.25)):
        codes = np.frombuffer(base64.b64decode(values[name][1]), "<u2").reshape(7, 16)
        decoded = values["low"] + (values["high"] - values["low"]) * codes / (NOT_FINITE - 1)
        np.testing.assert_allclose(decoded[4:], state[1, 4:, 0].numpy() + shift, atol=1e-4)
    assert values["worst"][0] == pytest.approx(0.25, rel=1e-3)
    assert payload["errors"][0][:4] == [0, 0, 0, 0]
    drawn = str(MACROS.player("p", player_data(seen, data, {0: HOSTILE})))
    assert Elements(drawn).open == []
    assert drawn.count("<script") == drawn.count("</script") == 1


def test_large_and_three_dimensional_fields_are_thinned() -> None:
    array = np.random.default_rng(0).normal(size=(1, 130, 1, 200, 4, 6)).astype(np.float32)
    data = Trajectories.from_array(array, lengths=[1.0] * 3)
    state = data.read([0]).state
    payload = player_data(Examples((0,), state, state[:, 10:], tuple(data.times.tolist())), data, {})
    assert payload["grid"] == [100, 4]
    assert (len(payload["times"]), payload["input_frames"], len(payload["lengths"])) == (65, 5, 2)
    codes = np.frombuffer(base64.b64decode(payload["values"][0]["truth"][0]), "<u2")
    assert codes.size == 65 * 400


def test_a_picture_holds_a_light_and_a_dark_figure_the_same_every_time() -> None:
    def draw() -> Figure:
        return error_bands([1.0, 2.0], {"a": Band([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])})

    made = str(MACROS.figure(picture(draw, HOSTILE, caption=HOSTILE)))
    assert made == str(MACROS.figure(picture(draw, HOSTILE, caption=HOSTILE)))
    (_, source), (_, image) = (element for element in Elements(made).seen if element[0] in ("source", "img"))
    light, night = (base64.b64decode(value.partition(",")[2]) for value in (image["src"], source["srcset"]))
    assert light.lstrip().startswith(b"<?xml")
    assert b"#56b4e9" in night.lower()
    assert b"#56b4e9" not in light.lower()
    assert "<script>alert" not in made
    assert image["style"] == "max-width: 767px"
    assert encode(draw(), "png").startswith("data:image/png;base64,iVBOR")


def test_values_beyond_the_range_stop_at_its_ends_and_holes_are_marked() -> None:
    codes = quantised(np.array([-9.0, 0.0, 9.0, np.nan, np.inf]), -1.0, 1.0)
    assert codes.tolist() == [0, 32767, NOT_FINITE - 1, NOT_FINITE, NOT_FINITE]


def test_forecasts_that_explode_can_be_reported(runs) -> None:
    run = open_run(runs[0])
    evaluation = evaluate(runs[0])
    for parameter in run.forecaster.model.head.parameters():
        parameter.data.fill_(torch.inf)
    means = {**evaluation.scores.means, "rel_l2": float("inf")}
    scores = type(evaluation.scores)(**{**vars(evaluation.scores), "means": means})
    broken = type(evaluation)(**{**vars(evaluation), "scores": scores})
    page = build_page([gather(run, run.load("test"), broken)])
    assert "did not stay finite" in page
    assert '"errors":[[0.0,0.0,0.0,0.0,null' in page


def test_mistakes_are_named(runs, capsys) -> None:
    with pytest.raises(ValueError, match="`reports` is empty: a page needs at least one run"):
        build_page([])
    with pytest.raises(ValueError, match="`errors` is empty: no trajectory was scored"):
        typical([])
    assert list(typical([3.0, 1.0, 2.0])) == [2, 1, 0]
    assert typical([1.0])[0].startswith("median")
    for words, message in (
        ([], "give the folder of at least one run"),
        ([str(runs[0]), "--ensemble"], "needs at least 2"),
    ):
        with pytest.raises(SystemExit):
            main(["report", *words])
        assert message in capsys.readouterr().err


def test_a_page_replaces_an_earlier_page_and_nothing_else(runs, tmp_path, capsys) -> None:
    for _ in range(2):
        main(["report", str(runs[0]), "--out", str(tmp_path / "page.html")])
    (tmp_path / "mine.html").write_text("<html>my own page</html>")
    for file in (runs[0].parent / "waves.npy", tmp_path / "mine.html"):
        before = file.read_bytes()
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(runs[0]), "--out", str(file)])
        assert stopped.value.code == 2
        assert "is not a page that ssno wrote, so `--out` does not replace it" in capsys.readouterr().err
        assert file.read_bytes() == before


def test_a_page_about_several_runs_leaves_their_own_pages_alone(runs) -> None:
    from ssno.report.make import default_path

    opened = [open_run(run) for run in runs[:2]]
    first, second = (Path(run).name for run in runs[:2])
    assert default_path(opened[:1]) == Path(runs[0]) / "report.html"
    assert default_path(opened) == Path(runs[0]).parent / f"report-{first}-{second}.html"
    assert default_path(opened * 2) == Path(runs[0]).parent / f"report-{first}-and-3-more.html"


def test_spectra_between_walls_run_along_the_periodic_axes() -> None:
    y = 2 * np.pi * np.arange(16) / 16
    array = np.broadcast_to(np.sin(3 * y), (2, 4, 1, 5, 16)).astype(np.float32)
    channel = Trajectories.from_array(array, lengths=[1.0, 2 * np.pi], dt=0.5, periodic=[False, True])
    wavenumbers, energy = mean_spectrum(torch.from_numpy(array.copy()), channel)
    assert no_spectrum(channel) == ""
    assert wavenumbers.tolist() == pytest.approx(list(range(9)))
    assert energy.argmax(1).tolist() == [3] * 4
    torch.testing.assert_close(energy.sum(1), torch.full((4,), 0.5, dtype=energy.dtype))
    box = Trajectories.from_array(array, lengths=[1.0, 1.0], dt=0.5, periodic=False)
    assert no_spectrum(box) == "No energy spectra: no axis is periodic."
    assert "regular grid" in no_spectrum(replace(channel, geometry=SPHERE))
    assert "masked points" in no_spectrum(replace(channel, mask="solid", context_fields=("solid",)))


def test_the_report_says_how_long_the_training_waited_for_frames() -> None:
    lines = [{"read_mb_per_s": rate, "waited": share} for rate, share in ((50.0, 0.9), (120.0, 0.25), (100.0, 0.2))]
    assert reading(lines) == " Frames were read at 100 MB/s, and the training waited 25% of the time (median epoch)."
    assert reading([{"train_loss": 0.1}]) == "", "all was in memory"
