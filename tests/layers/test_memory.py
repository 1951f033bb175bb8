"""Temporal memory: causal, windowed, and the same however it is computed."""

import pytest
import torch

from ssno.layers.memory import TemporalMemory


@pytest.mark.parametrize(("window", "kernel"), [(1, "s4d"), (3, "s4d"), (4, "s4d"), (9, "s4d"), (1, "s4"), (4, "s4")])
def test_whole_trajectory_sliding_windows_and_streaming_agree(window, kernel) -> None:
    memory = TemporalMemory(3, window=window, d_state=6, kernel=kernel)
    features = torch.randn(2, 6, 3, 5)  # b t h x
    whole = memory(features)
    for slot in range(6):
        recent = features[:, max(0, slot + 1 - window) : slot + 1]
        torch.testing.assert_close(memory(recent)[:, -1], whole[:, slot], atol=1e-5, rtol=1e-5)
        buffer = recent.transpose(0, 1).movedim(2, 1)  # k h b x
        torch.testing.assert_close(memory.newest(buffer), whole[:, slot].movedim(1, 0), atol=1e-5, rtol=1e-5)


def test_memory_ignores_the_future() -> None:
    memory = TemporalMemory(3, window=4, d_state=6)
    features = torch.randn(2, 6, 3, 5)
    changed = features.clone()
    changed[:, 4:] += 1
    torch.testing.assert_close(memory(changed)[:, :4], memory(features)[:, :4], atol=0, rtol=0)


def test_memory_forgets_what_is_older_than_its_window() -> None:
    memory = TemporalMemory(3, window=2, d_state=6)
    features = torch.randn(2, 6, 3, 5)
    changed = features.clone()
    changed[:, :3] += 1
    torch.testing.assert_close(memory(changed)[:, 4:], memory(features)[:, 4:], atol=1e-6, rtol=1e-6)
    assert (memory(changed)[:, 3] - memory(features)[:, 3]).abs().max() > 1e-4


def test_a_window_as_long_as_the_trajectory_is_the_whole_s4d_block() -> None:
    memory = TemporalMemory(3, window=6, d_state=6)
    features = torch.randn(2, 6, 3, 5)
    lines = features.permute(0, 3, 2, 1).flatten(0, 1)  # (b x) h t
    expected = memory.block(lines).unflatten(0, (2, 5)).permute(0, 3, 2, 1)
    torch.testing.assert_close(memory(features), expected, atol=1e-5, rtol=1e-5)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="`window` must be at least 1, got 0. For a model without memory"):
        TemporalMemory(3, window=0)
