"""Others' modules in our workbench, and our scan in others' modules."""

import os
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest
import torch
from tests.losses import losses
from torch import Tensor, nn

from ssno.models.operator import count_parameters
from ssno.models.wrapped import WrappedConfig, WrappedModule


class SpectralNetwork(nn.Module):
    """What a network from elsewhere looks like: complex weights, shared ones too, and settings in its state dict."""

    def __init__(self, channels: int, *, axes: int = 1):
        super().__init__()
        self.axes = axes
        self.weight = nn.Parameter(torch.randn(channels, *(3,) * axes, dtype=torch.cfloat))
        self.inner = nn.Module()
        self.inner.shared = self.weight
        self.mix = nn.Linear(channels, 1)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        assert self.weight.is_complex()
        assert self.inner.shared is self.weight
        self.calls += 1
        dims = tuple(range(-self.axes, 0))
        spectrum = torch.fft.fftn(x, dim=dims)[(..., *(slice(3),) * self.axes)] * self.weight
        smooth = torch.fft.ifftn(spectrum, s=x.shape[-self.axes :], dim=dims).real
        return self.mix((x + smooth).movedim(1, -1)).movedim(-1, 1)

    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        state["_metadata"] = {"activation": torch.relu, "axes": self.axes}
        return state


def test_a_wrapped_module_computes_what_it_did() -> None:
    network = SpectralNetwork(8, axes=2)
    frames = torch.randn(3, 5, 2, 8, 8)
    expected = network(frames[:, 1:].flatten(1, 2))
    model = WrappedModule(network, in_channels=2, n_dims=2, frames_as_channels=4)
    assert torch.equal(model(frames)[:, 0], expected)
    assert model.module.calls == 2


def test_complex_weights_become_real_pairs_and_count_double() -> None:
    network = SpectralNetwork(4)
    expected = count_parameters(network)
    model = WrappedModule(network, frames_as_channels=4)
    assert count_parameters(model) == expected == 2 * 4 * 3 + 5
    assert not any(parameter.is_complex() for parameter in model.parameters())


def test_the_state_dict_holds_real_tensors_only() -> None:
    state = WrappedModule(SpectralNetwork(1)).state_dict()
    assert sorted(state) == [
        "module.calls",
        "module.inner.shared",
        "module.mix.bias",
        "module.mix.weight",
        "module.weight",
    ]
    assert all(isinstance(value, Tensor) and not value.is_complex() for value in state.values())


@pytest.mark.parametrize("stacked", [0, 4])
def test_streaming_equals_the_whole_trajectory(stacked) -> None:
    model = WrappedModule(SpectralNetwork(max(1, stacked)), frames_as_channels=stacked).eval()
    frames = torch.randn(2, 6, 1, 8)
    state = model.start(frames[:, :4])
    for slot in (3, 4, 5):
        prediction, state = model.step(frames[:, slot], state)
        torch.testing.assert_close(prediction, model(frames[:, : slot + 1])[:, -1])


def test_training_moves_every_weight_and_release_gives_them_back() -> None:
    model = WrappedModule(SpectralNetwork(4), frames_as_channels=4)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    frames, target = torch.randn(8, 4, 1, 8), torch.randn(8, 1, 1, 8)
    found = losses(model, frames, target, steps=20)
    assert found[-1] < found[0]
    assert all((parameter != before[name]).any() for name, parameter in model.named_parameters())
    expected = model(frames)[:, 0]
    network = model.release()
    assert network.weight.is_complex()
    assert torch.equal(network(frames[:, :, 0]), expected)


def test_double_precision_reaches_complex_weights() -> None:
    model = WrappedModule(SpectralNetwork(1)).double()
    assert model(torch.randn(1, 2, 1, 8, dtype=torch.float64)).dtype == torch.float64


def test_saved_weights_come_back_bitwise_into_a_module_of_the_same_shape(tmp_path) -> None:
    model = WrappedModule(SpectralNetwork(3), in_channels=2, coordinates=True)
    model.save_pretrained(tmp_path)
    back = WrappedModule.from_pretrained(tmp_path, SpectralNetwork(3))
    frames = torch.randn(1, 2, 2, 8)
    assert torch.equal(back(frames), model(frames))
    assert back.config == model.config == WrappedConfig(in_channels=2, coordinates=True, module="SpectralNetwork")
    assert not back.training


