"""The runner of campaigns: what it counts, how it goes on, what a crash costs; and a small piece of every part."""

import json
import os
import signal
import time
from pathlib import Path

from verify.campaign import Part, Unavailable, read_record, run_part
from verify.page import lines


def trial(number: int, place: Path) -> dict[str, int]:
    """Some fail, crash, hang or are left out; the others write a file."""
    (place / "file").write_text("x")
    if number == 2:
        raise ValueError("two is odd")
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        time.sleep(60)
    if number == 6:
        raise Unavailable("no GPU")
    return {"files": 2}


PART = Part("example", "Examples.", trial, goal=9, batch=3, seconds=2.0)


def test_every_trial_is_counted_once_whatever_happens_to_others(tmp_path: Path) -> None:
    record = run_part(PART, results=tmp_path)
    assert (record.trials, record.complete) == (9, True)
    assert record.counts == {"files": 10, "failed": 3, "left out: no GPU": 1}
    errors = {failure["number"]: failure["error"] for failure in record.failures}
    assert errors.keys() == {2, 4, 5}
    assert "two is odd" in errors[2]
    assert "ended without a word" in errors[4]
    assert errors[5] == "took too long"
    assert read_record(PART, tmp_path) == record


def test_a_stopped_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    fine = Part("fine", "Fine.", lambda number, place: {"number": number}, goal=5)
    first = run_part(fine, results=tmp_path, seconds=0.0)
    assert (first.trials, first.complete) == (1, False)
    assert "unfinished" in "\n".join(lines([(fine, first)]))
    whole = run_part(fine, results=tmp_path)
    assert (whole.trials, whole.counts["number"], len(whole.pieces)) == (5, 10, 2)
    stored = json.loads((tmp_path / "fine.json").read_text())
    assert {"date", "commit", "processor", "torch", "seconds"} <= stored["pieces"][0].keys()


def test_a_mended_failure_is_shown_as_mended(tmp_path: Path) -> None:
    broken = Part("part", "It fails.", lambda number, place: 1 // number, goal=1)  # type: ignore[arg-type,return-value]
    assert run_part(broken, results=tmp_path).counts["failed"] == 1
    mended = Part("part", "It works.", lambda number, place: {}, goal=1)
    record = run_part(mended, results=tmp_path, numbers=[0])
    assert record.counts == {"failed, then mended": 1}
    assert record.failures == []
    assert "| 0 | 1 |" in "\n".join(lines([(mended, record)]))


def test_a_goal_may_be_one_of_the_counts(tmp_path: Path) -> None:
    part = Part("kills", "Kills.", lambda number, place: {"kills": 3}, goal=10, unit="kills")
    record = run_part(part, results=tmp_path)
    assert (record.trials, record.done) == (4, 12)
