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
MOST = 36
WORDS = ["train", "heat", "--data.preset", "tiny", "--data.resolution", "16", "--model", "ssno:tiny", "--overwrite"]


class FirstStep(BaseException):
    """Ends the count."""


def test_a_training_walks_few_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    main([*WORDS, "--generate", "--train.epochs", "1"])  # data are made, everything is imported
    walked = set()

    def count(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] not in MODEL:
            walked.add(str(path.relative_to(ROOT)))

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
    assert len(walked) <= MOST, sorted(walked)
