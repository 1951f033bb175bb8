"""The recurrence behind every kernel: the readable reference.

    s[l] = decay s[l-1] + gain x[l],     y[l] = 2 Re sum_n weight_n s_n[l]

Unrolling gives y = kernel * x with the kernel of `ssno.ssm.kernel` for weight * gain; tests hold the two to 1e-10.

Axes: h channel, n state mode, l grid point, b line.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from ssno.ssm.convolution import Direction, toeplitz
from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul, divide, one_minus_polar, polar
from ssno.ssm.kernel import LINEAR_CONVOLUTION, Boundary, kernel, powers, wrapped


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
    if boundary not in LINEAR_CONVOLUTION:
        for point in x.unbind(1):
            state = advance(modes, state, point)
    if boundary == "periodic":
        state = divide(state, turn)
    outputs = []
    for point in x.unbind(1):
        state = advance(modes, state, point, scale=turn if boundary == "periodic-truncated" else None)
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


# Scan very long axes piece by piece, carrying the state of the recurrence from one piece to the next.
#
# Inside a chunk of q points the scan is a small matrix product; between chunks only the n states of each channel
# travel:
#
#  output  y = T x + R s     T the triangular matrix of the kernel's first q taps,R[i] = 2 Re weight decay^(i+1)
#     state   s <- decay^q s + G x                                                         G[j] = gain decay^(q-1-j)
#
# Every chunk uses the same T, R and G, so all local products are one matrix product, and time and memory are linear in
# the length: O(h l b (q + n)) and O(h l b (1 + n/q)). The result equals the FFT's and the recurrence's up to rounding.
# `scan_chunk` takes one piece at a time, for axes that do not fit into memory; `scan_chunked` does a whole axis.
#
# Axes: h channel, n state mode, l grid point, q point in a chunk, c chunk, b line.

DEFAULT_CHUNK = 128


class ChunkMaps(NamedTuple):
    """The linear maps of one chunk: inputs and entering state to outputs and leaving state."""

    from_inputs: Float[Tensor, "h rows q"]
    """Rows: q outputs, then the real and the imaginary parts of the n states left behind."""
    from_state: Float[Tensor, "h q parts"]
    """Outputs from the real and imaginary parts of the entering state."""
    jump: ComplexPair
    """decay^q, (h, n, 1)."""


def chunk_maps(modes: DiscreteModes, weight: ComplexPair, *, chunk: int) -> ChunkMaps:
    """Build the maps of a chunk of `chunk` points; they serve every chunk of an axis."""
    if chunk < 1:
        raise ValueError(f"`chunk` must be at least 1, got {chunk}.")
    rising = powers(modes, chunk + 1)  # h n q+1
    left = complex_mul(_last(modes.gain), ComplexPair(rising.re[..., :-1].flip(-1), rising.im[..., :-1].flip(-1)))
    read = complex_mul(_last(weight), ComplexPair(rising.re[..., 1:], rising.im[..., 1:]))
    local = toeplitz(kernel(modes, complex_mul(weight, modes.gain), length=chunk))
    return ChunkMaps(
        from_inputs=torch.cat([local, left.re, left.im], dim=1),
        from_state=2 * torch.cat([read.re, -read.im], dim=1).transpose(1, 2),
        jump=ComplexPair(rising.re[..., -1:], rising.im[..., -1:]),
    )


def scan_chunk(
    maps: ChunkMaps, x: Float[Tensor, "h q b"], state: ComplexPair
) -> tuple[Float[Tensor, "h q b"], ComplexPair]:
    """Scan one chunk: give its outputs and the state to hand to the next chunk.

    Start from `ssno.ssm.recurrence.zero_state`. To scan from the other end, take the pieces in reverse and flip each.
    """
    points = x.shape[1]
    if points != maps.from_state.shape[1]:
        raise ValueError(
            f"`x` has {points} points, but the maps are for chunks of {maps.from_state.shape[1]}. Build maps with "
            f"`chunk_maps(modes, weight, chunk={points})`, or pad the last piece with zeros."
        )
    local = maps.from_inputs @ x
    inputs = _states(local[:, points:], x.shape[2])
    entering, left = _carry(maps.jump, inputs, state)
    return torch.baddbmm(local[:, :points], maps.from_state, entering[:, :, 0]), left


def scan_chunked(
    modes: DiscreteModes,
    weight: ComplexPair,
    x: Float[Tensor, "h l b"],
    *,
    direction: Direction = "forward",
    boundary: Boundary = "zero",
    chunk: int = DEFAULT_CHUNK,
) -> Float[Tensor, "h l b"]:
    """Scan every line of an axis of any length, exactly: arguments and result of `recurrence.linear_recurrence`.

    Periodic axes go round twice: once for the state that a turn leaves behind, once from that state.
    """
    if direction == "backward":
        return scan_chunked(modes, weight, x.flip(1), boundary=boundary, chunk=chunk).flip(1)
    if direction != "forward":
        raise ValueError(f"`direction` must be 'forward' or 'backward', got {direction!r}.")
    length, lines = x.shape[1:]
    points = min(chunk, length)
    state = zero_state(modes, lines)
    if boundary not in LINEAR_CONVOLUTION:
        state = _after_one_turn(chunk_maps(modes, weight, chunk=points), x, state)
    if boundary == "periodic":
        one = ComplexPair(torch.ones_like(modes.angle), torch.zeros_like(modes.angle))
        state = complex_mul(_last(wrapped(modes, one, length=length)), state)
    if boundary == "periodic-truncated":
        once = one_minus_polar(length * modes.log_decay, length * modes.angle)
        modes = modes._replace(gain=complex_mul(modes.gain, once))
    maps = chunk_maps(modes, weight, chunk=points)
    # Zeros behind the last point change nothing before it.
    pieces = _cut(functional.pad(x, (0, 0, 0, -length % points)), points)  # h q c b
    local = maps.from_inputs @ pieces.flatten(2)
    entering, _ = _carry(maps.jump, _states(local[:, points:], lines), state)
    y = torch.baddbmm(local[:, :points], maps.from_state, entering.flatten(2))
    return y.unflatten(2, (-1, lines)).transpose(1, 2).flatten(1, 2)[:, :length]


def _after_one_turn(maps: ChunkMaps, x: Float[Tensor, "h l b"], state: ComplexPair) -> ComplexPair:
    """The state that a scan of the whole axis leaves behind. Zeros before the first point keep the state empty."""
    points = maps.from_state.shape[1]
    pieces = _cut(functional.pad(x, (0, 0, -x.shape[1] % points, 0)), points)
    return _carry(maps.jump, _states(maps.from_inputs[:, points:] @ pieces.flatten(2), x.shape[2]), state)[1]


def _cut(x: Float[Tensor, "h l b"], points: int) -> Float[Tensor, "h q c b"]:
    return x.unflatten(1, (-1, points)).transpose(1, 2)


def _states(parts: Float[Tensor, "h parts cb"], lines: int) -> Float[Tensor, "h 2 n c b"]:
    return parts.unflatten(2, (-1, lines)).unflatten(1, (2, -1))


def _carry(
    jump: ComplexPair, inputs: Float[Tensor, "h 2 n c b"], state: ComplexPair
) -> tuple[Float[Tensor, "h parts c b"], ComplexPair]:
    """Run s <- jump s + input over the chunks: the state entering each chunk, and the one leaving the last."""
    entering = []
    for re, im in zip(inputs[:, 0].unbind(2), inputs[:, 1].unbind(2), strict=True):
        entering.append(torch.cat(state, dim=1))
        moved = complex_mul(jump, state)
        state = ComplexPair(moved.re + re, moved.im + im)
    return torch.stack(entering, dim=2), state


def _last(value: ComplexPair) -> ComplexPair:
    """Append an axis to broadcast over."""
    return ComplexPair(value.re[..., None], value.im[..., None])
