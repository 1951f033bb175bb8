"""Scanning pieces and exchanging end states is scanning the whole line, and so are the gradients."""

from itertools import product

import pytest
import torch

from ssno.layers.axial import BidirectionalScan
from ssno.layers.block import scan_weights
from ssno.layers.modes import ModeOptions
from ssno.layers.space import system
from ssno.ssm.pieces import Piece, leaving_states, piece_maps, sent, with_entering
from ssno.ssm.scan import scan_taps

BOUNDARIES = ("zero", "periodic", "periodic-truncated", "neumann", "dirichlet")
LENGTH, DIRECTIONS = 12, ("forward", "backward")


def in_pieces(scan: BidirectionalScan, x: torch.Tensor, *, parts: int) -> torch.Tensor:
    """Both directions of a scan of (h, l, b), as so many processes would compute it."""
    pieces = [Piece(number, parts, LENGTH // parts) for number in range(parts)]
    options = [{"boundary": scan.ahead.boundary, "piece": piece} for piece in pieces]
    systems, skips = [system(block, 1.0) for block in scan.blocks], torch.stack([block.skip for block in scan.blocks])
    maps = [piece_maps(systems, skips, DIRECTIONS, **own) for own in options]
    cut = x.split(LENGTH // parts, dim=1)
    sending = [leaving_states(one, mine, DIRECTIONS, **own) for one, mine, own in zip(maps, cut, options, strict=True)]
    found = []
    for target, (one, mine, own) in enumerate(zip(maps, cut, options, strict=True)):
        y = scan_taps(mine[:, None], one.taps, DIRECTIONS)[:, :, 0]
        found.append(with_entering(one, y, [messages[target] for messages in sending], DIRECTIONS, **own))
    return torch.cat(found, dim=2)


@pytest.mark.parametrize(("boundary", "parts"), [*product(BOUNDARIES, (1, 3)), ("neumann", 4)])
def test_pieces_that_exchange_end_states_scan_the_whole_line(boundary, parts) -> None:
    torch.manual_seed(0)
    modes = ModeOptions(initialisation="grid", dt_min=0.03, dt_max=1.0)
    scan = BidirectionalScan(2, d_state=6, boundary=boundary, options=modes).double()
    x = torch.randn(2, LENGTH, 3, dtype=torch.float64, requires_grad=True)
    (weights,) = scan_weights([(scan.blocks, LENGTH, 1.0)])
    whole, cut = weights.scan(x[:, None])[:, :, 0], in_pieces(scan, x, parts=parts)
    torch.testing.assert_close(cut, whole, rtol=1e-12, atol=1e-12)
    learned = [x, *(p for name, p in scan.named_parameters() if "mix" not in name)]
    towards = torch.randn_like(whole)
    for one, other in zip(*(torch.autograd.grad(y, learned, towards) for y in (cut, whole)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


def test_on_a_line_with_ends_states_travel_only_ahead() -> None:
    assert sent("zero", DIRECTIONS, 0, 2, parts=3) == [0]
    assert sent("learned", DIRECTIONS, 2, 1, parts=3) == [1]
    assert sent("zero", DIRECTIONS, 1, 1, parts=3) == []
    assert sent("periodic", DIRECTIONS, 2, 1, parts=3) == [0, 1]
