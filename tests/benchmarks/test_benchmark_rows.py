"""Stored benchmark rows: written and read back, compared with new ones, shown as tables and pictures."""

from dataclasses import replace

import pytest
import torch
from benchmarks.__main__ import main, run
from benchmarks.catalogue import catalogue, chosen
from benchmarks.entry import Entry, TimedCall, Unavailable
from benchmarks.figures import draw
from benchmarks.growth import SWEEPS
from benchmarks.measure import Row
from benchmarks.rows import merged, read, slow_downs, with_origin, write
from benchmarks.tables import BEGIN, END, refresh, tables

ROW = Row(
    entry="training-step-1d-n64",
    contestant="fused",
    reference="listing",
    ms=10.0,
    ms_lower=9.5,
    ms_upper=10.5,
    rounds=7,
    ratio=5.0,
    ratio_lower=4.8,
    ratio_upper=5.2,
    error=1e-6,
    gflop_per_s=100.0,
    peak_gflop_per_s=300.0,
    fraction=1 / 3,
    exponent=None,
    goal=">= 4.5x",
    met=True,
    threads=2,
)


def at(ratio: float, *, spread: float = 0.04) -> Row:
    return replace(ROW, ratio=ratio, ratio_lower=ratio * (1 - spread), ratio_upper=ratio * (1 + spread))


def test_rows_survive_the_disk_with_their_origin(tmp_path) -> None:
    write(tmp_path / "deep" / "rows.csv", with_origin([ROW, replace(ROW, met=None, fraction=None, goal="")]))
    first, second = read(tmp_path / "deep" / "rows.csv")
    assert {name: first[name] for name in vars(ROW)} == vars(ROW)
    assert (second["met"], second["fraction"], second["goal"]) == (None, None, "")
    assert first["commit"]
    assert first["processor"]
    assert first["torch"]
    assert first["date"].startswith("20")


def test_no_file_means_no_rows_and_a_foreign_file_is_refused(tmp_path) -> None:
    assert read(tmp_path / "absent.csv") == []
    (tmp_path / "foreign.csv").write_text("entry,ms\na,1\n")
    with pytest.raises(ValueError, match=r"foreign.csv has no column contestant, .*: it was not written by this"):
        read(tmp_path / "foreign.csv")


def test_a_slow_down_is_flagged_by_its_ratio(tmp_path) -> None:
    stored = with_origin([at(5.0)])
    (line,) = slow_downs(stored, [at(4.0)])
    assert line.startswith("slower: training-step-1d-n64, fused: 5.00x listing before (commit ")
    assert line.endswith("4.00x now")


@pytest.mark.parametrize(
    "now",
    [at(4.7), at(6.0), at(4.0, spread=0.5), replace(at(1.0), entry="another"), replace(at(1.0), contestant="listing")],
    ids=["within tolerance", "faster", "too noisy to tell", "never stored", "the reference itself"],
)
def test_noise_and_new_entries_are_not_flagged(now: Row) -> None:
    assert slow_downs(with_origin([at(5.0)]), [now]) == []


def test_a_slower_machine_is_no_slow_down() -> None:
    stored = with_origin([ROW])
    assert slow_downs(stored, [replace(ROW, ms=100.0, ms_lower=95.0, ms_upper=105.0)]) == []


def test_measured_entries_replace_stored_ones_and_others_stay() -> None:
    old = with_origin([ROW, replace(ROW, entry="other")])
    new = with_origin([at(6.0)])
    assert [(row["entry"], row["ratio"]) for row in merged(old, new)] == [("other", 5.0), (ROW.entry, 6.0)]


def test_a_table_names_case_ratio_goal_and_origin() -> None:
    listing = replace(ROW, contestant="listing", ratio=1.0, goal="", met=None, fraction=0.1)
    text = tables(with_origin([listing, ROW, replace(ROW, contestant="pytorch", met=False)], load=0.54))
    assert "## Training step against the paper's listing" in text
    assert "| 1d-n64 | fused | 10 ±5 % | listing | 5 (4.8 to 5.2) | 33 % | >= 4.5x | yes |" in text
    assert "**no** |" in text
    assert "| 1d-n64 | listing | 10 ±5 % |  |  | 10 % |  |  |" in text
    assert "2 threads" in text
    assert "load before the run 0.5." in text
    assert "load before the run not recorded." in tables([{**row, "load": ""} for row in with_origin([ROW])])
    assert "GEMM peak in the same rounds: 300 to 300 GFLOP/s." in text


