"""How many of our files `ssno train` walks between the command line and the first optimiser step.

Counted are files in which a function runs, imports aside; not the model itself (models, layers, ssm, native), nor base.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import ssno
from ssno.cli.main import main

ROOT = Path(ssno.__file__).parent
MODEL = {"models", "layers", "ssm", "native", "base"}
MOST = 28
WORDS = ["train", "heat", "--data.preset", "tiny", "--data.resolution", "16", "--model", "ssno:tiny", "--overwrite"]


class FirstStep(BaseException):
    """Ends the count."""


def test_a_training_walks_few_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--generate", "--train.epochs", "1"])  # data are made, everything is imported
    called = set()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename)

    def stop(*_: Any, **__: Any) -> None:
        sys.setprofile(None)
        raise FirstStep

    monkeypatch.setattr("ssno.training.loop.set_rate", stop)  # right before the optimiser's step
    sys.setprofile(count)
    try:
        main(WORDS)
    except FirstStep:
        pass
    finally:
        sys.setprofile(None)
    ours = [path.relative_to(ROOT) for path in map(Path, called) if path.is_relative_to(ROOT)]
    walked = sorted(str(path) for path in ours if path.parts[0] not in MODEL)
    assert 10 < len(walked) <= MOST, walked
