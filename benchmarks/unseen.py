"""A problem that chose nothing here: Kolmogorov flow by finite differences, in The Well's layout, recipe untouched.

    python -m benchmarks.unseen --make data/kolmogorov      solve it and write the files: minutes
    python -m benchmarks.unseen                             train, score on test data, store results/unseen.json: once
    python -m benchmarks.unseen --page docs/evidence/unseen.md      put the stored table into that page

Vorticity w on a periodic square of side 2 pi, driven by a standing shear and held back by drag:

    dw/dt + J(psi, w) = nu lap(w) - mu w - n cos(n y),   lap(psi) = w

The solver shares no code with `ssno.pde`, which is spectral: Arakawa's Jacobian (it conserves energy and enstrophy),
the five-point Laplacian, and Shu and Osher's third-order Runge-Kutta, in NumPy. Frames are means over blocks of cells.
Models are those of the design trials (narrow, one thread, the same processor time); options are those that
`ssno train` would take for such a file. No trial was made on these data before the stored one.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from benchmarks.design import NARROW, NARROW_SCANS, ROOT, trained
from ssno.base.atomic_write import write_whole
from ssno.base.provenance import provenance
from ssno.data.envelope import Climatology
from ssno.data.load import load_dataset
from ssno.data.windows import Window
from ssno.evaluation.trivial import trivial_forecasters
from ssno.forecasting.scores import score
from ssno.models.operator import count_parameters
from ssno.models.registry import model_config
from ssno.runs.options import recipe
from ssno.runs.run import DataShape, Run

Field = NDArray[np.float64]
STORE, DATA = ROOT / "results" / "unseen.json", ROOT / "data" / "kolmogorov"
MODELS = ("ssno-warp", "ssno-product", "ssno", "ffno", "unet", "gkt")
SPLITS = {"train": 96, "valid": 12, "test": 32}
SECONDS = 60.0
BEGIN, END = "<!-- unseen -->", "<!-- end -->"


@dataclass(frozen=True)
class Kolmogorov:
    """The flow, its solver's grid and what is stored of it."""

    cells: int = 128
    stored: int = 32
    waves: int = 4
    viscosity: float = 1e-3
    drag: float = 0.1
    step: float = 0.01
    warm_up: float = 20.0
    frame_interval: float = 0.5
    frames: int = 20

    @property
    def spacing(self) -> float:
        return 2 * np.pi / self.cells

    def laplacian(self, w: Field) -> Field:
        """The five-point Laplacian."""
        around = sum(np.roll(w, shift, axis) for axis in (-2, -1) for shift in (1, -1))
        return (around - 4 * w) / self.spacing**2

    def stream(self, w: Field) -> Field:
        """The field of mean zero whose five-point Laplacian is w (w has mean zero)."""
        angles = 2 * np.pi * np.arange(self.cells) / self.cells
        one = (2 * np.cos(angles) - 2) / self.spacing**2
        symbol = one[:, None] + one[None, : self.cells // 2 + 1]
        symbol[0, 0] = 1.0
        waves = np.fft.rfft2(w) / symbol
        waves[..., 0, 0] = 0.0
        return np.fft.irfft2(waves, s=(self.cells, self.cells))

    def jacobian(self, p: Field, w: Field) -> Field:
        """Arakawa's J(p, w) = dp/dx dw/dy - dp/dy dw/dx, x the axis before the last one."""

        def at(f: Field, i: int, j: int) -> Field:
            return np.roll(f, (-i, -j), (-2, -1))

        first = (at(p, 1, 0) - at(p, -1, 0)) * (at(w, 0, 1) - at(w, 0, -1))
        first -= (at(p, 0, 1) - at(p, 0, -1)) * (at(w, 1, 0) - at(w, -1, 0))
        second = (
            at(p, 1, 0) * (at(w, 1, 1) - at(w, 1, -1))
            - at(p, -1, 0) * (at(w, -1, 1) - at(w, -1, -1))
            - at(p, 0, 1) * (at(w, 1, 1) - at(w, -1, 1))
            + at(p, 0, -1) * (at(w, 1, -1) - at(w, -1, -1))
        )
        third = (
            at(w, 0, 1) * (at(p, 1, 1) - at(p, -1, 1))
            - at(w, 0, -1) * (at(p, 1, -1) - at(p, -1, -1))
            - at(w, 1, 0) * (at(p, 1, 1) - at(p, 1, -1))
            + at(w, -1, 0) * (at(p, -1, 1) - at(p, -1, -1))
        )
        return (first + second + third) / (12 * self.spacing**2)

    def rate(self, w: Field) -> Field:
        """dw/dt."""
        y = (np.arange(self.cells) + 0.5) * self.spacing
        force = -self.waves * np.cos(self.waves * y)
        return self.viscosity * self.laplacian(w) - self.drag * w + force - self.jacobian(self.stream(w), w)

    def advance(self, w: Field, duration: float) -> Field:
        """The field a while later."""
        count = max(1, round(duration / self.step))
        dt = duration / count
        for _ in range(count):
            one = w + dt * self.rate(w)
            two = 0.75 * w + 0.25 * (one + dt * self.rate(one))
            w = w / 3 + 2 / 3 * (two + dt * self.rate(two))
        return w

    def start(self, rng: np.random.Generator, count: int) -> Field:
        """Smooth random vorticity of mean zero and deviation one."""
        waves = np.fft.rfft2(rng.standard_normal((count, self.cells, self.cells)))
        k = np.hypot(np.fft.fftfreq(self.cells, 1 / self.cells)[:, None], np.arange(self.cells // 2 + 1))
        waves *= np.exp(-((k / 6) ** 2)) * (k > 0)
        w = np.fft.irfft2(waves, s=(self.cells, self.cells))
        return w / w.std(axis=(1, 2), keepdims=True)

    def trajectories(self, rng: np.random.Generator, count: int) -> Iterator[Field]:
        """Frame after frame of some trajectories, as means over blocks of cells."""
        w, size = self.start(rng, count), self.cells // self.stored
        w = self.advance(w, self.warm_up) if self.warm_up else w
        for frame in range(self.frames):
            w = self.advance(w, self.frame_interval) if frame else w
            yield w.reshape(count, self.stored, size, self.stored, size).mean(axis=(2, 4))


def make(folder: Path, flow: Kolmogorov, splits: dict[str, int], *, at_once: int = 16) -> None:
    """Solve, and write `folder/data/SPLIT/*.hdf5` as The Well's files are."""
    text = h5py.string_dtype()
    for seed, (split, count) in enumerate(splits.items()):
        place = folder / "data" / split
        place.mkdir(parents=True)
        for number, first in enumerate(range(0, count, at_once)):
            rng = np.random.default_rng([seed, number])
            frames = np.stack(list(flow.trajectories(rng, min(at_once, count - first))), 1).astype(np.float32)
            with h5py.File(place / f"kolmogorov_{number}.hdf5", "x") as file:
                file.attrs.update({"dataset_name": "kolmogorov", "grid_type": "cartesian", "n_spatial_dims": 2})
                file.attrs.update({"n_trajectories": len(frames), "simulation_parameters": np.array([], dtype=text)})
                dimensions = file.create_group("dimensions")
                dimensions.attrs["spatial_dims"] = np.array(["x", "y"], dtype=object)
                centres = (np.arange(flow.stored) + 0.5) * 2 * np.pi / flow.stored
                times = flow.warm_up + flow.frame_interval * np.arange(flow.frames)
                for name, values in (("time", times), ("x", centres), ("y", centres)):
                    stored = dimensions.create_dataset(name, data=values.astype(np.float32))
                    stored.attrs.update({"sample_varying": False, "time_varying": False})
                file.create_group("scalars").attrs["field_names"] = np.array([], dtype=text)
                conditions = file.create_group("boundary_conditions")
                for axis in "xy":
                    group = conditions.create_group(f"{axis}_periodic")
                    group.attrs["associated_dims"] = np.array([axis], dtype=object)
                    group.attrs.update({"bc_type": "PERIODIC", "sample_varying": False, "time_varying": False})
                    group["mask"] = np.isin(np.arange(flow.stored), (0, flow.stored - 1))
                for order in range(3):
                    listed = ["vorticity"] if order == 0 else []
                    file.create_group(f"t{order}_fields").attrs["field_names"] = np.array(listed, dtype=text)
                stored = file["t0_fields"].create_dataset("vorticity", data=frames)
                stored.attrs.update({"dim_varying": [True, True], "sample_varying": True, "time_varying": True})


def trial(model: str, folder: Path, *, seed: int, seconds: float) -> dict[str, Any]:
    """Train and score on test data; what went wrong is part of the answer."""
    data, test = load_dataset(folder, "train").in_memory(), load_dataset(folder, "test")
    shape = DataShape(data.name, data.axes, data.fields, data.context_fields)
    narrow = model_config(model, **NARROW.get(model, NARROW_SCANS))
    config = Run(model=narrow).completed(shape).model.recommended(periodic=True)
    options = recipe("fast", n_dims=2, suited=config.training, seed=seed)
    found: dict[str, Any] = {"model": model, "seed": seed, "seconds": seconds}
    try:
        forecaster, steps = trained(config, data, options, seconds=seconds)
        means = score(forecaster, test, batch_size=32).means
        found |= {"steps": steps, "parameters": count_parameters(forecaster.model)}
        found |= {name: means[name] for name in ("rel_l2", "rel_l2_onestep")}
    except FloatingPointError as error:
        found["failed"] = str(error)
    return found


def table(stored: dict[str, Any]) -> str:
    """One line per model, the trivial forecasts below."""
    lines = ["| model | parameters | rel_l2 | one step | skill |", "|---|--:|---|---|---|"]
    best = min(stored["trivial"].values())
    for model in dict.fromkeys(one["model"] for one in stored["trials"]):
        alike = [one for one in stored["trials"] if one["model"] == model]
        errors = [one.get("rel_l2", float("inf")) for one in alike]
        single = ", ".join(f"{one['rel_l2_onestep']:.3g}" for one in alike if "rel_l2_onestep" in one)
        told = ", ".join(f"{error:.3g}" for error in errors)
        skill = 1 - sum(errors) / len(errors) / best
        lines.append(f"| {model} | {alike[0].get('parameters', 0):,} | {told} | {single} | {skill:.2f} |")
    lines += [f"| {name} |  | {error:.3g} |  |  |" for name, error in stored["trivial"].items()]
    return "\n".join(lines)


def trivial(folder: Path) -> dict[str, float]:
    """Test errors of forecasts that learn no dynamics."""
    test, known = load_dataset(folder, "test"), Climatology.of(load_dataset(folder, "train"))
    forecasters = trivial_forecasters(test, Window(protocol="first_k", size=4), climatology=known)
    return {name: score(one, test, batch_size=32).means["rel_l2"] for name, one in forecasters.items()}


def main(
    *,
    make_data: Annotated[Path | None, tyro.conf.arg(name="make")] = None,
    data: Path = DATA,
    models: tuple[str, ...] = MODELS,
    seeds: int = 3,
    seconds: float = SECONDS,
    store: Path = STORE,
    page: Path | None = None,
) -> None:
    """Make the data, or run the trials that are not stored yet, or put the table into a page."""
    if make_data is not None:
        make(make_data, Kolmogorov(), SPLITS)
        return
    stored = json.loads(store.read_text(encoding="utf-8")) if store.exists() else {"trials": []}
    if page is not None:
        before, rest = page.read_text(encoding="utf-8").split(BEGIN)
        write_whole(page, f"{before}{BEGIN}\n\n{table(stored)}\n\n{END}{rest.split(END)[1]}".encode())
        return
    torch.set_num_threads(1)
    stored |= {"trivial": trivial(data), "flow": asdict(Kolmogorov()), "provenance": provenance()}
    done = {(one["model"], one["seed"]) for one in stored["trials"]}
    for seed, model in product(range(seeds), models):
        if (model, seed) not in done:
            stored["trials"].append(trial(model, data, seed=seed, seconds=seconds))
            write_whole(store, (json.dumps(stored, indent=1) + "\n").encode())
    print(table(stored))


if __name__ == "__main__":
    tyro.cli(main)
