"""Generating into a folder, in one process: same bits in every way of working, and nothing mixed up."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pytest

from ssno.data.datasets import Plan, build_plan
from ssno.data.generation import check_room, generate
from ssno.data.load import load_dataset
from ssno.data.manifest import entries_of, read_manifest, verify
from ssno.data.solve_shards import GenerationCost, GenerationFailed
from ssno.data.splits import trajectory_rng
from ssno.pde.geometry import Axis
from ssno.pde.problems.heat import Heat
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution, SolverDiverged

SMALL = Heat(points=16, frames=3, waves=2, lmax=3)
ORIGIN = {"ssno": "test", "commit": "test"}
COUNTS = {"train": 15, "valid": 4, "test": 3}


@dataclass(frozen=True)
class Decay(Problem):
    """u = a sin(2 pi x) exp(-t), v = 2 u, with a known force that varies in time or not."""

    constant_force: bool = False
    diverges_above: float = 2.0
    overflows_above: float = 2.0

    name: ClassVar[str] = "decay"
    fields: ClassVar[tuple[str, ...]] = ("u", "v")
    context_fields: ClassVar[tuple[str, ...]] = ("force",)
    axes: ClassVar[tuple[Axis, ...]] = (Axis("x", 1.0, 8, 0.0625), Axis("y", 1.0, 6))  # type: ignore[misc]
    times: ClassVar[np.ndarray] = np.linspace(0, 1, 4)  # type: ignore[misc]
    solver: ClassVar[str] = "closed form"  # type: ignore[misc]
    solver_options: ClassVar[dict[str, int]] = {}  # type: ignore[misc,assignment]
    preferred_batch: ClassVar[int] = 4  # type: ignore[misc]

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"amplitude": np.array(rng.uniform()), "phases": rng.uniform(size=3)}

    def solve(self, parameters: Sequence[Parameters], *, progress: OnProgress | None = None) -> Solution:
        a = np.array([float(one["amplitude"]) for one in parameters])
        for index in np.flatnonzero(a > self.diverges_above):
            raise SolverDiverged(int(index), 17, 0.25)
        space = np.sin(2 * np.pi * self.axes[0].coordinates())[:, None] * np.ones(6)
        u = a[:, None, None, None, None] * np.exp(-self.times)[None, :, None, None, None] * space
        u[a > self.overflows_above, 2] = 1e300
        force = (
            np.stack([np.full((4, 1, 8, 6), one["phases"][0]) for one in parameters]) + self.times[:, None, None, None]
        )
        return Solution(np.concatenate([u, 2 * u], axis=2), force[:, :1] if self.constant_force else force)


def plan(**changes: object) -> Plan:
    return Plan(**{"problem": SMALL, "counts": COUNTS, "per_shard": 4, **changes})  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, bytes]:
    """Content of every shard by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.h5"))}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "heat"
    outcome = generate(plan(), folder, jobs=1, origin=ORIGIN)
    assert (outcome.complete, outcome.made, outcome.kept, outcome.missing) == (True, 6, 0, 0)
    return folder


def test_a_generated_folder_has_shards_and_a_manifest_and_nothing_else(whole: Path) -> None:
    expected = [f"train/shard-00{n}.h5" for n in range(4)] + ["valid/shard-000.h5", "test/shard-000.h5"]
    assert sorted(p.relative_to(whole).as_posix() for p in whole.rglob("*") if p.is_file()) == sorted(
        ["manifest.json", *expected]
    )
    manifest = read_manifest(whole)
    assert [entry.path for entry in entries_of(manifest)] == expected
    assert manifest["recipe"] == plan().description()
    assert manifest["provenance"] == [ORIGIN]


def test_trajectories_are_those_of_the_problem_drawn_with_their_own_seeds(whole: Path) -> None:
    drawn = [SMALL.draw(trajectory_rng(0, "train", n)) for n in range(15)]
    expected = SMALL.solve(drawn).state[:, :, 0].astype(np.float32)
    for number in range(4):
        with h5py.File(whole / f"train/shard-00{number}.h5") as file:
            rows = slice(4 * number, 4 * number + 4)
            np.testing.assert_array_equal(file["t0_fields/u"], expected[rows])
            np.testing.assert_array_equal(file["scalars/phase"], np.stack([one["phase"] for one in drawn[rows]]))
            assert (file.attrs["first_trajectory"], file.attrs["split"]) == (4 * number, "train")


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_batch_size_changes_no_bit(whole: Path, tmp_path: Path, batch: int) -> None:
    generate(plan(), tmp_path / "heat", jobs=1, batch=batch, origin=ORIGIN)
    assert files(tmp_path / "heat") == files(whole)


