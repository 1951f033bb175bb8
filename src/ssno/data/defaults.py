"""What the literature does with each dataset unless told otherwise: frames, points, splits, noise, context.

    dataset           stored -> used frames    points    noise   context at    split of the public file
    burgers           201 -> 20 (0:140:7)      as stored 5e-3    -             first 2048 / last 1000
    ks                26                       as stored 1e-3    -             one file per split
    torus-li          20                       64        1e-3    -             first 1000 / last 200
    torus-vis         200 -> 20 (0::10)        64        1e-3    target        groups in the file
    torus-vis-force   200 -> 20 (0::10)        64        1e-3    target        groups in the file
    ce-rm             21 -> 11 (0::2)          64        1e-3    same          first 1000 / last 200
    gce-rt            11                       64        1e-3    same          first 1000 / last 200
    kt-foil           2                        all       0       -             as stored; coordinates are not disturbed
    airfrans          2                        all       0       -             by its manifest; AirfRANS.pt: 800 / 200

Every entry can be overridden where it is used. Datasets that are not listed use everything as it is stored. Our own
torus and Euler data hold only the frames that are used (20, 20 and 11), so nothing is left out of those. Where there is
no validation split, the last tenth of the training trajectories is it (`ssno.data.division.holdout`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ssno.data.windows import Alignment


@dataclass(frozen=True)
class Defaults:
    """Conventions of one dataset. `splits` divide a public file that holds all trajectories; `cloud`: points, no grid.

    `time_index` thins files with at least `thinned_from` frames; shorter ones are taken whole.
    """

    time_index: slice = field(default_factory=lambda: slice(None))  # slices do not hash in Python 3.11
    thinned_from: int = 0
    points: int | None = None
    noise: float = 1e-3
    """Published, in [0, 1] units."""
    own_noise: float = 1e-3
    """Of our recipe, in standard deviations. Burgers: at 1e-3 some forecasts run away after long trainings
    (results/burgers-noise.json); the published 5e-3 are 4.4e-2 of these."""
    alignment: Alignment = "same"
    cloud: bool = False
    splits: Mapping[str, slice] = field(default_factory=dict)

    def frames_of(self, stored: int) -> slice:
        """Which of `stored` frames to use."""
        return self.time_index if stored >= self.thinned_from else slice(None)

    @property
    def published(self) -> int:
        """Trajectories that the published splits take together."""
        return self.splits["train"].stop - self.splits["test"].start if self.splits else 0


def _first_and_last(train: int, test: int) -> dict[str, slice]:
    """First trajectories to train on, the last to report on."""
    return {"train": slice(0, train), "test": slice(-test, None)}


EVERY_TENTH = slice(0, None, 10)
TABLE: Mapping[str, Defaults] = {
    "burgers": Defaults(slice(0, 140, 7), noise=5e-3, own_noise=3e-2, splits=_first_and_last(2048, 1000)),
    "torus-li": Defaults(points=64, splits=_first_and_last(1000, 200)),
    "torus-vis": Defaults(EVERY_TENTH, 21, points=64, alignment="target"),
    "torus-vis-force": Defaults(EVERY_TENTH, 21, points=64, alignment="target"),
    "ce-rm": Defaults(slice(0, None, 2), 12, points=64, splits=_first_and_last(1000, 200)),
    "gce-rt": Defaults(points=64, splits=_first_and_last(1000, 200)),
    "kt-foil": Defaults(noise=0.0, cloud=True),
    "airfrans": Defaults(noise=0.0, cloud=True, splits=_first_and_last(800, 200)),
}


def dataset_conventions(name: str | None) -> Defaults:
    """The conventions of a dataset; those of no particular one if the name is not listed, or there is none."""
    return TABLE.get(name or "", Defaults())
