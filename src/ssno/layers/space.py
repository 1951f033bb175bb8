"""One field over several processes: each holds a piece of the grid, and scans along split axes talk to each other.

    --mesh data=2,space=2        2 sets of trajectories, each field in 2 pieces
    --mesh data=1,space=2x2      the pieces of every axis

Everything but a scan happens at a point or along time, so a model needs its `SpaceMesh` in its scans alone. A scan
along an axis that is not split is local. Along a split one

    turned     an all-to-all gives every process whole lines, fewer of them; scan, gate and turn back     (pencils)
    carried    every process scans its piece; end states are exchanged in one message    (`ssno.ssm.pieces`)

whichever costs less (`choose`). Norms are taken over all pieces. A loss is then the same number in every process of a
field, each of which knows its derivative by its own points: backward of a sum or norm over pieces is that of its own.

Axes: h channel, d direction, q grid point of a piece, l of a line, i and o: what comes after and before, b line.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from ssno.layers.block import DiscretisedKernels
from ssno.layers.memory import S4DBlock
from ssno.ssm.convolution import Direction
from ssno.ssm.discretise import DISCRETISATIONS, ComplexPair, DiscreteModes, as_pair, complex_mul
from ssno.ssm.kernel import LINEAR_CONVOLUTION, WALLS, Boundary, precise
from ssno.ssm.pieces import Piece, PieceMaps, leaving_states, piece_maps, sent, with_entering
from ssno.ssm.scan import scan_taps

# How many processes there are for what.


@dataclass(frozen=True)
class MeshShape:
    """Processes that take different trajectories, and pieces of every field: in all, or along each axis."""

    data: int = 1
    space: tuple[int, ...] = (1,)

    @classmethod
    def parse(cls, text: str) -> "MeshShape":
        """The mesh that "data=2,space=2" or "space=2x2" names."""
        found = re.fullmatch(r"(?:data=([1-9]\d*),)?space=([1-9]\d*(?:x[1-9]\d*)*)", text)
        if found is None:
            raise ValueError(
                f"`mesh` must be of the form data=2,space=2 (or space=2x2: pieces along each axis), got {text!r}."
            )
        return cls(int(found[1] or 1), tuple(map(int, found[2].split("x"))))

    @property
    def pieces(self) -> int:
        return math.prod(self.space)

    @property
    def processes(self) -> int:
        return self.data * self.pieces

    def __str__(self) -> str:
        return f"data={self.data},space={'x'.join(map(str, self.space))}"


# What a scan along an axis costs: per point and channel of a piece, forward and backward of a training step.
#
#     turned    sent      4 (P - 1) / P numbers: there and back, and both again for the gradient
#               copied    16: packing and unpacking reads and writes, four times
#               products  3 taps(l)
#     carried   sent      2 (P - 1) c 2n / q: c directions to each other piece, both ways
#               copied    4 d 2n / q: states written and read
#               products  3 (taps(q) + d 2n (w + 1)): leaving states (of a piece and, at walls, of its image), entering
#
#     taps(m) = d m up to 256 points (a matrix), else by Fourier transforms of m (or 2 m, padded) points, which are
#               counted as `transforms`: a core multiplies matrices 25 times as fast
#
# Messages are half as many when states are carried; that counts for small fields alone and is left out.

Method = Literal["whole", "turned", "carried"]
LONGEST_MATRIX = 256


class Machine(NamedTuple):
    """Numbers per second that a process sends, multiplies and adds, copies, and multiplies in Fourier transforms."""

    sent: float
    products: float
    copied: float
    transforms: float


MACHINES = {"cpu": Machine(2.2e8, 6.0e10, 1.0e9, 2.4e9), "cuda": Machine(7.5e10, 9.75e12, 5.1e11, 9.75e12)}
"""A core over gloo, measured (benchmarks/mesh_rates.py); an A100 with NVLink in float32, of its data sheet."""


class AxisScan(NamedTuple):
    """What the cost of a scan depends on."""

    points: int
    boundary: Boundary
    modes: int
    """Per channel and direction."""
    directions: int
    carries: bool
    """Whether its states can be carried from piece to piece."""


class ScanCost(NamedTuple):
    """Numbers per point and channel."""

    sent: float = 0.0
    products: float = 0.0
    copied: float = 0.0
    transforms: float = 0.0

    def seconds(self, machine: Machine) -> float:
        return sum(amount / rate for amount, rate in zip(self, machine, strict=True))


def costs(axis: AxisScan, parts: int) -> dict[Method, ScanCost]:
    """The ways to scan an axis in so many pieces, with what each costs."""
    d, states, walls = axis.directions, 2 * axis.modes, axis.boundary in WALLS
    linear = axis.boundary in LINEAR_CONVOLUTION

    def taps(points: int, padded: bool, times: int = 1) -> dict[str, float]:
        if points <= LONGEST_MATRIX:
            return {"products": 3.0 * times * d * points}
        return {"transforms": 3 * times * (1 + d) * 2.5 * math.log2(points) * (2 if padded else 1) / 2}

    whole = taps(axis.points, linear) if not walls else taps(2 * axis.points, False, 2)
    if parts == 1:
        return {"whole": ScanCost(**whole)}
    found: dict[Method, ScanCost] = {"turned": ScanCost(sent=4 * (parts - 1) / parts, copied=16, **whole)}
    if axis.carries:
        points = axis.points / parts
        each = d / 2 if linear else d
        local = ScanCost(**taps(axis.points // parts, True))
        found["carried"] = local._replace(
            sent=2 * (parts - 1) * each * states / points,
            products=local.products + 3 * d * states * (3 if walls else 2),
            copied=4 * d * states / points,
        )
    return found


def choose(axis: AxisScan, parts: int, machine: Machine) -> tuple[Method, float]:
    """The cheapest way to scan an axis in so many pieces, and its seconds per point and channel."""
    found = {method: cost.seconds(machine) for method, cost in costs(axis, parts).items()}
    best = min(found, key=lambda method: found[method])
    return best, found[best]


def choose_split(axes: Sequence[AxisScan], space: Sequence[int], machine: Machine) -> tuple[int, ...]:
    """Into how many pieces to cut each axis: as named, or so that a given number of pieces costs least."""
    grid = " x ".join(str(axis.points) for axis in axes)
    if len(space) > 1 and len(space) != len(axes):
        raise ValueError(
            f"`mesh` names pieces along {len(space)} axes ({'x'.join(map(str, space))}), but the grid {grid} has "
            f"{len(axes)}. Name one number per axis, or their product alone."
        )
    pieces = math.prod(space)
    tried = [tuple(space)] if len(space) == len(axes) else factorisations(pieces, len(axes))
    fitting = [parts for parts in tried if all(a.points % n == 0 for a, n in zip(axes, parts, strict=True))]
    if not fitting:
        raise ValueError(
            f"`mesh`: the grid {grid} cannot be cut into {'x'.join(map(str, space))} equal pieces. "
            "Take numbers that divide the points of an axis."
        )
    return min(fitting, key=lambda parts: sum(choose(a, n, machine)[1] for a, n in zip(axes, parts, strict=True)))


def factorisations(number: int, count: int) -> list[tuple[int, ...]]:
    """All ways to write a number as a product of `count` factors, the first axes split first."""
    divisors = [n for n in range(number, 0, -1) if number % n == 0]
    return [parts for parts in itertools.product(divisors, repeat=count) if math.prod(parts) == number]


# Talking: operations whose backward pass is another message.


class Exchange(torch.autograd.Function):
    """`Exchange.apply(flat, group, sent, received)`: so many numbers to and from each process of a group."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, group: Any, sizes: list[int], received: list[int]) -> Tensor:
        ctx.group, ctx.sizes, ctx.received = group, sizes, received
        out = flat.new_empty(sum(received))
        dist.all_to_all_single(out, flat.contiguous(), received, sizes, group=group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return Exchange.apply(grad, ctx.group, ctx.received, ctx.sizes), None, None, None


class Beside(torch.autograd.Function):
    """`Beside.apply(value, share)`: the values of all pieces, one beside the other, each with its own derivative."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, share: "AxisShare") -> Tensor:
        ctx.number = share.number
        return share.gather(value)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return grad[ctx.number], None


class AxisShare(NamedTuple):
    """An axis that is split: the processes that hold its pieces, and which of them this is."""

    group: Any
    parts: int
    number: int

    def gather(self, value: Tensor) -> Tensor:
        """The tensors of all pieces, stacked in order."""
        found = [torch.empty_like(value, memory_format=torch.contiguous_format) for _ in range(self.parts)]
        dist.all_gather(found, value.contiguous(), group=self.group)
        return torch.stack(found)

    def exchange(self, messages: Sequence[Tensor], received: list[int]) -> tuple[Tensor, ...]:
        """Send a message to every piece; the flat messages from every piece."""
        flat = torch.cat([message.flatten() for message in messages])
        sizes = [message.numel() for message in messages]
        return Exchange.apply(flat, self.group, sizes, received).split(received)

    def turned(self, parts: Float[Tensor, "p h q s"]) -> Float[Tensor, "p h q s"]:
        """Part p to process p; in its place the part that it had for this one."""
        size = [parts[0].numel()] * self.parts
        return Exchange.apply(parts.flatten(), self.group, size, size).view(parts.shape)


@dataclass(frozen=True)
class TurnedLines:
    """Lines whose points lie in several processes, made whole for as long as a map of lines takes."""

    share: AxisShare

    def through(self, line_map: Callable[[Tensor], Tensor], x: Float[Tensor, "h o q i"]) -> Float[Tensor, "h o q i"]:
        """A map of whole lines, applied to lines of which this process has a piece."""
        parts, (channels, outer, points, inner) = self.share.parts, x.shape
        lines = x.transpose(1, 2).reshape(channels, points, outer * inner)
        each = -(-lines.shape[2] // parts)  # the last process has some lines of zeros
        lines = nn.functional.pad(lines, (0, each * parts - lines.shape[2])).unflatten(2, (parts, each))
        whole = self.share.turned(lines.permute(2, 0, 1, 3)).transpose(0, 1)  # h p q each
        mapped = line_map(whole.reshape(channels, 1, parts * points, each))
        back = self.share.turned(mapped.view(channels, parts, points, each).transpose(0, 1))
        out = back.permute(1, 2, 0, 3).reshape(channels, points, each * parts)[..., : outer * inner]
        return out.unflatten(2, (outer, inner)).transpose(1, 2)


@dataclass(frozen=True, eq=False)
class CarriedStates:
    """A scan whose states are carried from piece to piece, in place of that of whole lines."""

    share: AxisShare
    maps: PieceMaps
    directions: tuple[Direction, ...]
    boundary: Boundary
    piece: Piece
    ends: Float[Tensor, "h d q"] | None

    def scan(self, x: Float[Tensor, "h o q i"]) -> Float[Tensor, "h d o q i"]:
        """kernel * x + skip x along lines of which this process has a piece."""
        channels, outer, points, inner = x.shape
        lines = x.transpose(1, 2).reshape(channels, 1, points, outer * inner)
        options: dict[str, Any] = {"boundary": self.boundary, "piece": self.piece}
        messages = leaving_states(self.maps, lines[:, 0].to(self.maps.taps.dtype), self.directions, **options)
        _, *shape = messages[0].shape
        counts = [
            len(sent(self.boundary, self.directions, source, self.piece.number, parts=self.piece.parts))
            for source in range(self.piece.parts)
        ]
        flat = self.share.exchange(messages, [count * math.prod(shape) for count in counts])
        received = [message.view(count, *shape) for message, count in zip(flat, counts, strict=True)]
        y = scan_taps(lines, self.maps.taps, self.directions)[:, :, 0]
        y = with_entering(self.maps, y.to(self.maps.taps.dtype), received, self.directions, **options)
        y = y if self.ends is None else y + self.ends[..., None]
        return y.to(x.dtype).unflatten(3, (outer, inner)).transpose(2, 3)


class SpaceMesh:
    """The processes that share a field, and how its axes are split among them.

    Args:
        axes: what is scanned along each axis of the whole grid.
        shape: processes for trajectories and for pieces, as many as were launched.
        device: where they compute.
    """

    def __init__(self, axes: Sequence[AxisScan], *, shape: MeshShape, device: torch.device):
        machine = MACHINES.get(device.type, MACHINES["cuda"])
        self.axes, self.shape = tuple(axes), shape
        self.parts = choose_split(axes, shape.space, machine)
        self.methods = tuple(choose(axis, parts, machine)[0] for axis, parts in zip(axes, self.parts, strict=True))
        names = [f"space{axis}" for axis in range(len(axes))]
        self.mesh = mesh = init_device_mesh(device.type, (shape.data, *self.parts), mesh_dim_names=("data", *names))
        self.machine, self.data_rank = machine, mesh.get_local_rank("data")
        self.shares = tuple(
            AxisShare(mesh.get_group(name), parts, mesh.get_local_rank(name)) if parts > 1 else None
            for name, parts in zip(names, self.parts, strict=True)
        )

    @cached_property
    def split(self) -> list[AxisShare]:
        """The axes that are split."""
        return [share for share in self.shares if share is not None]

    def describe(self, names: Sequence[str]) -> str:
        """How every axis is split and scanned, and why."""
        lines = []
        for name, axis, parts, method in zip(names, self.axes, self.parts, self.methods, strict=True):
            if parts == 1:
                lines.append(f"{name} whole")
                continue
            found = {way: cost.seconds(self.machine) for way, cost in costs(axis, parts).items()}
            why = ", ".join(f"{way} {1e9 * seconds:.3g} ns" for way, seconds in found.items())
            why += " per point and channel" if axis.carries else ": its states cannot be carried"
            lines.append(f"{name} in {parts} pieces of {axis.points // parts} points, {method} ({why})")
        return f"mesh {self.shape}: " + "; ".join(lines)

    @contextmanager
    def inside(self, model: nn.Module) -> Iterator[None]:
        """A model whose frames are pieces, for as long as the `with` block lasts."""
        model.space = self  # type: ignore[assignment]
        try:
            yield
        finally:
            model.space = None  # type: ignore[assignment]

    # Fields and their pieces.

    def whole_grid(self, grid: Sequence[int]) -> tuple[int, ...]:
        """The grid of which a piece has so many points."""
        return tuple(points * parts for points, parts in zip(grid, self.parts, strict=True))

    def cut(self, field: Tensor) -> Tensor:
        """The piece of this process of a field whose last axes are the grid."""
        for dim, (parts, share) in enumerate(zip(self.parts, self.shares, strict=True), start=-len(self.parts)):
            if share is None:
                continue
            if field.shape[dim] % parts:
                raise ValueError(
                    f"`mesh`: {field.shape[dim]} points along axis {dim + len(self.parts)} cannot be cut into {parts} "
                    "equal pieces. Take a number of pieces that divides them."
                )
            field = field.chunk(parts, dim)[share.number]
        return field.clone(memory_format=torch.contiguous_format)

    def gathered(self, piece: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The whole field, in every process, without gradient."""
        for dim, share in enumerate(self.shares, start=-len(self.shares)):
            if share is not None:
                piece = torch.cat(list(share.gather(piece)), dim=dim)
        return piece

    def norm(self, of_piece: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The norms over all pieces, from those of this one."""
        for share in self.split:
            of_piece = torch.linalg.vector_norm(Beside.apply(of_piece, share), dim=0)
        return of_piece

    def mean(self, of_piece: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The means over all pieces, which are equally large."""
        for share in self.split:
            of_piece = Beside.apply(of_piece, share).mean(dim=0)
        return of_piece

    # Scans along split axes.

    def over_pieces(self, weights: Sequence[DiscretisedKernels]) -> list[DiscretisedKernels]:
        """The weights of a block's scans, one per axis of the whole grid, for pieces of it."""
        each = zip(weights, self.axes, self.shares, self.methods, strict=True)
        return [
            known if share is None else self._carried(known, axis, share) if how == "carried" else turned(known, share)
            for known, axis, share, how in each
        ]

    def _carried(self, weights: DiscretisedKernels, axis: AxisScan, share: AxisShare) -> DiscretisedKernels:
        blocks = [block for block in weights.blocks if isinstance(block, S4DBlock)]
        plain = weights.sampling.copies == 1 and weights.sampling.length is None
        if len(blocks) < len(weights.blocks) or not plain:  # kernels of another grid are applied to whole lines
            return turned(weights, share)
        length = weights.sampling.points // (2 if axis.boundary in WALLS else 1)
        piece = Piece(share.number, share.parts, length // share.parts)
        maps = piece_maps(
            [system(block, weights.sampling.spacing) for block in blocks],
            torch.stack([block.skip for block in blocks]),
            weights.directions(),
            boundary=axis.boundary,
            piece=piece,
        )
        ends = None if weights.ends is None else weights.ends.chunk(share.parts, -1)[share.number]
        return weights._replace(
            carried=CarriedStates(share, maps, weights.directions(), axis.boundary, piece, ends), ends=None
        )


def turned(weights: DiscretisedKernels, share: AxisShare) -> DiscretisedKernels:
    """The same weights, for lines that are turned first."""
    return weights._replace(turned=TurnedLines(share))


def system(block: S4DBlock, spacing: float) -> tuple[DiscreteModes, ComplexPair]:
    """The modes and weights of a block, in double precision where the device has it."""
    modes = block.modes
    named = (modes.log_damping, modes.frequency, modes.log_step, modes.input_weight, modes.output_weight)
    log_damping, frequency, log_step, input_weight, output_weight = precise(named, "periodic")
    discrete = DISCRETISATIONS[modes.discretisation](torch.exp(log_damping), frequency, torch.exp(log_step) * spacing)
    return discrete, complex_mul(as_pair(input_weight), as_pair(output_weight))


class WholeFields(nn.Module):
    """A model on pieces as one of whole fields, which every process gives and gets: for forecasts and their scores."""

    def __init__(self, model: nn.Module, space: SpaceMesh):
        super().__init__()
        self.model, self.space = model, space
        self.config, self.frames_as_channels = model.config, model.frames_as_channels

    def forward(self, frames: Tensor, **options: Any) -> Tensor:
        return self.space.gathered(self.model(self.space.cut(frames), **options))

    def start(self, first_frames: Tensor, **options: Any) -> Any:
        """Begin streaming; the state is that of pieces."""
        return self.model.start(self.space.cut(first_frames), **options)  # type: ignore[operator]

    def step(self, frame: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step: the newest frame in, the next one out."""
        frame, state = self.model.step(self.space.cut(frame), state)  # type: ignore[operator]
        return self.space.gathered(frame), state
