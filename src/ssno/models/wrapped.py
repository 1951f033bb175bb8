"""Other people's networks in our workbench: any `nn.Module` that maps images to images becomes a model of ours.

    model = WrappedModule(neuralop.models.FNO(n_modes=(16, 16), in_channels=4, out_channels=1, hidden_channels=32),
                            n_dims=2, frames_as_channels=4)

The module takes (n, c, *grid), where c counts the fields of all stacked frames (and coordinates, if asked for), and
returns (n, out_channels, *grid). It trains, streams and is saved like every other model. Two habits of such modules are
handled on the way in:

- Complex parameters become real ones with a last axis (real, imaginary), so that every optimiser, file and count takes
  them; the module sees them as complex numbers while it runs. `release` turns them back.
- Whatever in the state dict is no tensor (neuraloperator keeps its constructor's arguments there) is left out, and a
  tensor that appears under two names is written twice, because files of tensors cannot share.

A folder on disk holds the weights but not the module: `from_pretrained` needs one to fill. `spacing` has no effect.

Axes: n frame, c field.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.layers.pointwise import with_coordinates
from ssno.models.config import GridConfig
from ssno.models.operator import MemoryOperator, PrecomputedWeights
from ssno.models.pretrained import WEIGHTS, Pretrained, load_weights, model_folder, read_config


@dataclass(frozen=True, kw_only=True)
class WrappedConfig(GridConfig):
    """A network from elsewhere: how it is called. The network itself must be given."""

    model_name: ClassVar[str] = "wrapped"
    origin: ClassVar[str] = "elsewhere"

    coordinates: bool | tuple[int, ...] = False
    module: str = ""
    """The class of the network, for the reader; filled in when a network is wrapped."""

    def build(self) -> "WrappedModule":
        """Refused: only whoever has the network can build it."""
        raise ValueError(
            f"A 'wrapped' configuration does not contain its network ({self.module or 'unknown'}). Build that "
            "yourself, then wrap it with `WrappedModule(network, config)`, or fill it with saved weights through "
            "`WrappedModule.from_pretrained(folder, network)`."
        )


class WrappedModule(MemoryOperator, Pretrained):
    """Wrap a module on (n, c, *grid): `WrappedModule(module, n_dims=2, frames_as_channels=4)`.

    Without `frames_as_channels` the module sees one frame at a time: a Markovian model. The module belongs to the
    wrapper from then on; call it through the wrapper, or take it back with `release`.
    """

    config_type = WrappedConfig
    config: WrappedConfig

    def __init__(self, module: nn.Module, config: WrappedConfig | None = None, **fields: Any):
        super().__init__()
        self.config = replace(config or WrappedConfig(), **fields, module=type(module).__qualname__)
        self.memory = None
        self.module = module
        self.complex_names = [name for name, parameter in module.named_parameters() if parameter.is_complex()]
        self._exchange(torch.view_as_real)
        self.register_state_dict_post_hook(keep_separate_tensors)

    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, None]:
        """All of the network."""
        fields = with_coordinates(frames, self.config.coordinate_axes())
        real = dict(self.module.named_parameters())
        parameters = {name: torch.view_as_complex(real[name]) for name in self.complex_names}
        prediction = torch.func.functional_call(self.module, parameters, (fields,))
        expected = (frames.shape[0], self.config.out_channels, *frames.shape[2:])
        if not isinstance(prediction, Tensor) or prediction.shape != expected:
            came = tuple(prediction.shape) if isinstance(prediction, Tensor) else type(prediction).__name__
            raise ValueError(
                f"`module` must return a tensor (n, out_channels, *grid) = {expected}, got {came}. "
                "Wrap it in a module that does, or set `out_channels`."
            )
        return prediction, None

    def after(self, features: Tensor, skip: None, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """Nothing is left to do."""
        return features

    def release(self) -> nn.Module:
        """Give the module back with its complex parameters, trained. The wrapper must not be used afterwards."""
        self._exchange(torch.view_as_complex)
        return self.module

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, module: nn.Module | None = None, *, revision: str | None = None
    ) -> "WrappedModule":
        """Fill `module`, a network of the same shape, with saved weights and wrap it, in evaluation mode."""
        folder = model_folder(folder, revision)
        config = WrappedConfig.from_json(read_config(folder))
        model = config.build() if module is None else cls(module, config)
        load_weights(model, folder / WEIGHTS)
        return model.eval()

    def _exchange(self, view: Callable[[Tensor], Tensor]) -> None:
        """Replace the parameters in `complex_names`, wherever they are shared, by another view of their numbers."""
        views: dict[nn.Parameter, nn.Parameter] = {}
        for name, parameter in self.module.named_parameters():
            if name in self.complex_names:
                views[parameter] = nn.Parameter(view(parameter.detach()).clone(), parameter.requires_grad)
        for part in self.module.modules():
            for name, held in part._parameters.items():  # not by attribute: some modules intercept that
                if held in views:
                    part._parameters[name] = views[held]


def keep_separate_tensors(module: nn.Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any]) -> None:
    """Leave nothing in a state dict but tensors, each with memory of its own."""
    seen = set()
    for name, value in list(state.items()):
        if not isinstance(value, Tensor):
            del state[name]
        elif value.untyped_storage().data_ptr() in seen:
            state[name] = value.clone()
        else:
            seen.add(value.untyped_storage().data_ptr())
