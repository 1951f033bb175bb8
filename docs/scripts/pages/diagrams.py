"""Diagrams of the models, drawn from their configurations: what happens to a frame, from top to bottom.

All text stands inside filled boxes and arrows are grey, so that a diagram can be read on a light and on a dark page.
Widths of boxes are resolutions: those of a U-Net narrow and widen again, with its skips beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from ssno.layers import MemoryOptions
from ssno.models import OperatorConfig

Kind = Literal["frame", "pointwise", "space", "time", "resize"]
FILL: dict[Kind, str] = {
    "frame": "#dfe5ec",
    "pointwise": "#ffe3ad",
    "space": "#bfe0d4",
    "time": "#e2cdf0",
    "resize": "#f6cfc4",
}
WIDTH, HEIGHT, GAP, MARGIN = 420, 58, 20, 30
GREY, INK = "#808080", "#1a1a1a"


@dataclass(frozen=True)
class Stage:
    """A box: what it does, how, what kind of work that is, and its width as a share of the whole."""

    title: str
    detail: str
    kind: Kind
    share: float = 1.0


def diagram(name: str, config: OperatorConfig) -> str:
    """The SVG of a model."""
    boxes = stages(config)
    height = len(boxes) * (HEIGHT + GAP) - GAP + 2 * MARGIN // 3
    top = MARGIN // 3
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="system-ui, sans-serif" text-anchor="middle">',
        f"<title>{escape(alternative_text(name, config))}</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{GREY}"/></marker></defs>',
    ]
    for number, stage in enumerate(boxes):
        y = top + number * (HEIGHT + GAP)
        wide = (WIDTH - 2 * MARGIN) * stage.share
        left = (WIDTH - wide) / 2
        parts.append(
            f'<rect x="{left:g}" y="{y}" width="{wide:g}" height="{HEIGHT}" rx="9" fill="{FILL[stage.kind]}"/>'
            f'<text x="{WIDTH / 2:g}" y="{y + 25}" font-size="16" font-weight="600" fill="{INK}">'
            f"{escape(stage.title)}</text>"
            f'<text x="{WIDTH / 2:g}" y="{y + 45}" font-size="13" fill="{INK}">{escape(stage.detail)}</text>'
        )
        if number:
            parts.append(_arrow([(WIDTH / 2, y - GAP), (WIDTH / 2, y)]))
    parts += [_skip(boxes, top, first, last) for first, last in _skips(boxes)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def alternative_text(name: str, config: OperatorConfig) -> str:
    """The diagram in words."""
    return f"{name}: " + ", then ".join(stage.title.lower() for stage in stages(config))


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    path = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{GREY}" stroke-width="2" marker-end="url(#tip)"/>'


def _skips(boxes: Sequence[Stage]) -> list[tuple[int, int]]:
    """Pairs of levels of equal resolution on the way down and up."""
    down = [n for n, box in enumerate(boxes) if box.title.startswith("down")]
    up = [n for n, box in enumerate(boxes) if box.title.startswith("up")]
    return [(first, last) for first in down for last in up if boxes[first].share == boxes[last].share]


def _skip(boxes: Sequence[Stage], top: int, first: int, last: int) -> str:
    right = (WIDTH + (WIDTH - 2 * MARGIN) * boxes[first].share) / 2
    out = right + 9
    begin, end = (top + n * (HEIGHT + GAP) + HEIGHT / 2 for n in (first, last))
    return _arrow([(right, begin), (out, begin), (out, end), (right + 1, end)])


def stages(config: Any) -> list[Stage]:
    """The boxes of a model."""
    family = type(config).__name__.removesuffix("Config")
    middle = {
        "SSNO": _ssno,
        "SphereSSNO": _sphere,
        "FNO": _fno,
        "FFNO": _ffno,
        "UNet": _unet,
        "CNextUNet": _cnext,
        "GKT": _gkt,
        "Factformer": _factformer,
        "SFNO": _sfno,
        "SSNOSlices": _slices,
        "Transolver": _slices,
        "Persistence": lambda _: [Stage("copy", "the newest frame again", "pointwise")],
        "Linear": lambda _: [Stage("extrapolate", "twice the newest frame minus the one before", "pointwise")],
    }[family](config)
    return [
        _frames(config),
        *middle,
        Stage("next frame", f"{config.out_channels} field(s); fed back in a rollout", "frame"),
    ]


def _frames(config: Any) -> Stage:
    stacked = getattr(config, "frames_as_channels", 0)
    coordinates = ", coordinates" if getattr(config, "coordinates", False) else ""
    fields = f"{config.in_channels} field(s){coordinates}"
    if "points" in config.geometries and "sphere" not in config.geometries:
        return Stage("cloud of points", f"{config.in_channels} fields, distances to a lattice", "frame")
    return Stage(f"last {stacked} frames as channels" if stacked else "frame", fields, "frame")


def _memory(config: Any, share: float = 1.0) -> list[Stage]:
    memory: MemoryOptions = config.memory
    scan = f"{memory.kernel.upper()} scan of the last {memory.window} frames, at every point"
    return [Stage("memory", scan, "time", share)] if memory.window else []


def _around_memory(config: Any, block: Stage) -> list[Stage]:
    """Half of the blocks before memory, half after."""
    memory, layers = _memory(config), config.n_layers
    if not memory:
        return [Stage(f"{layers} x {block.title}", block.detail, block.kind)]
    early = Stage(f"{layers // 2} x {block.title}", block.detail, block.kind)
    return [early, *memory, Stage(f"{layers - layers // 2} x {block.title}", block.detail, block.kind)]


def _lift(config: Any) -> Stage:
    return Stage("lift", f"to {config.hidden_channels} channels, point by point", "pointwise")


def _head(config: Any) -> Stage:
    return Stage("head", f"network of width {config.head_channels}, point by point", "pointwise")


def _ssno(config: Any) -> list[Stage]:
    states = f"{config.d_state} states"
    detail = {
        "axial": f"x + forward + backward scan per axis, {states}",
        "unidirectional": f"x + forward scan, axis by axis, {states}",
        "raster": f"the grid as one line, both ways, {states}",
        "parallel": f"scans of all axes summed, then a network, {states}",
        "product": f"product of two-way scans, axis by axis, {states}",
    }[config.block.kind]
    title = f"{config.block.kind} scan"
    if config.modes.selective:
        detail = f"scans whose modes follow the input, {states}"
    if config.block.warp_heads:
        title, detail = f"{title}, warp", f"... plus values read at {config.block.warp_heads} learned displacements"
    return [_lift(config), *_around_memory(config, Stage(title, detail, "space")), _head(config)]


def _sphere(config: Any) -> list[Stage]:
    detail = {
        "axes": "around the rings, over the poles",
        "great-circles": "along all great circles",
        "products": "along all great circles, then a product",
    }[config.scans]
    cut = Stage("cut", "to the degrees of the data", "resize")
    block = Stage("sphere scan", f"{detail}, {config.d_state} states", "space")
    return [_lift(config), *_around_memory(config, block), _head(config), cut]


def _fno(config: Any) -> list[Stage]:
    mixing = "a matrix over channels per mode" if config.mix_channels else "a number per channel and mode"
    block = Stage("Fourier layer", f"all axes, {config.n_modes} modes, {mixing}", "space")
    return [_lift(config), *_around_memory(config, block), _head(config)]


def _ffno(config: Any) -> list[Stage]:
    block = Stage("Fourier layer per axis", f"{config.n_modes} modes; summed, then a network", "space")
    return [_lift(config), *_around_memory(config, block), _head(config)]


def level_share(halved: int) -> float:
    """The width of a box after `halved` halvings of the grid, wide enough for its words."""
    return 1 - 0.09 * halved


def _level(config: Any, way: str, halved: int, what: str) -> Stage:
    grid = "full grid" if halved == 0 else f"1/{2**halved} of the grid"
    channels = f"{config.hidden_channels * 2**halved} channels"
    return Stage(f"{way}: {channels}", f"{what}, {grid}", "space", level_share(halved))


def _unet(config: Any) -> list[Stage]:
    down = [_level(config, "down", n, "2 convolutions") for n in range(4)]
    up = [_level(config, "up", n, "2 convolutions") for n in (3, 2, 1, 0)]
    bottom = _level(config, "bottom", 4, "2 convolutions")
    return [
        *down[:2],
        *_memory(config, level_share(1)),
        *down[2:],
        bottom,
        *up,
        Stage("project", "to the fields", "pointwise"),
    ]


def _cnext(config: Any) -> list[Stage]:
    what = f"{config.blocks_per_level} ConvNeXt"
    down = [_level(config, "down", n, what) for n in range(4)]
    up = [_level(config, "up", n, what) for n in (4, 3, 2, 1)]
    bottom = _level(config, "bottom", 4, "1 ConvNeXt")
    lift = Stage("lift", f"convolution to {config.hidden_channels} channels", "pointwise")
    project = Stage("project", "convolution to the fields", "pointwise")
    return [lift, *down[:1], *_memory(config, level_share(1)), *down[1:], bottom, *up, project]


def _gkt(config: Any) -> list[Stage]:
    return [
        _lift(config),
        Stage(f"{config.n_layers} x Galerkin attention", f"all points, {config.n_heads} heads, no softmax", "space"),
        Stage("2 x Fourier layer", f"spectral decoder, {config.n_modes} modes", "space"),
        _head(config),
    ]


def _factformer(config: Any) -> list[Stage]:
    block = Stage("axial attention", f"one kernel per axis, {config.n_heads} heads", "space")
    latent = Stage("latent step", "a linear map and a network", "pointwise")
    return [_lift(config), *_around_memory(config, block), latent, _head(config)]


def _sfno(config: Any) -> list[Stage]:
    where = "" if config.position == "none" else f", with {config.position}"
    block = Stage("spherical filter", "harmonics, a matrix over channels per degree", "space")
    lift = Stage("lift", f"to {config.embed_dim} channels{where}", "pointwise")
    return [lift, *_around_memory(config, block), Stage("project", "plus the input frame", "pointwise")]


def _slices(config: Any) -> list[Stage]:
    mixing = getattr(config, "mixing", None)
    among = "attention among slices" if mixing == "attention" else "scan over the slices" if mixing is None else "none"
    block = Stage(f"{config.n_layers} x slices", f"pool into {config.n_slices}, {among}, spread back", "space")
    return [_lift(config), block, Stage("project", "norm and a linear map", "pointwise")]
