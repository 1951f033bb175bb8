"""Fields in pieces, held by several processes: forecasts, losses, gradients and trainings of one process."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.layers.mesh_cases import take_part, trained

from ssno.layers.space import (
    MACHINES,
    AxisScan,
    AxisShare,
    Machine,
    MeshShape,
    ScanCost,
    SpaceMesh,
    choose,
    choose_split,
    costs,
    factorisations,
)
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log

CASES = Path(__file__).with_name("mesh_cases.py")


def together(size: int, chosen: str, folder: Path, monkeypatch) -> list:
    """Take part in what so many processes do; this one is the first."""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "")
    with ExitStack() as held:
        unused = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        monkeypatch.setenv("PORTS", " ".join(str(one.getsockname()[1]) for one in unused))
    monkeypatch.setenv("WORLD_SIZE", str(size))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    words = [sys.executable, str(CASES), str(size), chosen, str(folder)]
    started = [subprocess.Popen(words, env={**os.environ, "RANK": str(rank)}) for rank in range(1, size)]
    monkeypatch.setenv("RANK", "0")
    try:
        found = take_part(size, chosen, folder)
        assert [process.wait(60) for process in started] == [0] * (size - 1)
    finally:
        for process in started:
            process.kill()
        monkeypatch.delenv("RANK")
    return found


def test_two_processes_that_share_fields_compute_and_train_as_one(tmp_path, monkeypatch) -> None:
    """One spawn for all: scans in 1D, 2D and 3D, then a training whose loss has everything."""
    for case, _, found in together(2, "few", tmp_path, monkeypatch):
        assert max(found.get("forward", 0), found.get("loss", 0), found["gradient"]) < 1e-6, (case, found)
        assert found["worst"] < max(1e-6, 3 * found["rounding"]), (case, found)
        assert found.get("share", 0) < 0.51
    trained(tmp_path / "one", None)
    one = read_log(tmp_path / "one")
    assert len([line for line in one if line["kind"] == "step"]) == 4
    for other in ("two", "sharded"):
        for ours, theirs in zip(one, read_log(tmp_path / other), strict=True):
            numbers = {name for name, value in ours.items() if isinstance(value, float)} - {"seconds"}
            np.testing.assert_allclose([theirs[n] for n in numbers], [ours[n] for n in numbers], rtol=2e-5)
        tensors = [load_checkpoint(tmp_path / name / "last")[0] for name in ("one", other)]
        assert {n: v.shape for n, v in tensors[0].items()} == {n: v.shape for n, v in tensors[1].items()}
        trained(tmp_path / other, None, resume=True)  # the checkpoint is that of one process


@pytest.mark.verify
@pytest.mark.parametrize("size", [2, 4])
def test_every_boundary_and_block_in_pieces_is_that_of_one_process(tmp_path, monkeypatch, size) -> None:
    for case, dtype, found in together(size, "all", tmp_path, monkeypatch):
        exact = dtype == torch.float64
        # The layer normalisation of a parallel block divides by small deviations: float32 gives 1.1e-6 there.
        most = 1e-13 if exact else 2e-6 if case[0] == "parallel" else 1e-6
        assert max(found.get("forward", 0), found.get("loss", 0), found["gradient"]) < most, (case, found)
        # Of single parameters float32 knows no more: one process is as far from its own gradient in float64.
        assert found["worst"] < (1e-12 if exact else max(1e-6, 3 * found["rounding"])), (case, found)


@pytest.mark.parametrize("text", ["", "data=2", "space=0", "space=2y2", "space=2,data=2", "data=2;space=2"])
def test_a_mesh_is_named_in_one_form(text, as_users_call_it) -> None:
    with pytest.raises(ValueError, match=r"`mesh` must be of the form data=2,space=2"):
        MeshShape.parse(text)
    assert MeshShape.parse("data=2,space=2x3") == MeshShape(2, (2, 3))
    assert str(MeshShape.parse("space=4")) == "data=1,space=4"
    assert MeshShape(2, (2, 3)).processes == 12


def axis(points: int, *, boundary="periodic", modes: int = 32, carries: bool = True) -> AxisScan:
    return AxisScan(points, boundary, modes, 2, carries)


def test_few_modes_on_long_axes_are_carried_and_other_axes_turned() -> None:
    machine = MACHINES["cpu"]
    assert choose(axis(64), 4, machine)[0] == "turned"
    assert choose(axis(1024, boundary="zero", modes=4), 2, machine)[0] == "carried"
    assert choose(axis(1024, boundary="zero", modes=4, carries=False), 2, machine)[0] == "turned"
    assert choose(axis(64), 1, machine)[0] == "whole"


def test_axes_are_split_where_it_costs_least() -> None:
    machine = MACHINES["cpu"]
    assert factorisations(4, 2) == [(4, 1), (2, 2), (1, 4)]
    assert choose_split([axis(64), axis(64)], (4,), machine) == (4, 1)
    assert choose_split([axis(6), axis(64)], (4,), machine) == (1, 4)
    assert choose_split([axis(64), axis(64)], (2, 2), machine) == (2, 2)


def test_pieces_that_do_not_fit_are_refused(as_users_call_it) -> None:
    with pytest.raises(ValueError, match="the grid 9 x 15 cannot be cut into 4 equal pieces"):
        choose_split([axis(9), axis(15)], (4,), MACHINES["cpu"])
    with pytest.raises(ValueError, match=r"names pieces along 3 axes \(2x2x1\), but the grid 8 x 8 has 2"):
        choose_split([axis(8), axis(8)], (2, 2, 1), MACHINES["cpu"])


def test_a_field_that_falls_into_no_equal_pieces_is_refused(as_users_call_it) -> None:
    space = object.__new__(SpaceMesh)
    space.parts, space.shares = (1, 2), (None, AxisShare(None, 2, 1))
    assert space.cut(torch.arange(8).view(2, 4)).tolist() == [[2, 3], [6, 7]]
    with pytest.raises(ValueError, match="`mesh`: 5 points along axis 1 cannot be cut into 2 equal pieces"):
        space.cut(torch.zeros(2, 5))


def test_the_cost_of_states_falls_with_the_length_of_pieces_and_that_of_turning_does_not() -> None:
    short, long = costs(axis(512), 2), costs(axis(2048), 2)
    assert short["carried"].sent == 4 * long["carried"].sent == 2 * 1 * 2 * 64 / 256
    assert short["turned"].sent == long["turned"].sent == 2
    assert costs(axis(512, boundary="zero"), 2)["carried"].sent == short["carried"].sent / 2
    assert ScanCost(2.0, 3.0, 4.0, 5.0).seconds(Machine(2.0, 3.0, 4.0, 5.0)) == 4
    assert costs(axis(256), 1)["whole"] == ScanCost(products=3 * 2 * 256)
    assert costs(axis(512), 1)["whole"] == ScanCost(transforms=3 * 3 * 2.5 * 9 / 2)
