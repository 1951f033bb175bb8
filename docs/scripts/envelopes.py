"""Add to bundled checkpoints what their training data look like:  python docs/scripts/envelopes.py NAME ...

For checkpoints of runs from before `ssno train` recorded it. ./data must hold some of the training trajectories of
each, a few dozen are enough: `ssno data generate ks --viscosity 0.1 --preset paper --train 32 --valid 2 --test 1`.
"""

from dataclasses import asdict, replace

import tyro

from ssno.base import write_document
from ssno.data.envelope import Surveyor
from ssno.data.normalise import summarise
from ssno.models.pretrained import FORMAT, VERSION
from ssno.runs.checkpoint import CONFIG
from ssno.runs.open import open_run


def main(names: tyro.conf.Positional[tuple[str, ...]]) -> None:
    """Write the envelope of the training data at hand to the config.json of each checkpoint."""
    for name in names:
        run = open_run(name, device="cpu")
        assert run.data is not None, "a bundled checkpoint describes its data"
        data = replace(run, data=replace(run.data, train=None)).load("train")
        surveyor = Surveyor(data)
        summarise(data, look=surveyor.look_at)
        assert surveyor.envelope is not None
        units = {**run.config["forecaster"], "envelope": asdict(surveyor.envelope)}
        write_document(run.folder / CONFIG, {**run.config, "forecaster": units}, format=FORMAT, version=VERSION)
        print(f"{name}: {len(data)} trajectories of {len(data.times)} frames")


if __name__ == "__main__":
    tyro.cli(main)
