"""`ssno data animate`: data as moving pictures."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ssno.cli.main import main


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).normal(size=(3, 4, 2, 6, 5))
    np.savez("flow.npz", u=values, solid=np.eye(6, 5))


READ = ["--axes", "batch time channel x y", "--arrays", "u", "--fields", "a", "b", "--mask", "solid"]


def test_every_trajectory_and_field_gets_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        [
            "data",
            "animate",
            "flow.npz",
            *READ,
            "--trajectories",
            "0",
            "2",
            "--animation.width",
            "200",
            "--animation.format",
            "gif",
        ]
    )
    written = capsys.readouterr().out.split()
    assert written == [f"animations/flow-{number}-{field}.gif" for number in (0, 2) for field in "ab"]
    with Image.open(written[0]) as picture:
        assert picture.n_frames == 4


def test_of_a_velocity_in_a_box_the_vorticity_is_animated_too(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("box.npy", np.random.default_rng(0).normal(size=(1, 2, 3, 4, 5, 6)))
    names = [f"velocity_{axis}" for axis in "xyz"]
    small = ["--animation.width", "200", "--animation.format", "gif"]
    main(["data", "animate", "box.npy", "--axes", "batch time channel x y z", "--fields", *names, *small])
    assert capsys.readouterr().out.split() == [f"animations/box-0-{name}.gif" for name in (*names, "vorticity")]


def test_a_trajectory_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["data", "animate", "flow.npz", *READ, "--trajectories", "3"])
    assert "`--trajectories` must lie between 0 and 2, got 3" in capsys.readouterr().err
