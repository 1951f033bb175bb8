"""The schedule of unrolling: which stage holds when, what is refused, and how it lives on disk."""

import json

import pytest

from ssno.cli.train import parse
from ssno.data.windows import Window
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.log import Silent
from ssno.runs.options import Stage, TrainOptions, Unrolling, check_frames
from ssno.runs.run import RUN_VERSION, Run
from ssno.training.train import train


def test_lists_divide_the_run_into_stages_of_equal_length() -> None:
    rollout = Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(4, 8))
    stages = [rollout.stage(epoch, 6) for epoch in range(6)]
    assert [stage.teacher_forcing for stage in stages] == [1.0, 1.0, 0.5, 0.5, 0.0, 0.0]
    assert [stage.frames for stage in stages] == [4, 4, 4, 8, 8, 8]


def test_stages_of_a_run_without_end_are_found_at_once() -> None:
    found = Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(4, 8)).stages(10**12)
    assert [(stage.teacher_forcing, stage.frames) for stage in found] == [(1.0, 4), (0.5, 4), (0.5, 8), (0.0, 8)]


def test_the_different_stages_come_in_order() -> None:
    assert Unrolling().stages(20) == [Stage()]
    assert Unrolling(frames=(2, 0), pushforward=(1,)).stages(4) == [
        Stage(frames=2, pushforward=1),
        Stage(pushforward=1),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"teacher_forcing": ()}, "`unroll.teacher_forcing` is empty. Give one value"),
        ({"teacher_forcing": (1.0, 1.5)}, r"`unroll.teacher_forcing` is a share .* \[0, 1\], got \(1.0, 1.5\)"),
        ({"frames": (4, -1)}, r"`unroll.frames` must not be negative, got \(4, -1\)"),
        ({"pushforward": (-1,)}, "`unroll.pushforward` must not be negative"),
        (
            {"truncate": -2, "teacher_forcing": (0.0,)},
            "`unroll.truncate` must be a number of frames, or 0 for never, got -2",
        ),
        (
            {"truncate": 2},
            "`unroll.truncate` does nothing here: .* no gradient passes .* Lower `unroll.teacher_forcing`",
        ),
        ({"gradient_checkpointing": True}, "`unroll.gradient_checkpointing` does nothing here: .* there are no steps"),
    ],
)
def test_schedules_without_sense_are_refused(fields, message) -> None:
    with pytest.raises(ValueError, match=message):
        Unrolling(**fields)


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (Unrolling(frames=(1, 2, 3, 4)), "`unroll.frames` has 4 stages, but the run only 3 epochs"),
        (
            Unrolling(teacher_forcing=(1.0, 0.5), pushforward=(1,)),
            "In epoch 3 of 3, `unroll.pushforward` is 1 and `unroll.teacher_forcing` 0.5: the model already sees",
        ),
    ],
)
def test_schedules_that_do_not_fit_the_run_are_refused(rollout, message) -> None:
    with pytest.raises(ValueError, match=message):
        TrainOptions(epochs=3, unroll=rollout)


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (
            Stage(frames=5),
            "asks for 5 predicted frames, but after 4 input frames these trajectories have 4. Use at most 4",
        ),
        (Stage(pushforward=4), "`unroll.pushforward` is 4, but of 4 predicted frames at most 3 can be inputs"),
        (Stage(pushforward=2, frames=2), "`unroll.pushforward` is 2, but of 2 predicted frames at most 1"),
    ],
)
def test_unrolls_longer_than_the_trajectories_are_refused(stage, message) -> None:
    check_frames([Stage(frames=4, pushforward=3), Stage()], Window(size=4), 8)
    with pytest.raises(ValueError, match=message):
        check_frames([stage], Window(size=4), 8)


def test_a_run_refuses_them_before_anything_is_written(tmp_path, waves) -> None:
    with pytest.raises(ValueError, match="asks for 5 predicted frames"):
        train(SSNO(SSNOConfig.tiny()), waves, folder=tmp_path / "run", unroll=Unrolling(frames=(5,)), reporter=Silent())
    assert not (tmp_path / "run").exists()


def test_a_schedule_survives_json() -> None:
    rollout = Unrolling(teacher_forcing=(1.0, 0.5, 0.0), frames=(4, 8, 16), truncate=4, gradient_checkpointing=True)
    run = Run(train=TrainOptions(unroll=rollout, compile=True))
    values = json.loads(json.dumps(run.to_json()))
    assert values["version"] == RUN_VERSION == 5
    assert Run.from_json(values) == run


@pytest.mark.parametrize("teacher_forcing", [True, False])
def test_descriptions_of_version_1_are_still_read(teacher_forcing) -> None:
    """As an earlier release wrote it: no version, and a switch instead of the schedule."""
    values = json.loads(json.dumps(Run(train=TrainOptions(epochs=7)).to_json()))
    del values["version"], values["train"]["unroll"], values["train"]["compile"]
    values["train"]["teacher_forcing"] = teacher_forcing
    expected = Unrolling() if teacher_forcing else Unrolling(teacher_forcing=(0.0,))
    assert Run.from_json(values) == Run(train=TrainOptions(epochs=7, unroll=expected))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"version": 6}, "has version 6; this ssno reads up to 5. Upgrade ssno"),
        ({"train": {"teacher_forcing": "no"}}, "`train.teacher_forcing` must be bool, got 'no'"),
        ({"version": 2, "train": {"teacher_forcing": True}}, "Unknown name `train.teacher_forcing`"),
        ({"train": {"teacher_forcing": True, "unroll": {}}}, "Unknown name `train.teacher_forcing`"),
        ({"train": {"unroll": {"forcings": [1.0]}}}, "Unknown name `train.unroll.forcings`. Did you mean"),
        (
            {"train": {"unroll": {"teacher_forcing": ["all"]}}},
            r"`train.unroll.teacher_forcing\[0\]` must be float, got 'all'",
        ),
    ],
)
def test_descriptions_of_unknown_versions_or_names_are_refused(values, message) -> None:
    with pytest.raises(ValueError, match=message):
        Run.from_json(values)


def test_the_command_line_speaks_the_schedule() -> None:
    words = "ks --train.unroll.teacher-forcing 1 0.5 0 --train.unroll.frames 4 8 --train.unroll.truncate 2"
    words += " --train.unroll.gradient-checkpointing"
    options = parse([*words.split(), "--train.compile", "True"]).run().train
    assert options.unroll == Unrolling(
        teacher_forcing=(1.0, 0.5, 0.0), frames=(4, 8), truncate=2, gradient_checkpointing=True
    )
    assert options.compile
