"""Old options end with an error that names the new one."""

import re

import pytest

from ssno.base.renamed import FIELDS, FLAGS, VALUES, with_new_names
from ssno.cli.main import VERBS, main
from ssno.runs.run import Run

OLD = [(verb, old, new) for verb, names in FLAGS.items() for old, new in names.items()]
OLD_FIELDS = {old: new for old, new in FIELDS.items() if not old.startswith("forecaster.")}


@pytest.mark.parametrize(("verb", "old", "new"), OLD)
def test_an_old_option_names_the_new_one(verb, old, new, capsys) -> None:
    for words in ([old, "2"], [f"{old}=2"]):
        with pytest.raises(SystemExit, match="2"):
            main([*verb.split(), "runs/any", *words])
        assert f"has no `{old}` any more: use `{new}`." in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "old", "new"), OLD)
def test_the_new_option_stands_in_the_help_and_the_old_one_does_not(verb, old, new, capsys) -> None:
    verb_of = [*verb.split(), "ks"] if verb == "data generate" else verb.split()
    with pytest.raises(SystemExit):
        main([*verb_of, "--help"])
    shown = capsys.readouterr().out
    assert re.search(rf"{new}(?![\w-])", shown), VERBS[verb]
    assert not re.search(rf"(?<![\w-]){old}(?![\w-])", shown)


def test_the_old_name_of_a_scale_names_the_new_one(capsys) -> None:
    for words in (["--scale", "night"], ["--scale=night"]):
        with pytest.raises(SystemExit, match="2"):
            main(["reproduce", "window", *words])
        assert "The scale 'night' is called 'tenth' now" in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), OLD_FIELDS.items())
def test_an_old_field_of_a_run_names_the_new_one(old, new, capsys) -> None:
    flag, now = (f"--{name}".replace("_", "-") for name in (old, new))
    with pytest.raises(SystemExit, match="2"):
        main(["train", "ks", flag, "1"])
    assert f"`ssno train` has no `{flag}` any more: use `{now}`." in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), VALUES["model.boundary"].items())
def test_an_old_boundary_names_the_new_one(old, new, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "ks", "--model.boundary", old])
    assert f"`--model.boundary {old}` is called `--model.boundary {new}` now." in capsys.readouterr().err


def test_a_description_of_this_version_with_an_old_name_is_told_the_new_one() -> None:
    with pytest.raises(ValueError, match=re.escape("`train.noise` is called `train.noise_std` now.")):
        Run.from_json({"version": 5, "train": {"noise": 0.1}})


def test_a_description_of_before_is_read_with_every_old_name() -> None:
    old = {
        "version": 2,
        "data": {"name": "ks", "points": 64, "cut": 20},
        "model": {
            "model": "ssno",
            "boundary": ["wrapped"],
            "modes": {"smallest_step": 0.1, "largest_step": 1.0, "starting_norm": 2.0, "transfer": "sampled"},
        },
        "train": {
            "clip": 2.0,
            "noise": 0.1,
            "mirror": "odd",
            "increment": False,
            "points": 3,
            "workers": 2,
            "rollout": {"forcing": [0.5], "cut": 2, "recompute": True},
        },
        "alignment": "same",
        "window": {"protocol": "fno", "given": 7},
    }
    run = Run.from_json(old)
    assert (run.data.resolution, run.data.segment, run.context_time) == (64, 20, "input")
    assert run.window.input_frames == 7
    assert run.model.boundary in ("periodic", ("periodic",))
    modes = run.model.modes
    assert (modes.dt_min, modes.dt_max, modes.kernel_init_norm, modes.resolution_transfer) == (
        0.1,
        1.0,
        2.0,
        "resample",
    )
    train = run.train
    assert (train.grad_clip, train.noise_std, train.reflect, train.predict_increment) == (2.0, 0.1, "odd", False)
    assert (train.points_per_step, train.num_workers) == (3, 2)
    unroll = train.unroll
    assert (unroll.teacher_forcing, unroll.truncate, unroll.gradient_checkpointing) == ((0.5,), 2, True)
    assert Run.from_json(run.to_json()) == run
    assert with_new_names(with_new_names(old)) == with_new_names(old)
