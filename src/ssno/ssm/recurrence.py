"""The recurrence behind every kernel: the readable reference.

    s[l] = decay s[l-1] + gain x[l],     y[l] = 2 Re sum_n weight_n s_n[l]

Unrolling gives y = kernel * x with the kernel of `ssno.ssm.kernel` for weight * gain; tests hold the two to 1e-10.

Axes: h channel, n state mode, l grid point, b line.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.ssm.convolution import Direction
from ssno.ssm.discretise import DiscreteModes
from ssno.ssm.kernel import ENDS, Boundary
from ssno.ssm.pairs import ComplexPair, complex_mul, divide, one_minus_polar, polar


def linear_recurrence(
    modes: DiscreteModes,
    weight: ComplexPair,
    x: Float[Tensor, "h l b"],
    *,
    direction: Direction = "forward",
    boundary: Boundary = "zero",
) -> Float[Tensor, "h l b"]:
    """Scan every line point by point. Slow and obvious: O(h n l b) in a Python loop.

    Periodic axes start from the state that one turn around the axis leaves behind. With d = decay^l the wrapped scan
    starts from (that state) / (1 - d); the one-period scan from the state itself, its inputs scaled by (1 - d) so that
    a point's own next turn is not counted.
    """
    if direction == "backward":
        x = x.flip(1)
    length = x.shape[1]
    state = zero_state(modes, x.shape[2])
    turn = ComplexPair(*(part[..., None] for part in one_minus_polar(length * modes.log_decay, length * modes.angle)))
    if boundary not in ENDS:
        for point in x.unbind(1):
            state = advance(modes, state, point)
    if boundary == "wrapped":
        state = divide(state, turn)
    outputs = []
    for point in x.unbind(1):
        state = advance(modes, state, point, scale=turn if boundary == "one-period" else None)
        outputs.append(read(weight, state))
    y = torch.stack(outputs, dim=1)
    return y.flip(1) if direction == "backward" else y


def zero_state(modes: DiscreteModes, lines: int) -> ComplexPair:
    """The state before the first sample: zeros of shape (h, n, b)."""
    zeros = modes.log_decay.new_zeros(*modes.log_decay.shape, lines)
    return ComplexPair(zeros, zeros)


def advance(
    modes: DiscreteModes, state: ComplexPair, point: Float[Tensor, "h b"], *, scale: ComplexPair | None = None
) -> ComplexPair:
    """Take in one sample: s <- decay s + gain x (times `scale`, which periodic scans use)."""
    gain = ComplexPair(modes.gain.re[..., None], modes.gain.im[..., None])
    if scale is not None:
        gain = complex_mul(gain, scale)
    decay = polar(modes.log_decay, modes.angle)
    carried = complex_mul(ComplexPair(decay.re[..., None], decay.im[..., None]), state)
    return ComplexPair(carried.re + gain.re * point[:, None], carried.im + gain.im * point[:, None])


def read(weight: ComplexPair, state: ComplexPair) -> Float[Tensor, "h b"]:
    """The output of a state: 2 Re sum_n weight_n s_n."""
    return 2 * (weight.re[..., None] * state.re - weight.im[..., None] * state.im).sum(dim=1)
