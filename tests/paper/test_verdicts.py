"""Verdicts follow the data: clear differences decide, overlapping seeds and single seeds do not."""

import math
import shutil
from pathlib import Path

import pytest

from ssno.paper.page import answer, count_answers, sentence, survivors, with_holm, write_pages
from ssno.paper.results import NO_SKILL, OPEN, SPOKEN, below, fact, undecided


def test_a_clearly_smaller_error_makes_the_claim_hold() -> None:
    verdict = below("a below b", [0.10, 0.11, 0.105], [0.20, 0.21, 0.19])
    assert verdict.answer == "holds"
    assert "0.105 ± 0.005 against 0.2 ± 0.01: 1.9 times" in verdict.evidence


def test_a_clearly_larger_error_makes_it_fail() -> None:
    assert below("a below b", [0.20, 0.21, 0.19], [0.10, 0.11, 0.105]).answer == "does not hold"


def test_overlapping_seeds_decide_nothing() -> None:
    assert below("a below b", [0.1, 0.3, 0.2], [0.15, 0.35, 0.2]).answer == OPEN


def test_pairs_decide_what_a_common_spread_hides() -> None:
    with_it, without = [0.10, 0.20, 0.30], [0.107, 0.215, 0.322]
    assert below("a below b", with_it, without).answer == OPEN
    assert below("a below b", with_it, without, paired=True).answer == "holds"
    assert below("a below b", without, with_it, paired=True).answer == "does not hold"
    assert below("a below b", [0.1], [0.2], paired=True).answer == OPEN


def test_one_seed_decides_nothing() -> None:
    assert "one seed has no spread" in below("a below b", [0.1], [0.9]).evidence


@pytest.mark.parametrize(("factor", "answer"), [(5.0, "holds"), (20.0, "does not hold")])
def test_a_factor_is_part_of_the_claim(factor: float, answer: str) -> None:
    assert below("far below", [0.010, 0.0101, 0.0099], [0.1, 0.101, 0.099], factor=factor).answer == answer


def test_a_diverged_competitor_loses_but_a_diverged_champion_decides_nothing() -> None:
    assert below("a below b", [0.1, 0.1], [math.inf, 0.2]).answer == "holds"
    assert below("a below b", [math.inf, 0.1], [0.2, 0.2]).answer == OPEN


def test_facts_and_reservations() -> None:
    computed = fact("equal", True, "1e-15 apart")
    assert computed.answer == "holds"
    assert undecided(computed, "too short").answer == OPEN
    assert undecided(computed, "too short").evidence == "1e-15 apart; too short"


LOW, HIGH = [0.10, 0.11, 0.105], [0.20, 0.21, 0.19]


@pytest.mark.parametrize(
    ("trivial", "answer"),
    [
        ((0.05, 0.05), NO_SKILL),  # a forecast without learning is better than both
        ((0.15, 0.15), "holds"),  # better than one of them only
        ((0.05, 0.3), "holds"),  # each side on its own data
        ((0.05, None), "holds"),  # not known for both
        ((None, None), "holds"),
    ],
)
def test_where_both_lose_to_a_trivial_forecast_nobody_wins(trivial, answer: str) -> None:
    verdict = below("a below b", LOW, HIGH, trivial=trivial)
    assert verdict.answer == answer
    assert ("a trivial forecast has 0.05" in verdict.evidence) == (answer == NO_SKILL)
    assert verdict.p == below("a below b", LOW, HIGH).p


def test_two_that_diverge_are_without_skill() -> None:
    assert below("a below b", [math.inf, 0.1], [math.inf, 0.2], trivial=(0.3, 0.3)).answer == NO_SKILL


def test_tests_of_one_finding_are_corrected_together() -> None:
    verdicts = [
        {"claim": "a", "answer": "holds", "evidence": "", "p": 0.01},
        {"claim": "b", "answer": "holds", "evidence": "1 against 2: 2 times, p = 0.04"},  # of before p was a number
        {"claim": "c", "answer": "holds", "evidence": "computed", "p": None},
        {"claim": "d", "answer": OPEN, "evidence": "", "p": 0.5},
        {"claim": "e", "answer": NO_SKILL, "evidence": "", "p": 6e-6},
    ]
    corrected = with_holm(verdicts)
    assert [v["holm"] for v in corrected] == pytest.approx([0.03, 0.08, None, 0.5, 2.4e-5])
    found = {"verdicts": corrected, "experiment": "x", "scale": "cpu", "published": "Nothing.", "settings": {}}
    assert survivors(found) == (1, 2)
    assert dict(zip(SPOKEN.values(), count_answers(found), strict=True)) == {
        "hold": 3,
        "do not hold": 0,
        "not decidable": 1,
        "without skill": 1,
    }
    assert sentence(found) == (
        "**3 of 5 claims hold**, 1 not decidable at this scale, 1 both without skill (`x`, scale cpu). 1 of 2 decided "
        "by a test stay so after Holm's correction. The paper: Nothing."
    )


def finding(answers: list[tuple[str, float | None]], *, name: str = "x", scale: str = "cpu") -> dict:
    verdicts = [{"claim": "a", "answer": answer, "evidence": "", "p": p} for answer, p in answers]
    return {"experiment": name, "scale": scale, "verdicts": with_holm(verdicts)}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ([finding([("holds", 0.01), ("holds", 0.02)])], ("holds", "medium: 2 of 2")),
        ([finding([("holds", 0.01), (OPEN, 0.2), (OPEN, 0.3)])], ("not decidable here", "none")),
        ([finding([("holds", 0.001), (OPEN, 0.3), ("does not hold", 0.04)])], ("holds in part", "medium: 1 of 2")),
        ([finding([("does not hold", 0.04), ("does not hold", 0.03)])], ("does not hold", "low: 0 of 2")),
        ([finding([("holds", None)])], ("holds", "high: computed")),
        ([finding([(OPEN, 0.3)]), finding([("holds", 0.01)], scale="tenth")], ("holds", "high: 1 of 1")),
        (
            [finding([("holds", 0.01)]), finding([(OPEN, None)], name="y", scale="tenth")],
            ("not decidable here", "none"),
        ),
    ],
)
def test_a_claim_of_the_paper_has_one_answer_from_the_longest_trainings(found: list[dict], told) -> None:
    said, confidence = answer({f"{number}": one for number, one in enumerate(found)})
    assert (said, confidence.startswith(told[1])) == (told[0], True)


def test_the_page_of_claims_is_what_the_stored_findings_say(tmp_path) -> None:
    root = Path(__file__).parents[2]
    evidence = tmp_path / "docs" / "evidence"
    shutil.copytree(root / "docs" / "evidence", evidence)
    shutil.copytree(root / "results" / "reproduce", tmp_path / "results" / "reproduce")
    write_pages(evidence, collected_from=tmp_path / "nothing")
    page = (evidence / "claims.md").read_text()
    assert page == (root / "docs" / "evidence" / "claims.md").read_text()
    assert page.count("\n## ") == page.count("Together: **") == 18
