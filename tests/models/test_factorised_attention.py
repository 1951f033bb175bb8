"""Factorised attention: equals the dense sum, kernels depend on distance, axes do not mix."""

import torch
from torch.nn import functional

from ssno.models.baselines.factformer import FactorisedAttention, rotated


def positions(*sizes: int) -> list[torch.Tensor]:
    return [torch.linspace(0, 2 * torch.pi, points, dtype=torch.float64) for points in sizes]


def test_rotation_keeps_lengths_and_makes_products_depend_on_distance() -> None:
    query, key = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64)
    where = torch.tensor([0.3, 1.1, 2.0, 2.8], dtype=torch.float64)
    turned_query, turned_key = (rotated(x.expand(1, 1, 4, 8), where)[0, 0] for x in (query, key))
    torch.testing.assert_close(turned_query.norm(dim=-1), query.norm().expand(4))
    products = turned_query @ turned_key.T
    torch.testing.assert_close(products[0, 1], products[2, 3])  # both pairs are 0.8 apart
    torch.testing.assert_close(products.diagonal(), (query * key).sum().expand(4))
    assert (products[0, 1] - products[1, 0]).abs() > 1e-6


def test_two_axes_equal_the_dense_double_sum() -> None:
    layer = FactorisedAttention(8, axes=2, heads=2, head_channels=4).double()
    u, where = torch.randn(3, 5, 4, 8, dtype=torch.float64), positions(5, 4)
    normal = functional.layer_norm(u, (8,), layer.norm.weight, layer.norm.bias)
    kernel_x, kernel_y = (layer.kernel(layer.project(normal), axis, where[axis]) for axis in range(2))
    values = layer.values(normal).unflatten(-1, (2, 4))
    summed = torch.einsum("nsij,nskl,njlsd->niksd", kernel_x, kernel_y, values)
    mean = summed.mean(dim=(1, 2, 4), keepdim=True)
    spread = summed.var(dim=(1, 2, 4), keepdim=True, correction=0)
    expected = layer.mix(((summed - mean) / (spread + 1e-8).sqrt()).flatten(-2))
    torch.testing.assert_close(layer(u, where), expected, atol=1e-10, rtol=1e-8)


def test_the_kernel_of_an_axis_sees_only_means_over_the_others() -> None:
    layer = FactorisedAttention(8, axes=2, heads=2, head_channels=4).double()
    u, where = torch.randn(2, 5, 4, 8, dtype=torch.float64), positions(5, 4)
    shuffled = u[:, :, [2, 0, 3, 1]]
    torch.testing.assert_close(layer.kernel(shuffled, 0, where[0]), layer.kernel(u, 0, where[0]))
    assert not torch.allclose(layer.kernel(shuffled, 1, where[1]), layer.kernel(u, 1, where[1]))


def test_queries_and_keys_start_small() -> None:
    layer = FactorisedAttention(64, axes=1, heads=4, head_channels=128)
    for linear in (layer.queries[0], layer.keys[0]):
        assert linear.weight.abs().max() <= 0.02 * (6 / 576) ** 0.5
