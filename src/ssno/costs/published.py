"""Operations as the published cost table counts them, so that its figures can be compared with ours.

The rules behind the table's 25 values were found by arithmetic on its rounded digits; each model turned out to have a
rule of its own (2 operations per multiply-add throughout, K = 4 frames, memory never counted):

    U-Net, Factformer  4 frames; linear maps and convolutions, 4 per number of an affine norm; a transposed
                       convolution counts all kernel points for every output; group norm and attention products nothing
    GKT                one pass over 4 stacked frames; linear maps and norms only
    F-FNO              4 frames; only the spectral part: 10 N log2 N per channel and 6 per kept mode and channel pair,
                       modes = min(N / 2, 32); its linear maps are not counted
    SS-NO              parameters times points, one frame

By the rule used for U-Net and Factformer, SS-NO would cost 1.8 times what is printed. Compare models with each other by
`ssno.costs.flops`, where one rule holds for all.
"""

import math
from collections.abc import Callable
from typing import Any

from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.ffno import FFNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.unet import HALVINGS, UNetConfig
from ssno.models.config import OperatorConfig
from ssno.models.count import parameters_of
from ssno.models.ssno import SSNOConfig

FRAMES = 4
AFFINE_NORM = 4
MOST_MODES = 32


def published_flops(config: OperatorConfig, points: int) -> float | None:
    """Operations of one prediction in 1D by the table's rule; None for a model or setting the table does not have."""
    rule = RULES.get(type(config))
    return None if rule is None or config.n_dims != 1 else 2.0 * rule(config, points)


def _unet(config: UNetConfig, points: int) -> float | int:
    widths = [config.hidden_channels * 2**level for level in range(HALVINGS + 1)]

    def block(channels_in: int, width: int, length: float) -> float:
        return length * (3 * width * (channels_in + width) + 2 * AFFINE_NORM * width)

    down = sum(
        block(narrow, wide, points / 2**level)
        for level, (narrow, wide) in enumerate(zip([config.lifted_channels(), *widths[:-1]], widths, strict=True))
    )
    up = sum(
        points / 2**level * (2 * width * 2 * width) + block(2 * width, width, points / 2**level)
        for level, width in enumerate(widths[:-1])
    )
    return FRAMES * (down + up + points * widths[0] * config.out_channels)


def _factformer(config: FactformerConfig, points: int) -> float | int:
    width, inner = config.hidden_channels, config.n_heads * config.head_channels
    square, norm = width * width, AFFINE_NORM * width
    reducer = square + norm + 2 * square + square
    layer = norm + width * inner + square + reducer + 2 * width * inner + inner * width + square
    tail = square + norm + 2 * square + square // 8 + width * (width // 2) + width // 2 * config.out_channels
    frame = config.lifted_channels() * width + config.n_layers * layer + tail
    position = config.n_layers * square  # the same for all frames, so computed once
    return points * (FRAMES * frame + position)


def _gkt(config: GKTConfig, points: int) -> float | int:
    width, coordinates = config.hidden_channels, config.n_dims
    layer = 5 * width * width + 2 * AFFINE_NORM * width
    decoder = (width + coordinates) * width + 2 * width * width
    head = width * config.head_channels + config.head_channels * config.out_channels
    return points * (config.lifted_channels() * width + config.n_layers * layer + decoder + head)


def _ffno(config: FFNOConfig, points: int) -> float | int:
    width, modes = config.hidden_channels, min(points // 2, MOST_MODES)
    spectral = 10 * points * math.log2(points) * width + 6 * modes * width**2
    return FRAMES * config.n_layers * spectral


def _ssno(config: SSNOConfig, points: int) -> float | int:
    return parameters_of(config) * points


RULES: dict[type, Callable[[Any, int], float | int]] = {
    UNetConfig: _unet,
    FactformerConfig: _factformer,
    GKTConfig: _gkt,
    FFNOConfig: _ffno,
    SSNOConfig: _ssno,
}