def test_parts_made_in_any_order_equal_the_whole(whole: Path, tmp_path: Path) -> None:
    outcomes = [generate(plan(), tmp_path / "heat", jobs=1, part=(i, 3), origin=ORIGIN) for i in (3, 1, 2)]
    assert [(outcome.made, outcome.missing, outcome.complete) for outcome in outcomes] == [
        (2, 4, False),
        (2, 2, False),
        (2, 0, True),
    ]
    assert files(tmp_path / "heat") == files(whole)
    assert verify(tmp_path / "heat").fine


def test_parts_made_on_machines_without_a_common_disk_are_merged_by_a_last_call(whole: Path, tmp_path: Path) -> None:
    for i in (1, 2):
        generate(plan(), tmp_path / f"machine{i}", jobs=1, part=(i, 2), origin=ORIGIN)
        shutil.copytree(tmp_path / f"machine{i}", tmp_path / "heat", dirs_exist_ok=True)
    outcome = generate(plan(), tmp_path / "heat", jobs=1, origin=ORIGIN)
    assert (outcome.made, outcome.kept, outcome.complete) == (0, 6, True)
    assert files(tmp_path / "heat") == files(whole)
    assert verify(tmp_path / "heat").fine


def test_a_second_call_changes_nothing(whole: Path) -> None:
    before = (whole / "manifest.json").read_bytes()
    outcome = generate(plan(), whole, jobs=1, origin={**ORIGIN, "commit": "another"})
    assert (outcome.made, outcome.kept, outcome.complete) == (0, 6, True)
    assert (whole / "manifest.json").read_bytes() == before


def test_a_lost_shard_is_made_again(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "heat")
    (tmp_path / "heat/train/shard-002.h5").unlink()
    outcome = generate(plan(), tmp_path / "heat", jobs=1, origin=ORIGIN)
    assert (outcome.made, outcome.kept, outcome.complete) == (1, 5, True)
    assert files(tmp_path / "heat") == files(whole)
    assert verify(tmp_path / "heat").fine


def test_partial_files_of_a_killed_writer_are_ignored_and_removed(whole: Path, tmp_path: Path) -> None:
    generate(plan(), tmp_path / "heat", jobs=1, part=(1, 2), origin=ORIGIN)
    (tmp_path / "heat/train/shard-001.h5.0badcafe.partial").write_bytes(b"half a file")
    (tmp_path / "heat/train/shard-001.h5").write_bytes(b"renamed but killed before the note")
    generate(plan(), tmp_path / "heat", jobs=1, origin=ORIGIN)
    assert files(tmp_path / "heat") == files(whole)
    assert verify(tmp_path / "heat").fine


def test_progress_ends_at_the_number_of_trajectories(tmp_path: Path) -> None:
    heard: list[tuple[float, int]] = []
    costs: list[GenerationCost] = []
    generate(
        plan(),
        tmp_path / "heat",
        jobs=1,
        origin=ORIGIN,
        announce=costs.append,
        report=lambda done, total: heard.append((done, total)),
    )
    assert [cost.trajectories for cost in costs] == [22]
    assert heard[-1] == (22, 22)
    assert heard == sorted(heard)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    outcome = generate(plan(), tmp_path / "heat", jobs=2, dry_run=True, origin=ORIGIN)
    assert os.listdir(tmp_path) == []
    assert (outcome.complete, outcome.made, outcome.missing) == (False, 0, 6)
    assert (outcome.forecast.trajectories, outcome.forecast.shards, outcome.forecast.jobs) == (22, 6, 2)


def test_another_plan_is_refused_in_a_finished_folder(whole: Path) -> None:
    for changes, message in (
        ({"problem": Heat(points=32, frames=3, waves=2, lmax=3)}, "`options.points` is 16 there and 32 here"),
        ({"seed": 1}, "`seed` is 0 there and 1 here"),
        ({"counts": {**COUNTS, "train": 16}}, "`counts.train` is 15 there and 16 here"),
        ({"per_shard": 8}, "`per_shard` is 4 there and 8 here"),
    ):
        with pytest.raises(FileExistsError, match=message):
            generate(plan(**changes), whole, jobs=1, origin=ORIGIN)


