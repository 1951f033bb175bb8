"""Kolmogorov flow by finite differences: conservation, closed forms, and the path through The Well's layout."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from benchmarks.unseen import Kolmogorov, make, table

from benchmarks import unseen
from ssno.data.load import load_dataset

QUIET = Kolmogorov(cells=32, stored=8, waves=0, viscosity=0.01, drag=0.0, step=0.01, warm_up=0.0)


def test_arakawas_jacobian_conserves_energy_and_enstrophy() -> None:
    w = QUIET.start(np.random.default_rng(0), 2)
    p = QUIET.stream(w)
    np.testing.assert_allclose(QUIET.laplacian(p), w, atol=1e-10)
    j = QUIET.jacobian(p, w)
    scale = np.abs(j).mean()
    assert scale > 0.01
    for kept in (p, w):
        assert np.abs((kept * j).mean(axis=(1, 2))).max() < 1e-12 * scale * np.abs(kept).max()


def test_vortices_of_taylor_and_green_decay_as_they_do_in_closed_form() -> None:
    errors = []
    for cells in (32, 64):
        flow = Kolmogorov(cells=cells, waves=0, viscosity=0.05, drag=0.1, step=0.01)
        x = (np.arange(cells) + 0.5) * flow.spacing
        w = (2 * np.cos(x)[:, None] * np.cos(x)[None, :])[None]
        exact = w * np.exp(-(2 * flow.viscosity + flow.drag))
        errors.append(np.abs(flow.advance(w, 1.0) - exact).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)  # second order
    assert errors[1] < 2e-4


def test_shear_alone_settles_where_forcing_and_friction_balance() -> None:
    flow = Kolmogorov(cells=32, waves=2, viscosity=0.1, drag=0.5, step=0.05)
    w = flow.advance(np.zeros((1, 32, 32)), 40.0)
    y = (np.arange(32) + 0.5) * flow.spacing
    rate = flow.drag + flow.viscosity * (2 - 2 * np.cos(2 * flow.spacing)) / flow.spacing**2
    np.testing.assert_allclose(w[0], np.broadcast_to(-2 * np.cos(2 * y) / rate, (32, 32)), rtol=1e-6, atol=1e-9)


def test_files_are_read_trained_on_and_tabulated(tmp_path: Path) -> None:
    flow = Kolmogorov(cells=32, stored=16, step=0.05, warm_up=0.5, frames=8)
    make(tmp_path / "flow", flow, {"train": 6, "valid": 2, "test": 3}, at_once=4)
    with h5py.File(tmp_path / "flow" / "data" / "train" / "kolmogorov_1.hdf5") as file:
        assert file["t0_fields/vorticity"].shape == (2, 8, 16, 16)
    data = load_dataset(tmp_path / "flow", "train")
    assert (len(data), data.fields, [axis.points for axis in data.axes]) == (6, ("vorticity",), [16, 16])
    assert all(axis.periodic for axis in data.axes)
    store, page = tmp_path / "unseen.json", tmp_path / "page.md"
    unseen.main(data=tmp_path / "flow", models=("ssno-warp", "ffno"), seeds=1, seconds=2.0, store=store)
    before = store.read_text()
    unseen.main(data=tmp_path / "flow", models=("ssno-warp", "ffno"), seeds=1, seconds=2.0, store=store)
    assert before.count('"seed"') == store.read_text().count('"seed"') == 2
    page.write_text(f"# Page\n\n{unseen.BEGIN}\n{unseen.END}\n")
    unseen.main(store=store, page=page)
    assert all(f"| {name} |" in page.read_text() for name in ("ssno-warp", "ffno", "persistence", "climatology"))


def test_a_failed_training_is_shown() -> None:
    trials = [
        {"model": "a", "seed": 0, "failed": "not finite"},
        {"model": "b", "seed": 0, "rel_l2": 0.1, "parameters": 5},
    ]
    rows = table({"trials": trials, "trivial": {"mean": 0.2}}).splitlines()
    assert rows[2] == "| a | 0 | inf |  | -inf |"
    assert rows[3] == "| b | 5 | 0.1 |  | 0.50 |"
