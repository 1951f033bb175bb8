"""The formulas of docs/design/mesh.md are what is executed, at small size, and its table is what they give."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from docs.scripts.mesh_table import PAGE, need, with_table
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.flop_counter import FlopCounterMode

from ssno.layers.space import MeshShape, SpaceMesh, costs
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.native.engine import use


def test_the_table_is_what_the_formulas_give() -> None:
    page = PAGE.read_text()
    assert page.count("| 512 x 512 x 512 |") == 3
    assert with_table(page) == page


def small(grid: tuple[int, ...], **fields) -> SSNO:
    torch.manual_seed(0)
    return SSNO(SSNOConfig.tiny(n_dims=len(grid), coordinates=False, **{"boundary": "periodic", **fields}))


def kept(model: SSNO, frames: torch.Tensor) -> int:
    """Numbers in what the backward pass keeps."""
    storages = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with use("torch"), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(frames)
    return sum(storage.nbytes() for storage in storages.values()) // 4


@pytest.mark.parametrize(
    ("grid", "boundary"),
    [((24, 16), "periodic"), ((288,), "periodic"), ((288,), "zero"), ((288, 4, 6), "periodic")],
)
def test_memory_is_what_the_backward_pass_keeps(grid, boundary) -> None:
    model = small(grid, boundary=boundary)
    few, many = (kept(model, torch.randn(count, 4, 1, *grid)) for count in (8, 16))  # what is left out has no frames
    expected = need(model.config, model.axis_scans(grid), (1,) * len(grid)).saved
    assert (many - few) / 32 == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("grid", [(24, 16), (12, 8, 6)])
def test_products_are_those_of_a_step(grid: tuple[int, ...]) -> None:
    model = small(grid)
    counted = []
    for count in (8, 16):
        with use("torch"), FlopCounterMode(display=False) as counter:
            model(torch.randn(count, 4, 1, *grid)).sum().backward()
        counted.append(counter.get_total_flops())
    h, layers, out = model.config.hidden_channels, model.config.n_layers, model.config.head_channels + 1
    # Gradients of weights are added up in place (`addmm_`), which PyTorch's counter does not see.
    unseen = math.prod(grid) * (layers * len(grid) * h * 2 * 2 * h + h * out + 2 * h * h)
    expected = need(model.config, model.axis_scans(grid), (1,) * len(grid)).products - unseen
    assert (counted[1] - counted[0]) / 2 / 32 == pytest.approx(expected, rel=0.03)


@contextmanager
def pretended(size: int) -> Iterator[list[int]]:
    """One of so many processes that are not there: numbers sent to others, message by message."""
    sent, send = [], dist.all_to_all_single
    dist.init_process_group("fake", rank=0, world_size=size, store=FakeStore())

    def counting(out, given, received=None, sizes=None, group=None):
        sent.append(sum(sizes[1:]))
        return send(out, given, received, sizes, group=group)

    dist.all_to_all_single = counting
    try:
        yield sent
    finally:
        dist.all_to_all_single = send
        dist.destroy_process_group()


@pytest.mark.parametrize("way", ["turned", "carried"])
@pytest.mark.parametrize("boundary", ["periodic", "zero", "neumann"])
def test_as_many_numbers_are_sent_as_the_cost_says(way, boundary) -> None:
    grid, parts = (32, 8), 4
    model = small(grid, boundary=boundary)
    axes = model.axis_scans(grid)
    with pretended(parts) as sent:
        space = SpaceMesh(axes, shape=MeshShape(1, (parts, 1)), device=torch.device("cpu"))
        space.methods = (way, "whole")
        with space.inside(model):
            model(space.cut(torch.randn(2, 4, 1, *grid))).sum().backward()
    config, points = model.config, 8 * (32 // parts) * 8
    expected = config.n_layers * config.hidden_channels * points * costs(axes[0], parts)[way].sent
    assert sum(sent) == expected
    assert len(sent) == config.n_layers * (4 if way == "turned" else 2)
