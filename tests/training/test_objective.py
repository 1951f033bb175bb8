"""The loss by hand, in every way of unrolling."""

import pytest
import torch
from torch import nn

from ssno.data.normalise import fit
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import Window
from ssno.forecasting.forecaster import Forecaster
from ssno.layers.memory import MemoryOptions
from ssno.models.baselines.fno import FNOConfig
from ssno.models.ssno import SSNO, SSNOConfig
from ssno.runs.options import Stage
from ssno.training.batches import prepare
from ssno.training.objective import Objective

FREE = Stage(teacher_forcing=0.0)
ALL_FORCED_BUT_STEPWISE = Stage(teacher_forcing=1 - 1e-12)


class Persistence(nn.Module):
    """The next frame is the last one."""

    def forward(self, frames):
        return frames[:, :, :1]


class Scaling(nn.Module):
    """The next frame is w times the last one: everything about it can be written down."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor, dtype=torch.float64))

    def forward(self, frames):
        return self.factor * frames


def teach(forecaster: Forecaster, frames: Frames, stage: Stage, **settings) -> torch.Tensor:
    """The loss of each trajectory; gradients are left in the model."""
    objective = Objective(forecaster)
    prepared = prepare(forecaster, frames, stage=stage, **settings)
    carry, total = None, torch.zeros(len(frames.state))
    for part in range(len(prepared.parts)):
        losses, carry = objective(prepared, part, carry)
        if losses.requires_grad:
            losses.sum().backward()
        total = total + losses.detach()
    return total


def relative(prediction: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return ((truth - prediction).flatten(2).norm(dim=2) / truth.flatten(2).norm(dim=2)).mean(dim=1)


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def assert_close_gradients(first: nn.Module, second: nn.Module, **tolerance) -> None:
    torch.testing.assert_close(gradients(first), gradients(second), **tolerance)


def learner(data: Trajectories, **fields) -> Forecaster:
    torch.manual_seed(0)
    return Forecaster(SSNO(SSNOConfig.tiny(**fields)), normalisers=fit(data, "zscore"), predict_increment=True)


def test_loss_is_the_mean_relative_error_of_the_slots_that_count(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    loss = teach(forecaster, frames, Stage())
    torch.testing.assert_close(loss, relative(frames.state[:, 2:-1], frames.state[:, 3:]))


def test_without_teacher_forcing_persistence_stays_at_the_last_given_frame(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    torch.testing.assert_close(teach(forecaster, frames, FREE), relative(frames.state[:, 2:3], frames.state[:, 3:]))


def test_noise_reaches_the_input_and_not_the_target(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=3))
    frames = waves.read(range(5))
    clean = prepare(forecaster, frames, range(5), stage=Stage())
    noisy = prepare(forecaster, frames, range(5), stage=Stage(), noise=0.5)
    assert torch.equal(clean.targets, noisy.targets)
    assert (noisy.inputs - clean.inputs).std() == pytest.approx(0.5, rel=0.1)
    losses, _ = Objective(forecaster)(noisy)
    torch.testing.assert_close(losses, relative(noisy.inputs[:, 2:], frames.state[:, 3:]))


def test_one_unrolled_step_equals_teacher_forcing(waves) -> None:
    short = waves.select(time_index=range(5))
    forecaster, frames = learner(short), short.read(range(5))
    torch.testing.assert_close(teach(forecaster, frames, Stage()), teach(forecaster, frames, FREE))


@pytest.mark.parametrize(
    "window", [Window(size=4), Window(protocol="memno", size=4), Window(protocol="fno", input_frames=4, horizon=3)]
)
def test_unrolling_with_all_frames_forced_is_teacher_forcing(waves, window) -> None:
    frames, models = waves.read(range(3)), []
    for stage in (Stage(), ALL_FORCED_BUT_STEPWISE):
        forecaster = learner(waves)
        forecaster.window = window
        loss = teach(forecaster, frames, stage)
        models.append((forecaster.model, loss))
    torch.testing.assert_close(models[0][1], models[1][1])
    assert_close_gradients(models[0][0], models[1][0], atol=1e-5, rtol=1e-4)


def test_unrolling_without_forcing_is_the_rollout(waves) -> None:
    forecaster, frames = learner(waves), waves.read(range(3))
    clean = forecaster.units(frames.state).encode(frames.state)
    state, frame, answers = forecaster.start(clean[:, :4], frames.context[:, :4]), clean[:, 3], []
    for _ in range(4):
        frame, state = forecaster.step(frame, frames.context[:, 0], state)
        answers.append(frame)
    torch.testing.assert_close(teach(forecaster, frames, FREE), relative(torch.stack(answers, 1), clean[:, 4:]))


def test_half_teacher_forced_frames_are_the_drawn_ones(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=2))
    frames = waves.read(range(6))
    prepared = prepare(forecaster, frames, range(6), stage=Stage(teacher_forcing=0.5))
    answer, expected = prepared.inputs[:, 1], []
    for slot in range(1, 7):
        if slot >= 2:
            answer = torch.where(prepared.teacher_forced[:, slot, None, None], prepared.inputs[:, slot], answer)
        expected.append(answer)
    losses, _ = Objective(forecaster)(prepared)
    torch.testing.assert_close(losses, relative(torch.stack(expected, 1), prepared.targets[:, 1:]))
    assert 0 < prepared.teacher_forced.float().mean() < 1


def unit_frames(count: int) -> Frames:
    """One trajectory of one point: frames 1, 2, 4, ... of which w = 2 would be the truth."""
    state = (2.0 ** torch.arange(count, dtype=torch.float64)).view(1, count, 1, 1)
    return Frames(state, state[:, :, :0])


def scaling(factor: float) -> Forecaster:
    data = Trajectories.from_array(unit_frames(6).state.numpy().astype("float32"), lengths=[1.0])
    return Forecaster(Scaling(factor), normalisers=fit(data, "none"), window=Window(size=1))


def cut_gradient(w: float, frames: int, cut: int) -> float:
    """d/dw of the mean of |w u - t| / t for u the own last prediction, a constant at the beginning of every piece.

    With t = 2^s and w < 2 the error of step s is 1 - w^s / 2^s, of which the last j factors w of its piece vary.
    """
    total = 0.0
    for step in range(1, frames + 1):
        inside = (step - 1) % cut + 1
        total -= inside * w ** (step - 1) / 2**step
    return total / frames


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_a_cut_gradient_is_the_one_by_hand(cut) -> None:
    forecaster = scaling(1.5)
    teach(forecaster, unit_frames(6), Stage(teacher_forcing=0.0, truncate=cut))
    assert forecaster.model.factor.grad.item() == pytest.approx(cut_gradient(1.5, 5, cut), rel=1e-6)


def test_cutting_changes_gradients_and_not_the_loss(waves) -> None:
    frames, seen = waves.read(range(3)), {}
    for cut in (0, 1, 2, 4, 9):
        forecaster = learner(waves)
        seen[cut] = teach(forecaster, frames, Stage(teacher_forcing=0.0, truncate=cut)), forecaster.model
    for cut in (1, 2, 4, 9):
        torch.testing.assert_close(seen[cut][0], seen[0][0])
    for cut in (4, 9):  # as long as the unroll, and longer
        assert_close_gradients(seen[cut][1], seen[0][1], atol=0.0, rtol=0.0)
    name = "lift.weight"
    full = seen[0][1].get_parameter(name).grad
    assert (seen[2][1].get_parameter(name).grad - full).norm() > 1e-3 * full.norm()


@pytest.mark.parametrize(
    "stage", [Stage(teacher_forcing=0.0), Stage(teacher_forcing=0.5), Stage(teacher_forcing=0.0, truncate=2)]
)
def test_recomputed_steps_have_the_same_gradients(waves, stage) -> None:
    frames, models = waves.read(range(3)), []
    for recompute in (False, True):
        forecaster = learner(waves)
        teach(forecaster, frames, Stage(**{**vars(stage), "gradient_checkpointing": recompute}))
        models.append(forecaster.model)
    assert_close_gradients(models[0], models[1], atol=0.0, rtol=0.0)


def test_recomputed_steps_keep_less(waves) -> None:
    def kept(recompute: bool) -> int:
        total = 0

        def count(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal total
            total += tensor.numel()
            return tensor

        forecaster = learner(waves)
        stage = Stage(teacher_forcing=0.0, gradient_checkpointing=recompute)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            Objective(forecaster)(prepare(forecaster, waves.read(range(3)), stage=stage))
        return total

    assert kept(True) < 0.7 * kept(False)  # kernels, made once per rollout, are kept in both


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_pushforward_knows_only_the_last_step(rounds) -> None:
    """Slot s sees the constant w^j 2^(s-j), j = min(rounds, s); d/dw of its error is minus input over truth."""
    w, forecaster = 1.5, scaling(1.5)
    loss = teach(forecaster, unit_frames(6), Stage(pushforward=rounds))
    steps = [min(rounds, slot) for slot in range(5)]
    inputs = [w**j * 2.0 ** (slot - j) for slot, j in enumerate(steps)]
    truth = [2.0 ** (slot + 1) for slot in range(5)]
    assert loss.item() == pytest.approx(sum(1 - w * u / t for u, t in zip(inputs, truth, strict=True)) / 5, rel=1e-6)
    expected = -sum(u / t for u, t in zip(inputs, truth, strict=True)) / 5
    assert forecaster.model.factor.grad.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "kind", [SSNOConfig.tiny(), FNOConfig.tiny(frames_as_channels=3, memory=MemoryOptions(0, d_state=8))]
)
def test_enough_pushes_give_the_rollout(waves, kind) -> None:
    torch.manual_seed(0)
    size = getattr(kind, "frames_as_channels", 0) or 4
    forecaster = Forecaster(
        kind.build(), normalisers=fit(waves, "zscore"), window=Window(size=size), predict_increment=True
    )
    frames = waves.read(range(3))
    torch.testing.assert_close(teach(forecaster, frames, Stage(pushforward=7 - size)), teach(forecaster, frames, FREE))


@pytest.mark.parametrize(
    "window",
    [
        Window(size=2),
        Window(protocol="memno", size=2),
        Window(protocol="fno", size=2, input_frames=3),
        Window("ffno", size=2),
    ],
)
@pytest.mark.parametrize("forcing", [1.0, 0.0])
def test_short_unrolls_see_pieces_of_the_trajectories(waves, window, forcing) -> None:
    window = Window(**{**vars(window), "horizon": 4})
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=window)
    frames = waves.read(range(20))
    prepared = prepare(forecaster, frames, range(20), stage=Stage(frames=2, teacher_forcing=forcing), key=(0, 1, 2))
    given = {"first_k": 2, "memno": 1, "fno": 3, "ffno": 2}[window.protocol]
    assert sum(map(len, prepared.parts)) == 2
    assert prepared.inputs.shape[1] == given + 1
    firsts = [
        next(f for f in range(6) if torch.equal(frames.state[n, f : f + given + 1], prepared.inputs[n]))
        for n in range(20)
    ]
    last = (7 if window.protocol == "fno" else 8) - given - 2
    assert set(firsts) == set(range(last + 1)), "every place should come up"
    Objective(forecaster)(prepared)


def test_draws_depend_on_seed_epoch_step_and_sample_alone(waves) -> None:
    forecaster = Forecaster(Persistence(), normalisers=fit(waves, "none"), window=Window(size=2))
    stage = Stage(frames=3, teacher_forcing=0.5)

    def prepared(samples, key):
        return prepare(forecaster, waves.read(samples), samples, stage=stage, key=key, noise=0.1)

    whole, share = prepared([3, 7, 11], (0, 1, 2)), prepared([11, 3], (0, 1, 2))
    for name in ("inputs", "targets", "teacher_forced"):
        assert torch.equal(getattr(whole, name)[[2, 0]], getattr(share, name))
    for key in ((1, 1, 2), (0, 2, 2), (0, 1, 3)):
        assert not torch.equal(prepared([3, 7, 11], key).teacher_forced, whole.teacher_forced)


def test_points_of_a_sphere_count_by_their_area() -> None:
    state = torch.randn(2, 3, 1, 6, 12, dtype=torch.float64)
    waves = Trajectories.from_array(state)
    forecaster = Forecaster(Scaling(0.5), normalisers=fit(waves, "none"), window=Window(size=1)).double()
    area = torch.linspace(0.0, 1.0, 6, dtype=torch.float64)[:, None]
    prepared = prepare(forecaster, waves.read(range(2)), stage=Stage())
    losses, _ = Objective(forecaster, area=area)(prepared)
    weight = area.sqrt()
    torch.testing.assert_close(
        losses, relative(0.5 * weight * prepared.inputs, weight * prepared.targets), check_dtype=False
    )
