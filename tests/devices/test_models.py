"""Every model makes all its tensors where its input is: forward, loss, backward, optimiser step, streaming, frozen."""

import copy

import pytest
import torch
from tests.families import supported

from ssno.forecasting.metrics import frame_errors
from ssno.models.frozen import freeze
from ssno.models.registry import ALL_MODELS, CLOUD_MODELS, MODELS, SLOW_MODELS, SPHERE_MODELS, model_config
from ssno.native.engine import use

CASES = [(name, (16,) * n) for name in (*MODELS, *SLOW_MODELS) for n in (1, 2) if supported(name, n)]
CASES += [(name, (16, 32)) for name in SPHERE_MODELS] + [(name, (24,)) for name in CLOUD_MODELS]
ENGINES = [(name, grid, "torch") for name, grid in CASES]
ENGINES += [(name, grid, "plain") for name, grid in CASES if name.startswith("ssno")]  # others know no engines


def near(away: torch.Tensor, here: torch.Tensor) -> bool:
    """Whether numbers are on the device, and are those of the CPU to rounding."""
    return away.device.type == "gpu" and torch.allclose(away.cpu(), here, rtol=1e-4, atol=1e-5)


def test_no_model_is_left_out() -> None:
    assert {name for name, _ in CASES} == set(ALL_MODELS)


@pytest.mark.parametrize(("name", "grid", "engine"), ENGINES)
def test_a_model_learns_and_streams_on_the_device_as_on_the_cpu(gpu, name, grid, engine) -> None:
    here = model_config(f"{name}:tiny", n_dims=len(grid)).build()
    for layer in here.modules():
        if isinstance(layer, torch.nn.Dropout):  # the two devices drop different features
            layer.eval()
    fields = here.config.out_channels
    frames = torch.randn(2, 6, here.config.in_channels, *grid)
    away, frames_away = copy.deepcopy(here).to(gpu), frames.to(gpu)
    with use(engine):
        outputs = []
        for model, given in ((away, frames_away), (here, frames)):
            output = model(given)
            loss = frame_errors(output, given[:, -output.shape[1] :, :fields]).mean()
            weights = [weight for weight in model.parameters() if weight.requires_grad]
            if weights:
                loss.backward()
                torch.optim.AdamW(weights, lr=1e-3).step()
            outputs.append(output.detach())
        assert near(*outputs)
        for (weight_name, weight), (_, expected) in zip(away.named_parameters(), here.named_parameters(), strict=True):
            assert (weight.grad is None) == (expected.grad is None), weight_name
            if expected.grad is not None:
                assert near(weight.grad, expected.grad), weight_name

        away.load_state_dict(here.state_dict())
        away.eval(), here.eval()
        with torch.no_grad():
            streamed = []
            for model, given in ((away, frames_away), (here, frames)):
                state = model.start(given, spacing=None)
                frame, _ = model.step(given[:, -1], state)
                streamed.append(frame)
            assert near(*streamed)


@pytest.mark.parametrize("name", ["ssno", "ssno-ff", "ffno", "fno"])
def test_a_frozen_model_works_on_the_device(gpu, name) -> None:
    here = model_config(f"{name}:tiny").build().eval()
    frames = torch.randn(2, 4, 1, 16)
    with use("torch"):
        expected = freeze(here, grid=(16,), batch=2).rollout(frames, 2)
        assert near(freeze(here.to(gpu), grid=(16,), batch=2).rollout(frames.to(gpu), 2), expected)
