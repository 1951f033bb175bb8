"""The published cost table, all 25 values, from the rules found behind it."""

import pytest

from ssno.evaluation.cost import published_flops
from ssno.models.baselines.factformer import FactformerConfig
from ssno.models.baselines.fno import FFNOConfig, FNOConfig
from ssno.models.baselines.gkt import GKTConfig
from ssno.models.baselines.unet import UNetConfig
from ssno.models.ssno import SSNOConfig

PRINTED = {
    UNetConfig: ("0.088", "0.176", "0.352", "0.704", "1.407"),
    GKTConfig: ("0.002", "0.004", "0.007", "0.015", "0.030"),
    FactformerConfig: ("0.165", "0.330", "0.659", "1.319", "2.638"),
    FFNOConfig: ("0.016", "0.033", "0.044", "0.067", "0.120"),
    SSNOConfig: ("0.013", "0.026", "0.052", "0.104", "0.209"),
}


@pytest.mark.parametrize("config", list(PRINTED))
def test_the_printed_digits_come_out(config) -> None:
    counted = tuple(f"{published_flops(config(), points) / 1e9:.3f}" for points in (32, 64, 128, 256, 512))
    assert counted == PRINTED[config]


def test_what_the_table_does_not_have_has_no_value() -> None:
    assert published_flops(FNOConfig(), 64) is None
    assert published_flops(SSNOConfig(n_dims=2), 64) is None
