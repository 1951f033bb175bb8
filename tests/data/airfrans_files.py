"""Writes VTK's XML byte by byte, and folders in AirfRANS's layout with exact flows: what the readers are tested on."""

import base64
import json
import lzma
import math
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssno.pde.problems.kt_foil import Foil, FoilFlow

NAMES = {"f4": "Float32", "f8": "Float64", "i8": "Int64", "u1": "UInt8"}
PACK = {"zlib": zlib.compress, "lzma": lzma.compress}
CLASSES = {"zlib": "vtkZLibDataCompressor", "lzma": "vtkLZMADataCompressor"}


class Encoding(NamedTuple):
    layout: str = "binary"  # ascii, binary, raw, base64
    compressor: str = "zlib"  # zlib, lzma or nothing
    word: str = "u4"
    order: str = "<"
    block: int = 1000


USUAL = Encoding()


class Writer:
    """One file in one encoding."""

    def __init__(self, encoding: Encoding = USUAL):
        self.encoding, self.appended = encoding, b""

    def array(self, name: str, values: np.ndarray) -> str:
        layout, _, _, order, _ = self.encoding
        components = values.shape[1] if values.ndim > 1 else 1
        head = f'<DataArray type="{NAMES[values.dtype.str[1:]]}" Name="{name}" NumberOfComponents="{components}" '
        if layout == "ascii":
            text = " ".join(repr(value) for value in values.ravel().tolist())
            return f'{head} format="ascii">{text}</DataArray>'
        runs = self.packed(values.astype(values.dtype.newbyteorder(order)).tobytes())
        if layout == "raw":
            offset, self.appended = len(self.appended), self.appended + b"".join(runs)
            return f'{head} format="appended" offset="{offset}"/>'
        text = b"".join(map(base64.b64encode, runs))
        if layout == "binary":
            return f'{head} format="binary">{text.decode()}</DataArray>'
        offset, self.appended = len(self.appended), self.appended + text
        return f'{head} format="appended" offset="{offset}"/>'

    def packed(self, data: bytes) -> list[bytes]:
        """Header and data, which are base64-coded together, or apart if compressed."""
        _, compressor, word, order, size = self.encoding
        header = np.dtype(order + word)
        if not compressor:
            return [np.array([len(data)], header).tobytes() + data]
        blocks = [data[first : first + size] for first in range(0, len(data), size)]
        packed = [PACK[compressor](block) for block in blocks]
        last = len(blocks[-1]) % size if blocks else 0
        return [np.array([len(blocks), size, last, *map(len, packed)], header).tobytes(), b"".join(packed)]

    def write(
        self, path: Path, kind: str, points: np.ndarray, fields: dict[str, np.ndarray], *, lines=None, quads=None
    ) -> None:
        layout, compressor, word, order, _ = self.encoding
        data = "".join(self.array(name, values) for name, values in fields.items())
        body = f"<PointData>{data}</PointData><Points>{self.array('Points', points)}</Points>"
        count = f'NumberOfPoints="{len(points)}"'
        if lines is not None:
            ends = self.array("connectivity", lines.ravel()), self.array("offsets", 2 * np.arange(1, len(lines) + 1))
            body += f"<Lines>{''.join(ends)}</Lines>"
            count += f' NumberOfLines="{len(lines)}"'
        if quads is not None:
            corners, ends = self.array("connectivity", quads.ravel()), 4 * np.arange(1, len(quads) + 1)
            kinds = self.array("types", np.full(len(quads), 9, np.uint8))
            body += f"<Cells>{corners}{self.array('offsets', ends)}{kinds}</Cells>"
            count += f' NumberOfCells="{len(quads)}"'
        head = f'<VTKFile type="{kind}" version="1.0" header_type="{ {"u4": "UInt32", "u8": "UInt64"}[word] }" '
        head += f'byte_order="{ {"<": "LittleEndian", ">": "BigEndian"}[order] }"'
        head += f' compressor="{CLASSES[compressor]}">' if compressor else ">"
        text = f'<?xml version="1.0"?>\n{head}<{kind}><Piece {count}>{body}</Piece></{kind}>'.encode()
        if self.appended:
            text += f'<AppendedData encoding="{layout}">\n_'.encode() + self.appended + b"\n</AppendedData>"
        path.write_bytes(text + b"</VTKFile>")


def flat(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


def write_case(folder: Path, flow: FoilFlow, profile: str = "1_2_12", *, around: int = 64, out: int = 10) -> str:
    """One case on an O-grid, nodes and lines shuffled, normals inwards, no slip; returns its name."""
    name = f"airFoil2D_SST_{flow.speed:.3f}_{math.degrees(flow.angle):.3f}_{profile}"
    (folder / name).mkdir(parents=True)
    foil, rng = flow.foil, np.random.default_rng(0)
    angle = -foil.beta + (np.arange(around) + 0.5) * 2 * np.pi / around
    height = np.concatenate([[0.0], np.geomspace(1e-3, 5, out - 1)])
    zeta = foil.circle(np.tile(angle, out), stretch=1 + np.repeat(height, around))
    place, velocity, wall = foil.placed(zeta), flow.velocity(zeta), np.repeat(height == 0, around)
    pressure = flow.pressure(velocity)
    velocity = np.where(wall, 0, velocity)
    points = flat(np.stack([place.real, place.imag, np.full(len(place), 0.5)], axis=1))
    mixed = rng.permutation(len(points))
    fields = {
        "U": flat(np.stack([velocity.real, velocity.imag, 0 * pressure], axis=1))[mixed],
        "p": flat(pressure)[mixed],
        "nut": flat(np.where(wall, 0, 1e-4))[mixed],
        "implicit_distance": flat(-np.abs(np.repeat(height, around)))[mixed],
    }
    ring, height_number = np.meshgrid(np.arange(around), np.arange(out - 1))
    inner, beyond = (ring + height_number * around).ravel(), ((ring + 1) % around + height_number * around).ravel()
    quads = np.argsort(mixed)[np.stack([inner, inner + around, beyond + around, beyond], axis=1)]
    Writer().write(folder / name / f"{name}_internal.vtu", "UnstructuredGrid", points[mixed], fields, quads=quads)
    shuffled = rng.permutation(around)
    place_of = np.argsort(shuffled)
    lines = np.stack([place_of, place_of[(np.arange(around) + 1) % around]], axis=1)[rng.permutation(around)]
    normal = -foil.outward_normal(angle)[shuffled]
    on_wall = {
        "U": np.zeros((around, 3), np.float32),
        "p": flat(pressure[:around])[shuffled],
        "nut": np.zeros(around, np.float32),
        "Normals": flat(np.stack([normal.real, normal.imag, 0 * normal.real], axis=1)),
    }
    wall_points = points[:around][shuffled]
    file = folder / name / f"{name}_aerofoil.vtp"
    Writer(Encoding("raw", "")).write(file, "PolyData", wall_points, on_wall, lines=lines)
    return name


def write_airfrans(folder: Path, flows: list[FoilFlow] | None = None) -> list[str]:
    """A whole folder: the first two thirds of the cases train, the others test."""
    angles = (-3.2, 4.0, 9.0)
    flows = flows or [FoilFlow(Foil(0.1, 0.05, 0.2), 40.0 + i, math.radians(a)) for i, a in enumerate(angles)]
    names = [write_case(folder, flow) for flow in flows]
    cut = 2 * len(names) // 3
    (folder / "manifest.json").write_text(json.dumps({"full_train": names[:cut], "full_test": names[cut:]}))
    return names
