"""Damage as it happens, or as an enemy does it: to bytes, to values of JSON, to the words of a text."""

import json
import random
import re
from typing import Any

import numpy as np

LARGE = (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFFFFFFFFFF, 2**63 - 1, 2**40, 1)
VALUES: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    10**30,
    1e308,
    0.5,
    "",
    "x",
    "full_train",
    "../..",
    "\x1b[31m\0",
    "<f4",
    "|O",
]
VALUES += [[], [[]], [1], ["x", "x"], {}, {"a": [1]}, [None, {}], "airFoil2D_SST_1_2_3_4_5", [[[]]] * 3, "float32"]
VALUES += [f"airFoil2D_SST_{'9' * 400}_2_3_4_5", f"airFoil2D_SST_1_{'9' * 90}_3_4_5", [0], [2**62, 2**62], [-1, 4, 8]]
WORDS = ["", "0", "1", "2", "-1", "1e3", "9" * 25, "nan", "Float32", "Int8", "UInt8", "UInt64", "String", "BigEndian"]
WORDS += ["raw", "ascii", "appended", "binary", "base64", "vtkLZMADataCompressor", "vtkX", "U", "p", "٣", "640", "64"]
WORDS += ["32"]


def mutate(original: bytes, rng: np.random.Generator) -> bytes:
    """Cuts, flips, zeros, noise, large numbers, swapped and inserted blocks: one to three of them."""
    data = bytearray(original)
    for _ in range(rng.integers(1, 4)):
        # Headers and tables are at the beginning; most of the rest is plain numbers.
        at = int(rng.integers(0, min(len(data), 4096) if rng.random() < 0.7 else len(data)))
        size = int(rng.integers(1, 65))
        kind = rng.integers(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            data[at : at + size] = bytes(len(data[at : at + size]))
        elif kind == 3:
            data[at : at + size] = rng.bytes(len(data[at : at + size]))
        elif kind == 4:
            value = LARGE[rng.integers(len(LARGE))]
            width = 8 if value > 0xFFFFFFFF or rng.random() < 0.5 else 4
            data[at : at + width] = value.to_bytes(width, "little" if rng.random() < 0.5 else "big")
        elif kind == 5:
            other = int(rng.integers(0, len(data)))
            data[at : at + size] = data[other : other + size]
        else:
            data[at:at] = rng.bytes(size)
        if not data:
            return b"\x00"
    return bytes(data)


def splice(original: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """The head of one file and the tail of another, or one block many times."""
    at = int(rng.integers(0, len(original)))
    if rng.random() < 0.5:
        return original[:at] + other[int(rng.integers(0, len(other))) :]
    size = int(rng.integers(1, 257))
    return original[:at] + original[at : at + size] * int(rng.integers(2, 200)) + original[at:]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Ways into a JSON value, to everything in it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, inner in inside for place in places(inner, (*at, key)))]


def mutated(original: Any, rng: random.Random) -> Any:
    """A JSON value with one to three things replaced, removed or added."""
    value = json.loads(json.dumps(original))
    for _ in range(rng.randint(1, 3)):
        *outer, last = rng.choice(places(value)) or (None,)
        holder = value
        for key in outer:
            holder = holder[key]
        if last is None:
            value = rng.choice(VALUES) if rng.random() < 0.1 else value
        elif rng.random() < 0.2:
            del holder[last]
        elif isinstance(holder, list) and rng.random() < 0.3:
            holder.insert(last, rng.choice([*VALUES, holder[last]]))
        else:
            holder[last] = rng.choice(VALUES)
        value = json.loads(json.dumps(value))  # nothing twice
    return value


def reworded(content: bytes, rng: random.Random) -> bytes:
    """XML or text with one or two quoted words or tags replaced."""
    for _ in range(rng.randint(1, 2)):
        spots = [*re.finditer(rb"\"[^\"<>]{0,40}\"", content), *re.finditer(rb"</?\w+", content)]
        if not spots:
            return content
        spot = rng.choice(spots)
        new = f'"{rng.choice(WORDS)}"'.encode() if spot[0].startswith(b'"') else rng.choice([b"", b"<Piece", b"<a"])
        content = content[: spot.start()] + new + content[spot.end() :]
    return content
