"""The cosine transform by one FFT."""

import numpy as np
import pytest
import torch

from ssno.transforms.periodic import cosine_transform


@pytest.mark.parametrize("points", [1, 2, 7, 8])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_it_is_the_sum_of_cosines(points, dim) -> None:
    values = torch.randn(3, 4, points, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).movedim(-1, dim)
    k, n = torch.arange(points, dtype=torch.float64)[:, None], torch.arange(points)
    table = torch.cos(np.pi * k * (2 * n + 1) / (2 * points))
    expected = (values.movedim(dim, -1) @ table.T).movedim(-1, dim)
    torch.testing.assert_close(cosine_transform(values, dim=dim), expected)
    found = cosine_transform(values.float(), dim=dim)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), atol=1e-5, rtol=1e-5)
