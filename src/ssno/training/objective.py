"""The training loss: mean over slots of the relative l2 error of one step, in normalised units.

With teacher forcing every slot of a trajectory is predicted from true frames at once; each frame's features are
computed once. Without, the model is unrolled from the first window on its own predictions and the same loss counts.

Axes: b trajectory, t frame, c state field, k context field, then the grid.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.data.windows import next_frames, slot_context
from ssno.forecasting.forecaster import Forecaster
from ssno.metrics.relative import frame_errors


class Objective(nn.Module):
    """A forecaster that answers with losses: what distributed training and torch.compile wrap."""

    def __init__(self, forecaster: Forecaster, *, teacher_forcing: bool):
        super().__init__()
        self.forecaster = forecaster
        self.teacher_forcing = teacher_forcing

    def forward(
        self, state: Tensor, context: Tensor, noise: Float[Tensor, "b t channel *grid"] | None
    ) -> Float[Tensor, " b"]:
        """Loss of each trajectory. `noise` is added to what the model sees, never to what it should say."""
        forecaster = self.forecaster
        plan = forecaster.window.plan(state.shape[1])
        units = forecaster.units(state[:, plan.given.start : plan.given.stop])
        clean = units.encode(state)
        known = slot_context(forecaster.encode_context(context), forecaster.alignment)
        seen = clean[:, :-1]
        if noise is not None:
            seen = seen + noise[:, :-1, : state.shape[2]]
            known = known + noise[:, :-1, state.shape[2] :]
        if self.teacher_forcing:
            answers, first = self._all_slots(seen, known, plan.loss_slots.start)
        else:
            answers, first = self._unrolled(seen, known, plan.given.stop, plan.predicted.stop), plan.start
        truth = next_frames(clean)[:, first : plan.loss_slots.stop]
        return frame_errors(answers[:, : truth.shape[1]], truth).mean(dim=1)

    def _all_slots(self, seen: Tensor, known: Tensor, first: int) -> tuple[Tensor, int]:
        answers = self.forecaster(seen, known)
        missing = seen.shape[1] - answers.shape[1]
        first = max(first, missing)  # a model that takes K frames as channels has no answer before its first window
        return answers[:, first - missing :], first

    def _unrolled(self, seen: Tensor, known: Tensor, given: int, stop: int) -> Tensor:
        state = self.forecaster.start(seen[:, :given], known[:, :given])
        frame, answers = seen[:, given - 1], []
        for slot in range(given - 1, stop - 1):
            frame, state = self.forecaster.step(frame, known[:, slot], state)
            answers.append(frame)
        return torch.stack(answers, dim=1)
