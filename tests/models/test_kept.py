"""What depends on weights and grid alone is kept between predictions, and dropped when a weight changes."""

import copy
import pickle
import threading

import pytest
import torch

from ssno.layers.memory import MemoryOptions
from ssno.models import FFNOConfig, SSNOConfig, UNetConfig, model_config
from ssno.native import use


@pytest.fixture
def model():
    return SSNOConfig.tiny().build().eval()


FRAMES = torch.randn(2, 4, 1, 16, generator=torch.Generator().manual_seed(1))


def predictions(model, frames=FRAMES) -> torch.Tensor:
    with torch.no_grad():
        return model(frames)


def fresh(model, frames=FRAMES) -> torch.Tensor:
    """With nothing kept."""
    return predictions(copy.deepcopy(model), frames)


def test_a_second_prediction_samples_no_kernel(model, monkeypatch) -> None:
    first = predictions(model)
    monkeypatch.setattr("ssno.layers.modes.kernel", lambda *_, **__: pytest.fail("a kernel was sampled"))
    assert torch.equal(predictions(model), first)
    with torch.inference_mode():
        assert torch.equal(model(FRAMES), first)


def in_place(model) -> None:
    with torch.no_grad():
        model.blocks_before[0].scans[0].ahead.modes.log_step.add_(0.5)


def in_a_buffer(model) -> None:
    model.memory.block.mix.weight.detach().mul_(2)


def loaded(model) -> None:
    model.load_state_dict(SSNOConfig.tiny().build().state_dict())


def assigned(model) -> None:
    model.load_state_dict(SSNOConfig.tiny().build().state_dict(), assign=True)


def stepped(model) -> None:
    with torch.enable_grad():
        model(FRAMES).square().mean().backward()
    torch.optim.AdamW(model.parameters(), 0.1).step()


def new_parameter(model) -> None:
    model.blocks_after[0].scans[0].back.skip = torch.nn.Parameter(torch.randn(16))


def new_module(model) -> None:
    model.blocks_before[0] = copy.deepcopy(model.blocks_after[0])


def other_data(model) -> None:
    skip = model.blocks_before[0].scans[0].ahead.skip
    skip.data = torch.randn(16)


def rounded(model) -> None:
    model.to(torch.bfloat16).to(torch.float32)


@pytest.mark.parametrize(
    "change",
    [in_place, in_a_buffer, loaded, assigned, stepped, new_parameter, new_module, other_data, rounded],
)
@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_every_change_of_weights_is_noticed(model, change, engine) -> None:
    with use(engine):
        before = predictions(model)
        change(model)
        after = predictions(model)
        assert not torch.equal(after, before)
        assert torch.equal(after, fresh(model))


def test_writes_behind_the_back_of_pytorch_are_seen_after_training_mode(model) -> None:
    before = predictions(model)
    model.blocks_before[0].scans[0].ahead.modes.log_step.data.add_(0.5)  # no version counts this
    assert torch.equal(predictions(model), before)
    assert torch.equal(predictions(model.train().eval()), fresh(model))


def test_copies_keep_nothing_of_the_original(model) -> None:
    predictions(model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other._weight_cache.entries == {}
        in_place(other)
        assert torch.equal(predictions(other), fresh(other))
    assert torch.equal(predictions(model), fresh(model))


def test_grids_batches_and_spacings_are_kept_apart(model) -> None:
    cases = [
        (FRAMES, None),
        (FRAMES, 2.0),
        (FRAMES[:1], None),
        (torch.randn(1, 4, 1, 20), [0.5]),
        (FRAMES[:, :2], None),
    ]
    with torch.no_grad():
        for _ in range(2):
            for frames, spacing in cases:
                assert torch.equal(model(frames, spacing=spacing), copy.deepcopy(model)(frames, spacing=spacing))
    assert len(model._weight_cache.entries) <= 4


def test_threads_share_a_model(model) -> None:
    expected = {length: fresh(model, torch.ones(1, 4, 1, length)) for length in (8, 12, 16, 20, 24)}
    wrong = []

    def work(length: int) -> None:
        for _ in range(20):
            if not torch.equal(predictions(model, torch.ones(1, 4, 1, length)), expected[length]):
                wrong.append(length)

    threads = [threading.Thread(target=work, args=(length,)) for length in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gradients_never_come_from_what_is_kept(model) -> None:
    predictions(model)
    model(FRAMES).square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize(
    "name", ["ssno", "ssno-vm", "ffno", "unet", "gkt", "fno-r", "factformer", "persistence", "linear"]
)
@pytest.mark.parametrize("given", [4, 6])
def test_the_next_frame_alone_is_the_last_slot(name, given) -> None:
    model = model_config(f"{name}:tiny").build().eval()
    frames = torch.randn(2, given, 1, 32)
    with torch.no_grad():
        torch.testing.assert_close(model.predict_next(frames), model(frames)[:, -1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "config", [SSNOConfig.tiny(memory=MemoryOptions(0, d_state=8)), FFNOConfig.tiny(memory=MemoryOptions(0, d_state=8))]
)
def test_the_next_frame_of_a_markovian_model_needs_one(config) -> None:
    model = config.build().eval()
    with torch.no_grad():
        expected = model(FRAMES.repeat(1, 1, 1, 2))[:, -1]
        torch.testing.assert_close(model.predict_next(FRAMES.repeat(1, 1, 1, 2)), expected, rtol=1e-4, atol=1e-5)


def test_skips_follow_the_newest_frame() -> None:
    model = UNetConfig.tiny().build().eval()
    frames = torch.randn(3, 4, 1, 16)
    with torch.no_grad():
        torch.testing.assert_close(model.predict_next(frames), model(frames)[:, -1], rtol=1e-4, atol=1e-5)
