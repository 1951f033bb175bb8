"""Named datasets and presets."""

from pathlib import Path

import pytest

from ssno.data.datasets import (
    DATASETS,
    PRESETS,
    build_plan,
    build_problem,
    folder_name,
    generate_command,
    split_name,
)
from ssno.data.load import load_dataset
from ssno.data.manifest import count_trajectories
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_has_every_preset_and_tiny_is_tiny(name: str) -> None:
    sizes = [count_trajectories(build_plan(name, preset).shards()) for preset in PRESETS]
    assert sizes == sorted(sizes)
    assert dict(build_plan(name, "tiny").counts) == {"train": 8, "valid": 2, "test": 2}
    assert build_problem(name).name == name


def test_the_paper_sizes_are_the_published_ones() -> None:
    ks = build_plan("ks", viscosity=0.1)
    assert ks.problem == KuramotoSivashinsky(viscosity=0.1)
    assert (ks.problem.axes[0].points, len(ks.problem.times)) == (512, 26)
    assert dict(ks.counts) == {"train": 2048, "valid": 256, "test": 256}
    burgers = build_plan("burgers")
    assert (burgers.problem.axes[0].points, len(burgers.problem.times)) == (1024, 141)
    assert dict(burgers.counts) == {"train": 2048, "valid": 0, "test": 1000}


def test_counts_and_options_override_the_preset() -> None:
    plan = build_plan("burgers", "tiny", counts={"train": 3, "valid": 1}, seed=5, per_shard=2, frames=11)
    assert dict(plan.counts) == {"train": 3, "valid": 1, "test": 2}
    assert isinstance(plan.problem, Burgers)
    assert (plan.problem.frames, plan.problem.cells, plan.seed, plan.per_shard) == (11, 256, 5, 2)


def test_folders_tell_viscosities_and_presets_apart() -> None:
    assert folder_name(build_problem("ks", viscosity=0.075), "paper") == "ks-0.075-paper"
    assert folder_name(build_problem("ks", viscosity=0.1), "tiny") == "ks-0.1-tiny"
    assert folder_name(build_problem("burgers"), "small") == "burgers-small"


def test_the_command_that_makes_a_dataset_can_be_printed() -> None:
    assert generate_command("ks", "tiny", viscosity=0.1) == "ssno data generate ks --viscosity 0.1 --preset tiny"
    command = generate_command("advection-diffusion", "small", out=Path("my data/flow"), velocity=(1.0, 0.5))
    expected = "ssno data generate advection-diffusion --velocity 1.0 0.5 --preset small --out 'my data/flow'"
    assert command == expected


@pytest.mark.usefixtures("as_users_call_it")
def test_unknown_names_are_refused_with_the_nearest_right_one() -> None:
    with pytest.raises(
        ValueError, match=r"Unknown dataset `burger`\. Did you mean `burgers`\? Known: ks, ks-attractor, burgers"
    ):
        build_problem("burger")
    with pytest.raises(ValueError, match=r"Unknown preset `papr`\. Did you mean `paper`\?"):
        build_problem("ks", "papr")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Unknown option of ks `viscossity`\. Did you mean `viscosity`\?"):
        build_plan("ks", viscossity=0.1)
    with pytest.raises(ValueError, match=r"Unknown dataset `zzz`\. Known: ks"):
        build_plan("zzz")


def test_fluids_of_the_paper_are_solved_finer_than_stored_and_small_ones_are_not() -> None:
    for name in ("torus-li", "torus-vis", "torus-vis-force"):
        paper, small = build_plan(name), build_plan(name, "small")
        assert [axis.points for axis in paper.problem.axes] == [axis.points for axis in small.problem.axes] == [64, 64]
        assert (paper.problem.solver_options["points"], small.problem.solver_options["points"]) == (256, 64)
        assert dict(small.counts) == {"train": 128, "valid": 0, "test": 32}
        assert len(paper.problem.times) == 20
    assert dict(build_plan("torus-li").counts) == {"train": 1000, "valid": 0, "test": 200}
    assert dict(build_plan("torus-vis").counts) == {"train": 1000, "valid": 200, "test": 200}
    for name, interval, cells in (("ce-rm", 0.2, 128), ("gce-rt", 0.5, 256)):
        paper, small = build_plan(name), build_plan(name, "small")
        assert [axis.points for axis in paper.problem.axes] == [axis.points for axis in small.problem.axes] == [64, 64]
        assert (paper.problem.solver_options["cells"], small.problem.solver_options["cells"]) == (cells, 64)
        assert paper.problem.axes[0].offset == build_problem(name, points=128).axes[0].offset  # the published grid
        assert dict(paper.counts) == {"train": 1000, "valid": 0, "test": 200}
        assert (len(paper.problem.times), paper.problem.times[1]) == (11, interval)


def test_a_name_may_carry_a_variant_of_its_dataset(tmp_path) -> None:
    assert split_name("gray-scott-channel") == ("gray-scott", {"boundary": "channel"})
    assert split_name("torus-vis-force") == ("torus-vis-force", {})
    assert split_name("swe-vortical") == ("swe-vortical", {})
    assert split_name("gray-scott-tube") == ("gray-scott-tube", {})
    assert build_problem("heat-box-neumann", "tiny").boundary == "neumann"
    command = "ssno data generate gray-scott --boundary channel --preset tiny"
    assert generate_command("gray-scott-channel", "tiny") == command
    with pytest.raises(FileNotFoundError, match=f"gray-scott-channel-tiny. Make it with: {command}"):
        load_dataset("gray-scott-channel", root=tmp_path, preset="tiny")
