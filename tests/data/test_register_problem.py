"""Registered problems: the page's example, datasets like any other, worker processes, and what is refused."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import Float

from ssno.data import DATASETS, Plan, Size, build_plan, build_problem, generate, load_dataset, register_problem
from ssno.data.datasets import SIZES
from ssno.data.solve_shards import GenerationFailed, encode, importable
from ssno.data.windows import CONVENTIONS, Defaults, dataset_conventions
from ssno.pde import Axis, Parameters, SpectralEquation, SpectralGrid, SpectralProblem, convection_equation

ORIGIN: dict[str, str | int] = {"ssno": "test", "commit": "test"}
PAGE = Path(__file__).parents[2] / "docs" / "manual" / "solvers.md"


@dataclass(frozen=True)
class FisherKPP(SpectralProblem):
    """Fisher-KPP: u_t = diffusivity u_xx + u (1 - u)."""

    diffusivity: float = 0.1
    length: float = 10.0
    points: int = 32
    frames: int = 3
    end_time: float = 0.5
    step: float = 0.05
    solver_points: int = 64

    name = "fisher-kpp"
    fields = ("u",)

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"level": np.array(rng.uniform(0.1, 0.9))}

    def initial_condition(self, parameters: Parameters, *axes: Axis) -> Float[np.ndarray, " l"]:
        return np.full(axes[0].points, parameters["level"])

    def equation(self, grid: SpectralGrid, parameters: Sequence[Parameters]) -> SpectralEquation:
        linear = self.diffusivity * grid.laplacian() + 1
        return SpectralEquation(grid, linear, lambda modes, time: -grid.to_modes(grid.to_field(modes).square()))


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Datasets registered here do not outlive their test."""
    before, conventions = dict(DATASETS), dict(CONVENTIONS)
    yield
    for table, old in ((DATASETS, before), (CONVENTIONS, conventions)):
        table.clear()
        table.update(old)  # type: ignore[arg-type]


def test_adding_an_equation_takes_at_most_forty_lines(tmp_path, monkeypatch) -> None:
    """The example of docs/manual/solvers.md: its last line compares the stored data with the closed solution."""
    (example,) = (
        block
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        if "register_problem" in block
    )
    assert len(example.splitlines()) <= 40
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "example", "exec"), {"__name__": "__main__"})
    assert DATASETS["kdv"].summary == "Korteweg-de Vries: one soliton of random speed and place."
    assert len(load_dataset(tmp_path / "data/kdv-tiny", "valid")) == 2


def test_a_registered_problem_is_a_dataset_with_presets_and_conventions(tmp_path) -> None:
    sizes = {**SIZES, "tiny": Size(3, 1, 1, options={"points": 16})}
    assert register_problem(FisherKPP, "A line.", sizes, conventions=Defaults(noise=0.0)) is FisherKPP
    plan = build_plan("fisher-kpp", "tiny", diffusivity=0.2)
    assert (plan.problem, plan.counts["train"]) == (FisherKPP(diffusivity=0.2, points=16), 3)
    assert dataset_conventions("fisher-kpp").noise == 0
    generate(plan, tmp_path / "fisher-kpp-tiny", jobs=1)
    data = load_dataset("fisher-kpp", root=tmp_path)
    start, end = data.read([0, 1, 2]).state.numpy()[:, [0, -1]].transpose(1, 0, 2, 3)
    logistic = start * np.exp(0.5) / (1 + start * (np.exp(0.5) - 1))  # what a uniform state becomes
    np.testing.assert_allclose(end, logistic, rtol=1e-6)


def test_bytes_of_a_registered_problem_do_not_depend_on_the_batch() -> None:
    plan = Plan(FisherKPP(), {"train": 7})
    (shard,) = plan.shards()
    assert len({encode(plan, shard, batch=batch, provenance=ORIGIN) for batch in (1, 3, 7)}) == 1


def test_worker_processes_import_a_problem_of_a_module(tmp_path) -> None:
    plan = Plan(FisherKPP(), {"train": 4}, per_shard=2)
    for workers in (1, 2):
        generate(plan, tmp_path / str(workers), jobs=workers, origin=ORIGIN)
    one, two = ([path.read_bytes() for path in sorted((tmp_path / str(n)).glob("train/*.h5"))] for n in (1, 2))
    assert one == two


def test_a_problem_that_workers_cannot_import_stays_in_one_process(tmp_path) -> None:
    local = dataclasses.make_dataclass("Local", [], bases=(FisherKPP,), frozen=True)
    plan = Plan(local(), {"train": 4}, per_shard=1)
    assert not importable(plan.problem)
    with pytest.raises(GenerationFailed, match="Worker processes cannot import Local. Define it at the top level"):
        generate(plan, tmp_path / "two", jobs=2)
    assert generate(plan, tmp_path / "any").complete


@pytest.mark.parametrize(
    ("change", "sizes", "kind", "message"),
    [
        ({"name": "Fisher KPP"}, SIZES, ValueError, "`name` of Changed must be lower-case words joined by '-'"),
        ({"name": "ks"}, SIZES, ValueError, "Dataset 'ks' is KuramotoSivashinsky. Choose another `name`."),
        ({}, {"tiny": Size(1, 1, 1)}, ValueError, "`sizes` must have the presets tiny, small, paper, got tiny."),
        ({}, {**SIZES, "tiny": Size(1, 1, 1, {"dx": 1})}, TypeError, "Changed cannot be built at size 'tiny': .*dx"),
        ({"equation": SpectralProblem.equation}, SIZES, TypeError, "cannot be built at size .*abstract"),
    ],
)
def test_what_cannot_be_a_dataset_is_refused(change, sizes, kind, message) -> None:
    changed = dataclass(frozen=True)(type("Changed", (FisherKPP,), change))
    with pytest.raises(kind, match=message):
        register_problem(changed, sizes=sizes)
    with pytest.raises(ValueError, match="Unknown dataset `fisher-kpp`"):
        build_problem("fisher-kpp")


def test_a_problem_without_options_is_refused() -> None:
    class Bare(SpectralProblem):
        name = "bare"

    with pytest.raises(TypeError, match="Bare must be a frozen dataclass whose fields are its options"):
        register_problem(Bare)


def test_dispersion_has_no_compiled_step() -> None:
    """The symbol of u_xxx is imaginary; the compiled step takes real ones."""
    grid = SpectralGrid([Axis("x", 40.0, 128)], dealias=True)
    assert convection_equation(grid, 1j * grid.wavenumbers()[0] ** 3).compiled is None
