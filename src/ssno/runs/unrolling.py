"""How trajectories are unrolled while a model learns: one typed schedule over the run.

    forcing      share of frames that are true instead of the model's own        1 teacher forcing, 0 free running
    frames       predicted frames per trajectory, cut out at a random place      0 for all there are
    pushforward  times the inputs are first replaced by predictions, without gradient
    cut          truncated back-propagation: the gradient ends every so many frames
    recompute    gradient checkpointing: keep the input of each step, compute its inside again in the backward pass

The first three are lists over the run. One value holds throughout; n values divide the epochs into n parts of equal
length, so `forcing 1 0.5 0` lets go in three stages and `frames 4 8 16 16` gives the longest unroll half of the run.
The `Stage` of an epoch is a function of the epoch alone: a resumed run needs nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssno.data.windows import Window


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What holds in one epoch."""

    forcing: float = 1.0
    frames: int = 0
    pushforward: int = 0
    cut: int = 0
    recompute: bool = False

    @property
    def parallel(self) -> bool:
        """With all frames given, all slots are computed at once; otherwise one frame after the other."""
        return self.forcing == 1

    def window(self, window: Window) -> Window:
        """The protocol on pieces of this stage's length."""
        return replace(window, horizon=self.frames) if self.frames else window

    def length(self, window: Window, frames: int) -> int:
        """How many of the frames of a trajectory this stage looks at: the given ones and `frames` more."""
        plan = window.plan(frames)
        return len(plan.given) + self.frames if self.frames else frames


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """How trajectories are unrolled in training. Lists divide the run into stages of equal length."""

    forcing: tuple[float, ...] = (1.0,)
    """Share of true frames among the inputs, per stage: 1 is teacher forcing, 0 feeds the model its own predictions."""
    frames: tuple[int, ...] = (0,)
    """Predicted frames per trajectory, per stage; 0 for all there are."""
    pushforward: tuple[int, ...] = (0,)
    """Times that inputs are replaced by predictions without gradient before the loss is taken, per stage."""
    cut: int = 0
    """Truncated back-propagation: end the gradient every so many predicted frames; 0 for never."""
    recompute: bool = False
    """Gradient checkpointing: compute each unrolled step again in the backward pass instead of keeping its inside."""

    def __post_init__(self) -> None:
        for name in ("forcing", "frames", "pushforward"):
            if not getattr(self, name):
                raise ValueError(f"`rollout.{name}` is empty. Give one value, or one for each stage of the run.")
        if not all(0 <= share <= 1 for share in self.forcing):
            raise ValueError(f"`rollout.forcing` is a share of frames and must lie in [0, 1], got {self.forcing}.")
        for name in ("frames", "pushforward"):
            if min(getattr(self, name)) < 0:
                raise ValueError(f"`rollout.{name}` must not be negative, got {getattr(self, name)}.")
        if self.cut < 0:
            raise ValueError(f"`rollout.cut` must be a number of frames, or 0 for no cut, got {self.cut}.")
        if all(share == 1 for share in self.forcing):
            for name, what in (("cut", "no gradient passes from step to step"), ("recompute", "there are no steps")):
                if getattr(self, name):
                    raise ValueError(
                        f"`rollout.{name}` does nothing here: with `rollout.forcing` 1 all frames are computed at once "
                        f"and {what}. Lower `rollout.forcing`, or save memory with a smaller `batch_size`."
                    )

    def stage(self, epoch: int, epochs: int) -> Stage:
        """What holds in epoch number `epoch` of `epochs`."""
        return Stage(
            forcing=self.forcing[len(self.forcing) * epoch // epochs],
            frames=self.frames[len(self.frames) * epoch // epochs],
            pushforward=self.pushforward[len(self.pushforward) * epoch // epochs],
            cut=self.cut,
            recompute=self.recompute,
        )

    def stages(self, epochs: int) -> list[Stage]:
        """The different stages of a run, in order; senseless ones and ones that would never be reached are refused."""
        for name in ("forcing", "frames", "pushforward"):
            count = len(getattr(self, name))
            if count > epochs:
                raise ValueError(
                    f"`rollout.{name}` has {count} stages, but the run only {epochs} epochs. Train longer or drop some."
                )
        counts = {len(self.forcing), len(self.frames), len(self.pushforward)}
        begins = sorted({-(-part * epochs // count) for count in counts for part in range(count)})
        found = {epoch: self.stage(epoch, epochs) for epoch in begins}
        for epoch, stage in found.items():
            if stage.pushforward and not stage.parallel:
                raise ValueError(
                    f"In epoch {epoch + 1} of {epochs}, `rollout.pushforward` is {stage.pushforward} and "
                    f"`rollout.forcing` {stage.forcing:g}: the model already sees its own predictions. Set "
                    "pushforward to 0 or forcing to 1."
                )
        return list(dict.fromkeys(found.values()))


def check_frames(stages: Sequence[Stage], window: Window, frames: int) -> None:
    """Refuse stages that need longer trajectories than there are."""
    plan = window.plan(frames)
    for stage in stages:
        if stage.length(window, plan.predicted.stop) > plan.predicted.stop:
            there = plan.predicted.stop - len(plan.given)
            raise ValueError(
                f"`rollout.frames` asks for {stage.frames} predicted frames, but after {len(plan.given)} given ones "
                f"these trajectories have {there}. Use at most {there}, or 0 for all."
            )
        predicted = stage.frames or len(plan.loss_slots)
        if stage.pushforward >= predicted:
            raise ValueError(
                f"`rollout.pushforward` is {stage.pushforward}, but of {predicted} predicted frames at most "
                f"{predicted - 1} can be inputs. Use fewer, or more `rollout.frames`."
            )
