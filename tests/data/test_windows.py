"""Given, predicted and counted frames of every protocol."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssno.data.windows import Window, context_at_steps, next_frames, sliding_windows

PROTOCOLS = ("first_k", "memno", "fno", "ffno")


def test_the_default_gives_four_frames_and_predicts_the_rest_as_the_paper_counts_them() -> None:
    for frames, steps in ((26, 22), (20, 16), (11, 7)):  # KS, Burgers and the tori, CE-RM and GCE-RT
        plan = Window().plan(frames)
        assert list(plan.input_frames) == [0, 1, 2, 3]
        assert len(plan.predicted) == steps
        assert plan.start == 3


def test_memno_starts_from_one_frame_and_counts_every_slot() -> None:
    plan = Window("memno").plan(26)
    assert (list(plan.input_frames), len(plan.predicted), plan.loss_steps) == ([0], 25, range(25))


def test_fno_takes_ten_frames_to_ten_frames() -> None:
    plan = Window("fno").plan(20)
    assert (plan.input_frames, plan.predicted, plan.loss_steps) == (range(10), range(10, 20), range(9, 19))


def test_ffno_rolls_out_the_last_ten_frames_from_frame_t_minus_11_and_trains_on_all_pairs() -> None:
    plan = Window("ffno", size=1).plan(20)
    assert (plan.input_frames, plan.start, plan.predicted) == (range(9, 10), 20 - 11, range(10, 20))
    assert plan.loss_steps == range(19)


def test_ce_rm_frames_0_2_4_6_predict_8_to_20() -> None:
    stored = list(range(21))[0::2]
    plan = Window().plan(len(stored))
    assert [stored[i] for i in plan.input_frames] == [0, 2, 4, 6]
    assert [stored[i] for i in plan.predicted] == [8, 10, 12, 14, 16, 18, 20]


@given(
    protocol=st.sampled_from(PROTOCOLS),
    size=st.integers(0, 20),
    frames=st.integers(21, 60),
    score_last=st.none() | st.integers(1, 80),
)
def test_given_frames_are_never_counted_as_predictions(protocol, size, frames, score_last) -> None:
    window = Window(protocol, size, score_last=score_last)
    try:
        plan = window.plan(frames)
    except ValueError:
        assert protocol == "ffno"
        assert frames < size + 10
        return
    assert not set(plan.input_frames) & set(plan.predicted)
    assert set(plan.scored) <= set(plan.predicted)
    assert plan.predicted.start == plan.start + 1
    assert plan.predicted.stop <= frames
    assert all(0 <= slot < frames - 1 for slot in plan.loss_steps)
    if protocol in ("first_k", "memno", "fno"):
        assert [slot + 1 for slot in plan.loss_steps] == list(plan.predicted)


def test_windows_without_memory_see_one_frame() -> None:
    assert Window(size=0).plan(10) == Window(size=1).plan(10)


def test_score_last_compares_different_windows_on_the_same_frames() -> None:
    scored = {Window(size=size, score_last=6).plan(26).scored for size in range(21)}
    assert scored == {range(20, 26)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"protocol": "first-k"}, "`protocol` must be one of"),
        ({"size": -1}, "`size` of the window must be at least 0, got -1"),
        ({"input_frames": 0}, "`input_frames` must be at least 1"),
        ({"horizon": 0}, "`horizon` must be at least 1"),
        ({"score_last": 0}, "`score_last` must be at least 1"),
    ],
)
def test_impossible_windows_are_refused(as_users_call_it, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Window(**arguments)


@pytest.mark.parametrize(("protocol", "needed"), [("first_k", 5), ("memno", 2), ("fno", 20), ("ffno", 14)])
def test_too_short_trajectories_are_refused_with_the_length_needed(protocol, needed) -> None:
    window = Window(protocol)
    assert window.plan(needed)
    with pytest.raises(ValueError, match=f"at least {needed} frames, these have {needed - 1}"):
        window.plan(needed - 1)


def test_context_reaches_a_slot_at_its_own_or_at_its_target_time() -> None:
    state = torch.arange(5.0).reshape(1, 5, 1, 1)
    slots, targets = state[:, :-1], next_frames(state)
    assert torch.equal(context_at_steps(state, "input"), slots)
    assert torch.equal(context_at_steps(state, "target"), targets)


def test_an_unknown_alignment_is_refused(as_users_call_it) -> None:
    with pytest.raises(ValueError, match="`context_time` must be one of"):
        context_at_steps(torch.zeros(1, 5, 1, 1), "later")


def test_sliding_windows_are_views_of_neighbouring_frames() -> None:
    frames = torch.arange(2 * 6 * 2 * 3.0).reshape(2, 6, 2, 3)
    windows = sliding_windows(frames, 4)
    assert windows.shape == (2, 3, 4, 2, 3)
    assert all(torch.equal(windows[:, w], frames[:, w : w + 4]) for w in range(3))
    assert windows.data_ptr() == frames.data_ptr()
    with pytest.raises(ValueError, match="`size` must be between 1 and 6 frames, got 7"):
        sliding_windows(frames, 7)
