"""Verdicts follow the data: clear differences decide, overlapping seeds and single seeds do not."""

import math

import pytest

from ssno.paper.results import OPEN, below, fact, undecided


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