def test_every_sweep_and_the_frames_are_drawn(tmp_path) -> None:
    sweeps = [
        replace(
            ROW,
            entry=f"growth-with-{name}",
            contestant=str(size),
            ms=size,
            ms_lower=0.9 * size,
            ms_upper=1.1 * size,
            exponent=1.0,
        )
        for name, (_, sizes) in SWEEPS.items()
        for size in sizes
    ]
    frames = [
        replace(ROW, entry=f"frame-n{n}-b1", contestant=model, ms=n * 0.1)
        for n in (32, 64)
        for model in ("ssno", "fno")
    ]
    assert draw(with_origin([ROW]), tmp_path) == []
    drawn = draw(with_origin([*sweeps, *frames]), tmp_path)
    assert [path.name for path in drawn] == ["performance-growth.png", "performance-frame.png"]
    assert all(path.stat().st_size > 10_000 for path in drawn)


@pytest.fixture(autouse=True)
def quick_peak(monkeypatch) -> None:
    monkeypatch.setattr("benchmarks.__main__.gemm_peak", lambda threads: 100.0 * threads)


def made_up(answer: float, *, name: str = "made up") -> Entry:
    tasks = {
        "reference": TimedCall(lambda: torch.ones(1)),
        "ours": TimedCall(lambda: torch.tensor([answer]), expected=lambda: torch.ones(1)),
    }
    return Entry(what=name, sizes={}, build=lambda: tasks, reference="reference", seconds=0.0)


def unavailable() -> Entry:
    def build() -> dict[str, TimedCall]:
        raise Unavailable("Set THIS to that.")

    return Entry(what="far away", sizes={}, build=build, reference="reference")


def test_a_run_keeps_rows_reports_errors_and_goes_on(tmp_path, capsys) -> None:
    out, baseline = tmp_path / "rows.csv", tmp_path / "baseline.csv"
    entries = [unavailable(), made_up(2.0, name="wrong one"), made_up(1.0)]
    assert run(entries, out=out, baseline=baseline, replace=True) == 1
    printed = capsys.readouterr().out
    assert "far-away: left out. Set THIS to that." in printed
    assert "wrong: wrong-one: 'ours' differs" in printed
    assert "made-up  ours:" in printed
    assert [row["entry"] for row in read(out)] == [row["entry"] for row in read(baseline)] == ["made-up"] * 2
    assert run([made_up(1.0)], out=out, baseline=tmp_path / "none.csv", replace=False) == 0
    assert not (tmp_path / "none.csv").exists()


def test_a_run_fails_when_something_became_slower(tmp_path, capsys) -> None:
    baseline = tmp_path / "baseline.csv"
    fast = replace(at(1e6), entry="made-up", contestant="ours", reference="reference")
    write(baseline, with_origin([fast]))
    assert run([made_up(1.0)], out=tmp_path / "rows.csv", baseline=baseline, replace=False) == 1
    assert "slower: made-up, ours: 1000000.00x reference before" in capsys.readouterr().out


def test_names_are_listed_and_chosen_by_any_part(capsys) -> None:
    main(list_names=True)
    names = capsys.readouterr().out.split()
    assert len(names) == len(set(names)) == len(catalogue())
    assert [entry.name for entry in chosen(catalogue(), ("ks", "n32-b1"))] == [
        "frame-n32-b1",
        "ks-and-exponax-n512-steps500",
        "ks-and-radau-n512-steps500",
    ]
    with pytest.raises(ValueError, match="No benchmark has 'nothing' in its name. There are: training-step-1d-n32"):
        chosen(catalogue(), ("nothing",))


def test_stored_rows_are_shown_as_tables_and_pictures(tmp_path, capsys) -> None:
    write(tmp_path / "baseline.csv", with_origin([ROW, replace(ROW, entry="frame-n32-b1", contestant="ssno")]))
    main(table=True, baseline=tmp_path / "baseline.csv")
    assert "| 1d-n64 | fused |" in capsys.readouterr().out
    page = tmp_path / "design" / "page.md"
    page.parent.mkdir()
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        main(page=page, baseline=tmp_path / "baseline.csv")
        text = page.read_text()
        assert text.startswith(f"before\n{BEGIN}\n\n## Training step")
        assert text.endswith(f"\n{END}\nafter\n")
        assert "old" not in text
    assert (tmp_path / "images" / "performance-frame.png").exists()


@pytest.mark.parametrize("text", ["nothing", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"])
def test_a_page_without_marks_is_refused(tmp_path, text: str) -> None:
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(ValueError, match="page.md needs the lines <!-- tables .* and <!-- end of tables -->, once"):
        refresh(tmp_path / "page.md", with_origin([ROW]))
