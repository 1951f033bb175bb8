"""Scan a line that is cut into pieces, each with another owner: only end states travel, once.

The modes do not depend on the input, so every piece is scanned from an empty state, and what the others leave behind is
added afterwards. With q points in a piece, decay a = exp(-(damping + i frequency) step) and pieces counted along the
direction of the scan:

    left behind by piece r     S_r = gain sum_j a^(q-1-j) x_r[j]
    entering piece s           e_s = sum_r a^(q d(r, s)) S_r
    output                     y_s = kernel * x_s + 2 Re sum_n weight a^(i+1) e_s

    zero, learned              d = s - r - 1, of the pieces before s only
    periodic                   d = s - r - 1 modulo P, all P pieces, divided by 1 - a^(P q): the sum over all turns
    neumann, dirichlet         the same on a circle of 2 P pieces: S_r at s - r - 1, and its mirror image at d = s + r,
                               which leaves T_r = +- gain sum_j a^j x_r[j], divided by 1 - a^(2 P q)
    periodic-truncated         as periodic, times 1 - a^(P q) everywhere: that cancels the division

The sender multiplies by a^(q d), so the receiver only adds, and one message holds both directions. Who sends is in
`ssno.layers.space`. Gain and division are multiplied in double precision: alone, their derivatives all but cancel.

Axes: h channel, n state mode, l or q grid point, b line, d direction, w: a piece and its image.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.ssm.convolution import Direction
from ssno.ssm.discretise import ComplexPair, DiscreteModes, complex_mul, divide, one_minus_polar, polar
from ssno.ssm.kernel import INFINITE_IMAGES, LINEAR_CONVOLUTION, WALLS, Boundary, kernel, powers, require_damping
from ssno.ssm.scan import with_skip


class Piece(NamedTuple):
    """Which piece of a line this is, of how many, each of so many points."""

    number: int
    parts: int
    points: int


class PieceMaps(NamedTuple):
    """The linear maps of one piece, for all directions."""

    taps: Float[Tensor, "d h q"]
    """Its scan from an empty state, skip included."""
    leaving: Float[Tensor, "h rows q"]
    """Rows (w d 2 n): real and imaginary parts of S, and for walls of T."""
    entering: Float[Tensor, "d h q parts"]
    """Outputs from the real and imaginary parts of the entering state."""
    jumps: tuple[ComplexPair, ...]
    """For every receiving piece a^(q d), (w, directions sent, h, n, 1)."""


def sent(boundary: Boundary, directions: Sequence[Direction], source: int, target: int, *, parts: int) -> list[int]:
    """The directions in which a piece sends its state to another one: all, or on a line with ends those ahead."""
    return [
        number
        for number, direction in enumerate(directions)
        if boundary not in LINEAR_CONVOLUTION or place(direction, source, parts) < place(direction, target, parts)
    ]


def place(direction: Direction, number: int, parts: int) -> int:
    """The number of a piece, counted along the direction of the scan."""
    return number if direction == "forward" else parts - 1 - number


def distances(boundary: Boundary, direction: Direction, source: int, target: int, *, parts: int) -> list[int]:
    """Pieces between the end of one piece, and of its image at walls, and the beginning of another."""
    r, s = place(direction, source, parts), place(direction, target, parts)
    if boundary in WALLS:
        return [(s - r - 1) % (2 * parts), s + r]
    return [s - r - 1 if boundary in LINEAR_CONVOLUTION else (s - r - 1) % parts]


def piece_maps(
    systems: Sequence[tuple[DiscreteModes, ComplexPair]],
    skips: Float[Tensor, "d h"],
    directions: Sequence[Direction],
    *,
    boundary: Boundary,
    piece: Piece,
) -> PieceMaps:
    """The maps of a piece from the modes and weights of every direction, in double precision if those are."""
    _, parts, points = piece
    taps, leaving, entering = [], [], []
    for (modes, weight), direction in zip(systems, directions, strict=True):
        gain = closed = modes.gain
        turn = points * parts * (2 if boundary in WALLS else 1)
        once = one_minus_polar(turn * modes.log_decay, turn * modes.angle)
        if boundary in INFINITE_IMAGES:
            require_damping(-modes.log_decay)
            closed = divide(modes.gain, once)
        elif boundary == "periodic-truncated":
            gain = complex_mul(modes.gain, once)
        taps.append(kernel(modes, complex_mul(weight, gain), length=points))
        rising = powers(modes, points + 1)  # h n q+1
        ahead = complex_mul(_last(closed), ComplexPair(*(part[..., :-1] for part in rising)))  # a^j: the image's order
        back, mirror = torch.stack([part.flip(-1) for part in ahead]), torch.stack(list(ahead))  # 2 h n q
        maps = [back] if boundary not in WALLS else [back, -mirror if boundary == "dirichlet" else mirror]
        read = complex_mul(_last(weight), ComplexPair(*(part[..., 1:] for part in rising)))
        out = 2 * torch.cat([read.re, -read.im], dim=1).transpose(1, 2)  # h q 2n
        turned = direction == "backward"
        leaving.append(torch.stack(maps).flip(-1) if turned else torch.stack(maps))
        entering.append(out.flip(1) if turned else out)
    rows = torch.stack(leaving, dim=1).permute(3, 0, 1, 2, 4, 5)  # h w d 2 n q
    dtype = skips.dtype
    return PieceMaps(
        taps=with_skip(torch.stack(taps).to(dtype), skips),
        leaving=rows.flatten(1, 4).to(dtype),
        entering=torch.stack(entering).to(dtype),
        jumps=tuple(
            _jumps([modes for modes, _ in systems], directions, boundary, piece, target, dtype)
            for target in range(parts)
        ),
    )


def _jumps(
    modes: Sequence[DiscreteModes],
    directions: Sequence[Direction],
    boundary: Boundary,
    piece: Piece,
    target: int,
    dtype: torch.dtype,
) -> ComplexPair:
    """What the states of a piece are multiplied by on their way to another."""
    found = []
    for number in sent(boundary, directions, piece.number, target, parts=piece.parts):
        away = distances(boundary, directions[number], piece.number, target, parts=piece.parts)
        steps = [piece.points * pieces for pieces in away]
        each = [polar(step * modes[number].log_decay, step * modes[number].angle) for step in steps]
        found.append(torch.stack([torch.stack(one) for one in each]))  # w 2 h n
    if not found:
        return ComplexPair(*(modes[0].angle.new_zeros(1, 0, *modes[0].angle.shape, 1, dtype=dtype) for _ in range(2)))
    stacked = torch.stack(found, dim=1)[..., None].to(dtype)  # w d 2 h n 1
    return ComplexPair(stacked[:, :, 0], stacked[:, :, 1])


def leaving_states(
    maps: PieceMaps,
    x: Float[Tensor, "h q b"],
    directions: Sequence[Direction],
    *,
    boundary: Boundary,
    piece: Piece,
) -> list[Float[Tensor, "_ 2 h n b"]]:
    """What this piece sends to every piece, itself included."""
    images = 2 if boundary in WALLS else 1
    states = (maps.leaving @ x).unflatten(1, (images, len(directions), 2, -1)).permute(1, 2, 3, 0, 4, 5)  # w d 2 h n b
    messages = []
    for target, jump in enumerate(maps.jumps):
        chosen = sent(boundary, directions, piece.number, target, parts=piece.parts)
        mine = states if len(chosen) == len(directions) else states[:, chosen]
        moved = complex_mul(jump, ComplexPair(mine[:, :, 0], mine[:, :, 1]))
        messages.append(torch.stack([part.sum(0) for part in moved], dim=1))
    return messages


def with_entering(
    maps: PieceMaps,
    y: Float[Tensor, "h d q b"],
    received: Sequence[Float[Tensor, "_ 2 h n b"]],
    directions: Sequence[Direction],
    *,
    boundary: Boundary,
    piece: Piece,
) -> Float[Tensor, "h d q b"]:
    """The scan of this piece from an empty state, y, and what the states from every piece, in order, add to it."""
    added = []
    for number in range(len(directions)):
        parts = [
            message[chosen.index(number)]
            for source, message in enumerate(received)
            if number in (chosen := sent(boundary, directions, source, piece.number, parts=piece.parts))
        ]
        if not parts:
            added.append(y[:, number])
            continue
        total = parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)
        added.append(y[:, number] + maps.entering[number] @ total.transpose(0, 1).flatten(1, 2))
    return torch.stack(added, dim=1)


def _last(value: ComplexPair) -> ComplexPair:
    return ComplexPair(value.re[..., None], value.im[..., None])