def test_a_folder_alone_is_not_enough(tmp_path) -> None:
    WrappedModule(SpectralNetwork(1)).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"does not contain its network \(SpectralNetwork\). Build that"):
        WrappedModule.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="does not fit the model of its config.json"):
        WrappedModule.from_pretrained(tmp_path, SpectralNetwork(2))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Conv1d(1, 2, 1), r"`module` must return a tensor .* = \(3, 1, 8\), got \(3, 2, 8\)"),
        (nn.MaxPool1d(1, return_indices=True), "got tuple"),
    ],
)
def test_modules_that_return_something_else_are_refused(module, message) -> None:
    with pytest.raises(ValueError, match=message):
        WrappedModule(module)(torch.randn(1, 3, 1, 8))


def test_our_scan_works_in_an_ordinary_module_without_the_rest_of_the_library() -> None:
    script = """
        import sys, torch
        from ssno.layers.axial import BidirectionalScan

        class Classifier(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(torch.nn.Conv1d(2, 8, 1), BidirectionalScan(8, d_state=8))
                self.output = torch.nn.Linear(8, 2)

            def forward(self, x):
                return self.output(self.layers(x).mean(-1))

        torch.manual_seed(0)
        model, x = Classifier(), torch.randn(32, 2, 20)
        label = (x[:, 0].sum(-1) > x[:, 1].sum(-1)).long()
        optimiser = torch.optim.Adam(model.parameters(), 3e-2)
        losses = []
        for _ in range(30):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), label)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        ours = {name.split(".")[1] for name in sys.modules if name.startswith("ssno.")}
        assert losses[-1] < 0.5 * losses[0], losses
        assert ours <= {"layers", "ssm", "native", "base"}, ours
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=120)


@pytest.mark.verify
def test_neuraloperator_models_train_evaluate_and_survive_saving(tmp_path) -> None:
    """In an environment of its own: torch first, so that nothing replaces it."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    project = Path(__file__).parents[2]
    for packages in (["torch==2.13.0"], ["neuraloperator==2.0.0"], [str(project)]):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True, timeout=1800)
    script = """
        import tempfile, torch
        from neuralop.models import FNO, TFNO, UNO
        from ssno.models.operator import count_parameters
        from ssno.models.wrapped import WrappedModule

        assert torch.__version__.startswith("2.13.0"), torch.__version__
        common = dict(in_channels=4, out_channels=1, hidden_channels=16)
        networks = {
            "FNO": lambda: FNO(n_modes=(8, 8), n_layers=2, **common),
            "TFNO": lambda: TFNO(n_modes=(8, 8), n_layers=2, factorization="Tucker", rank=0.2, **common),
            "UNO": lambda: UNO(n_layers=3, uno_out_channels=[16] * 3, uno_n_modes=[[6, 6]] * 3,
                               uno_scalings=[[1, 1], [0.5, 0.5], [2, 2]], horizontal_skips_map={2: 0},
                               channel_mlp_skip="linear", **common),
        }
        x, y = torch.meshgrid(*[2 * torch.pi * torch.arange(16) / 16] * 2, indexing="ij")
        phase = torch.rand(8, 1, 1, 1, 1) + 0.3 * torch.arange(5)[:, None, None, None]
        waves = torch.sin(x + y - phase)
        for name, make in networks.items():
            torch.manual_seed(0)
            model = WrappedModule(make(), n_dims=2, frames_as_channels=4)
            assert not any(parameter.is_complex() for parameter in model.parameters())
            optimiser = torch.optim.Adam(model.parameters(), 3e-3)
            errors = []
            for _ in range(60):
                optimiser.zero_grad()
                error = (model(waves[:, :4]) - waves[:, 4:]).norm() / waves[:, 4:].norm()
                error.backward()
                optimiser.step()
                errors.append(error.item())
            assert errors[-1] < errors[0] / 5, (name, errors[0], errors[-1])
            model.eval()
            state, frame = model.start(waves[:, :4]), waves[:, 3]
            for _ in range(3):
                frame, state = model.step(frame, state)
            assert frame.isfinite().all()
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder)
                back = WrappedModule.from_pretrained(folder, make())
            assert torch.equal(back(waves[:, :4]), model(waves[:, :4]))
            print(name, count_parameters(model), errors[0], errors[-1])
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(
        [python, "-c", textwrap.dedent(script)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stderr
