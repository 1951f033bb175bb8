"""The full S4 block: golden values, other lengths and spacings, refusals."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.layers.public_s4 import s4_from_public

from ssno.layers.memory import S4Block, TemporalMemory
from ssno.ssm.dplr import truncated, untruncated

GOLDEN = Path(__file__).parents[1] / "golden" / "s4_dplr.npz"


def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN, allow_pickle=False) as file:
        return dict(file)


def parameters_only() -> dict[str, np.ndarray]:
    return {name: value for name, value in golden().items() if "__" in name}


@pytest.mark.parametrize("arrays", [golden(), parameters_only()], ids=["whole file", "parameters only"])
def test_public_arrays_reproduce_the_public_kernel_and_output(arrays) -> None:
    block, expected = s4_from_public(arrays), golden()
    np.testing.assert_allclose(block.kernel(40).detach(), expected["kernel"][0], atol=1e-5)
    np.testing.assert_allclose(block(torch.from_numpy(expected["x"])).detach(), expected["y"], atol=1e-5)


@pytest.mark.parametrize("how", ["argument", "l_kernel", "kernel"])
def test_with_a_known_length_shorter_and_longer_kernels_agree(how) -> None:
    arrays = golden() if how == "kernel" else parameters_only()
    if how == "l_kernel":
        arrays["layer.kernel.l_kernel"] = np.array(40)
    block = s4_from_public(arrays, length=40 if how == "argument" else None)
    assert block.modes.length == 40
    np.testing.assert_allclose(block.kernel(16).detach(), golden()["kernel"][0, :, :16], atol=1e-5)
    np.testing.assert_allclose(block.kernel(75).detach()[:, :40], golden()["kernel"][0], atol=1e-5)


def test_public_arrays_may_share_rows_and_lack_leading_axes() -> None:
    arrays = parameters_only()
    for name in ("A_real", "A_imag"):
        arrays[f"layer__kernel__{name}"] = arrays[f"layer__kernel__{name}"][:2]
    for name in ("P", "B"):
        arrays[f"layer__kernel__{name}"] = arrays[f"layer__kernel__{name}"][0, :2]
    arrays["layer__kernel__C"] = arrays["layer__kernel__C"][0]
    arrays["layer.D"] = arrays.pop("layer__D")[0]
    block = s4_from_public(arrays)
    for shared in (block.modes.frequency, block.modes.input_weight, block.modes.low_rank[0]):
        torch.testing.assert_close(shared[0], shared[6])
        assert (shared[0] - shared[7]).abs().max() > 1e-4


def test_public_arrays_may_have_a_higher_rank() -> None:
    arrays = parameters_only()
    column = arrays["layer__kernel__P"]
    arrays["layer__kernel__P"] = np.concatenate([column * np.float32(np.sqrt(0.5))] * 2)
    block = s4_from_public(arrays)
    np.testing.assert_allclose(block.kernel(40).detach(), golden()["kernel"][0], atol=1e-5)


def test_public_arrays_that_do_not_fit_are_refused() -> None:
    arrays = parameters_only()
    with pytest.raises(ValueError, match=r"`arrays` lacks layer__kernel__P; .*in diagonal-plus-low-rank mode"):
        s4_from_public({name: value for name, value in arrays.items() if not name.endswith("P")})
    transposed = {**arrays, "output_linear__0__weight": arrays["output_linear__0__weight"].T}
    with pytest.raises(ValueError, match=r"weight'\]` has shape \(8, 16\), which does not fit 8 channels with 8 modes"):
        s4_from_public(transposed)
    three_rows = {**arrays, "layer__kernel__A_real": arrays["layer__kernel__A_real"][:3]}
    with pytest.raises(ValueError, match=r"A_real'\]` has shape \(3, 8\), .* expected something like \(8, 8\)"):
        s4_from_public(three_rows)
    with pytest.raises(ValueError, match="`length` must be at least 1, got 0"):
        s4_from_public(arrays, length=0)


def test_a_finer_spacing_is_a_smaller_step() -> None:
    block = S4Block(2, length=6, d_state=8).double()
    fine = block.kernel(6, spacing=0.5)
    plain = untruncated(block.modes.system(), length=6)
    smaller = S4Block(2, length=6, d_state=8).double()
    smaller.modes.load_state_dict(block.modes.state_dict())
    smaller.modes.log_step.data += np.log(0.5)
    shorter = truncated(plain._replace(step=smaller.modes.log_step.exp()), length=6)
    smaller.modes.output_weight.data = torch.view_as_real(shorter.output_weight.detach())
    torch.testing.assert_close(fine, smaller.kernel(6), atol=1e-10, rtol=0)


def test_gradients_reach_every_parameter_at_any_length() -> None:
    for length in (4, 9):
        block = S4Block(3, length=6, d_state=8)
        block(torch.randn(2, 3, length)).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in block.parameters())


def test_the_state_dict_is_real() -> None:
    block = S4Block(3, length=6, d_state=8)
    assert not any(value.is_complex() for value in block.state_dict().values())
    assert {id(p) for p in block.modes.state_space_parameters()} == {
        id(p) for name, p in block.modes.named_parameters() if name != "output_weight"
    }


@pytest.mark.usefixtures("as_users_call_it")
def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="`d_state` .* even and positive, got 7. Use 8"):
        S4Block(3, length=4, d_state=7)
    with pytest.raises(ValueError, match="`kernel` must be one of 's4d', 's4', got 'lstm'"):
        TemporalMemory(3, window=4, kernel="lstm")
