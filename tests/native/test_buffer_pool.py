"""Memory of large results belongs to one process, and is found on any kernel."""

import os

import pytest
import torch

from ssno.base.device import threads
from ssno.native import operations as pool


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch) -> None:
    monkeypatch.setattr(pool, "_free", {})


def test_a_forked_process_writes_to_a_copy() -> None:
    mine = pool.pooled_empty(2**19, like=torch.zeros(1)).fill_(5.0)
    with threads(1):  # a forked process has none of PyTorch's threads, and waits for them for ever if it needs them
        child = os.fork()
        if child == 0:
            mine.mul_(100.0)
            os._exit(int(mine[0].item() != 500.0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert mine.unique().tolist() == [5.0]


def test_memory_is_used_again() -> None:
    first = pool.pooled_empty(2**19, like=torch.zeros(1))
    place = first.data_ptr()
    del first
    assert pool.pooled_empty(2**19, like=torch.zeros(1)).data_ptr() == place


def test_a_kernel_without_huge_pages_gives_small_ones(monkeypatch) -> None:
    class Refusing(pool.mmap.mmap):
        def madvise(self, *arguments: int) -> None:
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(pool.mmap, "mmap", Refusing)
    assert pool.pooled_empty(2**19, like=torch.zeros(1)).fill_(1.0).sum() == 2**19