def test_another_plan_is_refused_in_an_unfinished_folder(tmp_path: Path) -> None:
    generate(plan(), tmp_path / "heat", jobs=1, part=(1, 2), origin=ORIGIN)
    with pytest.raises(FileExistsError, match="holds another dataset: `seed` is 0 there and 5 here"):
        generate(plan(seed=5), tmp_path / "heat", jobs=1, part=(2, 2), origin=ORIGIN)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FileExistsError, match="is not empty and was not made by `ssno data generate`"):
        generate(plan(), tmp_path, jobs=1, origin=ORIGIN)
    with pytest.raises(FileExistsError, match="is a file; `out` must be a folder"):
        generate(plan(), tmp_path / "thesis.tex", jobs=1, origin=ORIGIN)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PermissionError, match="Cannot write to .*heat .*Choose another `out`"):
        generate(plan(), tmp_path / "file" / "heat", jobs=1, origin=ORIGIN)
    with tempfile.TemporaryDirectory() as closed:
        os.chmod(closed, 0o555)
        administrator = os.geteuid() == 0  # may write anywhere, so becomes somebody else
        if administrator:
            os.seteuid(65534)
        try:
            with pytest.raises(PermissionError, match=r"Cannot write to .*heat \(Permission denied\)"):
                generate(plan(), Path(closed) / "heat", jobs=1, origin=ORIGIN)
        finally:
            if administrator:
                os.seteuid(0)


def test_a_disk_without_room_is_found_before_the_work_starts(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(OSError, match=r"The dataset needs about .* but .* has .* free"):
        check_room(
            GenerationCost(1, 1, 1, 1.0, memory_bytes=1, disk_bytes=2 * free), tmp_path / "not" / "yet" / "there"
        )


@pytest.mark.parametrize(("name", "value"), [("jobs", 0), ("batch", 0)])
def test_impossible_settings_are_refused(tmp_path: Path, name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be at least 1, got 0"):
        generate(plan(), tmp_path / "heat", **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("constant", [False, True])
def test_known_fields_and_vector_parameters_are_stored_with_the_state(tmp_path: Path, constant: bool) -> None:
    problem = Decay(constant_force=constant)
    generate(Plan(problem, {"test": 6}, per_shard=6), tmp_path / "decay", jobs=1, origin=ORIGIN)
    drawn = [problem.draw(trajectory_rng(0, "test", n)) for n in range(6)]
    solution = problem.solve(drawn)
    assert solution.context is not None
    with h5py.File(tmp_path / "decay/test/shard-000.h5") as file:
        np.testing.assert_array_equal(file["t0_fields/v"], solution.state[:, :, 1].astype(np.float32))
        force = solution.context[:, :, 0].astype(np.float32)
        np.testing.assert_array_equal(file["t0_fields/force"], force[:, 0] if constant else force)
        np.testing.assert_array_equal(file["scalars/phases"], np.stack([one["phases"] for one in drawn]))
    assert verify(tmp_path / "decay").fine


def test_a_diverging_trajectory_stops_the_generation_with_its_number_step_and_parameters(tmp_path: Path) -> None:
    draws = [float(Decay().draw(trajectory_rng(2, "train", n))["amplitude"]) for n in range(12)]
    worst = int(np.argmax(draws))
    assert worst > 2
    threshold = (sorted(draws)[-1] + sorted(draws)[-2]) / 2
    for problem, what in (
        (Decay(diverges_above=threshold), "no longer finite at solver step 17, time 0.25"),
        (Decay(overflows_above=threshold), r"not finite at field 'u', frame 2 \(time 0.666667\)"),
    ):
        folder = tmp_path / what[:3]
        message = (
            rf"Trajectory {worst} of `train` \(parameters amplitude={str(draws[worst])[:7]}.*phases=.*\) is {what}"
        )
        with pytest.raises(GenerationFailed, match=message):
            generate(Plan(problem, {"train": 12}, per_shard=2, seed=2), folder, jobs=1, batch=3, origin=ORIGIN)
        stored = sorted(int(path.stem[-3:]) for path in folder.rglob("*.h5"))
        assert stored == list(range(worst // 2))


def test_the_manifest_of_stationary_data_has_their_mean_and_deviation(tmp_path) -> None:
    options = {"frames": 5, "warm_up": 0.6, "end_time": 1.0, "solver_points": 128, "step": 0.02}
    generate(build_plan("ks-attractor", "tiny", per_shard=3, **options), tmp_path / "ks", jobs=1)
    frames = np.asarray(load_dataset(tmp_path / "ks", "train").read(range(8)).state, dtype=np.float64)
    found = read_manifest(tmp_path / "ks")["statistics"]["u"]
    np.testing.assert_allclose([found["mean"], found["deviation"]], [frames.mean(), frames.std()], atol=1e-6)
    assert verify(tmp_path / "ks").fine


def test_stationary_data_without_training_trajectories_have_no_statistics(tmp_path) -> None:
    options = {"frames": 2, "warm_up": 0.2, "end_time": 0.4, "solver_points": 128, "step": 0.02}
    generate(build_plan("ks-attractor", "tiny", counts={"train": 0, "valid": 0}, **options), tmp_path / "ks", jobs=1)
    assert "statistics" not in read_manifest(tmp_path / "ks")
    assert len(load_dataset(tmp_path / "ks", "test")) == 2
