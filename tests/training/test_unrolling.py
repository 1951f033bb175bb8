"""The schedule of unrolling: which stage holds when, what is refused, and how it lives on disk."""

import json

import pytest

from ssno.cli.train import parse
from ssno.data.windows import Window
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.options import TrainOptions
from ssno.runs.run import VERSION, Run
from ssno.runs.unrolling import Rollout, Stage, check_frames
from ssno.training.reporter import Silent
from ssno.training.train import train


def test_lists_divide_the_run_into_stages_of_equal_length() -> None:
    rollout = Rollout(forcing=(1.0, 0.5, 0.0), frames=(4, 8))
    stages = [rollout.stage(epoch, 6) for epoch in range(6)]
    assert [stage.forcing for stage in stages] == [1.0, 1.0, 0.5, 0.5, 0.0, 0.0]
    assert [stage.frames for stage in stages] == [4, 4, 4, 8, 8, 8]


def test_stages_of_a_run_without_end_are_found_at_once() -> None:
    found = Rollout(forcing=(1.0, 0.5, 0.0), frames=(4, 8)).stages(10**12)
    assert [(stage.forcing, stage.frames) for stage in found] == [(1.0, 4), (0.5, 4), (0.5, 8), (0.0, 8)]


def test_the_different_stages_come_in_order() -> None:
    assert Rollout().stages(20) == [Stage()]
    assert Rollout(frames=(2, 0), pushforward=(1,)).stages(4) == [
        Stage(frames=2, pushforward=1),
        Stage(pushforward=1),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"forcing": ()}, "`rollout.forcing` is empty. Give one value"),
        ({"forcing": (1.0, 1.5)}, r"`rollout.forcing` is a share .* \[0, 1\], got \(1.0, 1.5\)"),
        ({"frames": (4, -1)}, r"`rollout.frames` must not be negative, got \(4, -1\)"),
        ({"pushforward": (-1,)}, "`rollout.pushforward` must not be negative"),
        ({"cut": -2, "forcing": (0.0,)}, "`rollout.cut` must be a number of frames, or 0 for no cut, got -2"),
        ({"cut": 2}, "`rollout.cut` does nothing here: .* no gradient passes .* Lower `rollout.forcing`"),
        ({"recompute": True}, "`rollout.recompute` does nothing here: .* there are no steps"),
    ],
)
def test_schedules_without_sense_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        Rollout(**fields)


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (Rollout(frames=(1, 2, 3, 4)), "`rollout.frames` has 4 stages, but the run only 3 epochs"),
        (
            Rollout(forcing=(1.0, 0.5), pushforward=(1,)),
            "In epoch 3 of 3, `rollout.pushforward` is 1 and `rollout.forcing` 0.5: the model already sees",
        ),
    ],
)
def test_schedules_that_do_not_fit_the_run_are_refused(rollout, message) -> None:
    with pytest.raises(ValueError, match=message):
        TrainOptions(epochs=3, rollout=rollout)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            Stage(frames=5),
            "asks for 5 predicted frames, but after 4 given ones these trajectories have 4. Use at most 4",
        ),
        (Stage(pushforward=4), "`rollout.pushforward` is 4, but of 4 predicted frames at most 3 can be inputs"),
        (Stage(pushforward=2, frames=2), "`rollout.pushforward` is 2, but of 2 predicted frames at most 1"),
    ],
)
def test_unrolls_longer_than_the_trajectories_are_refused(stage, message) -> None:
    check_frames([Stage(frames=4, pushforward=3), Stage()], Window(size=4), 8)
    with pytest.raises(ValueError, match=message):
        check_frames([stage], Window(size=4), 8)


def test_a_run_refuses_them_before_anything_is_written(tmp_path, waves) -> None:
    with pytest.raises(ValueError, match="asks for 5 predicted frames"):
        train(SSNO(SSNOConfig.tiny()), waves, folder=tmp_path / "run", rollout=Rollout(frames=(5,)), reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_a_schedule_survives_json() -> None:
    rollout = Rollout(forcing=(1.0, 0.5, 0.0), frames=(4, 8, 16), cut=4, recompute=True)
    run = Run(train=TrainOptions(rollout=rollout, compile=True))
    values = json.loads(json.dumps(run.to_json()))
    assert values["version"] == VERSION == 2
    assert Run.from_json(values) == run


@pytest.mark.parametrize("teacher_forcing", [True, False])
def test_descriptions_of_version_1_are_still_read(teacher_forcing) -> None:
    """As an earlier release wrote it: no version, and a switch instead of the schedule."""
    values = json.loads(json.dumps(Run(train=TrainOptions(epochs=7)).to_json()))
    del values["version"], values["train"]["rollout"], values["train"]["compile"]
    values["train"]["teacher_forcing"] = teacher_forcing
    expected = Rollout() if teacher_forcing else Rollout(forcing=(0.0,))
    assert Run.from_json(values) == Run(train=TrainOptions(epochs=7, rollout=expected))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"version": 3}, "has version 3; this ssno reads up to 2. Upgrade ssno"),
        ({"train": {"teacher_forcing": "no"}}, "`train.teacher_forcing` must be bool, got 'no'"),
        ({"version": 2, "train": {"teacher_forcing": True}}, "Unknown name `train.teacher_forcing`"),
        ({"train": {"teacher_forcing": True, "rollout": {}}}, "Unknown name `train.teacher_forcing`"),
        ({"train": {"rollout": {"forcings": [1.0]}}}, "Unknown name `train.rollout.forcings`. Did you mean"),
        ({"train": {"rollout": {"forcing": ["all"]}}}, r"`train.rollout.forcing\[0\]` must be float, got 'all'"),
    ],
)
def test_descriptions_of_unknown_versions_or_names_are_refused(values, message) -> None:
    with pytest.raises(ValueError, match=message):
        Run.from_json(values)


def test_the_command_line_speaks_the_schedule() -> None:
    words = (
        "ks --train.rollout.forcing 1 0.5 0 --train.rollout.frames 4 8 --train.rollout.cut 2 --train.rollout.recompute"
    )
    options = parse([*words.split(), "--train.compile", "True"], {}).run.train
    assert options.rollout == Rollout(forcing=(1.0, 0.5, 0.0), frames=(4, 8), cut=2, recompute=True)
    assert options.compile
