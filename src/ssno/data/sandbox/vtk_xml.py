"""VTK's XML files (.vtu, .vtp) by hand: points, fields at points and lines, in every encoding that VTK writes.

    <VTKFile type="..." header_type="UInt32" byte_order="LittleEndian" compressor="vtkZLibDataCompressor">
      <... ><Piece NumberOfPoints="n"> <Points><DataArray .../></Points> <PointData>...</PointData> <Lines>...</Lines>

Numbers are text (`ascii`), base64 in place (`binary`), or behind all elements (`appended`, raw or base64). A block of
bytes is [length][data]; a compressed one [blocks][size][last size][compressed sizes...] and then the blocks, header
and blocks being base64-coded each by itself. No declared size is believed: what comes out is bounded by the number of
points times components, and all arrays together by the size of the file. Runs in the child process.
"""

import base64
import lzma
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ssno.base.json_io import DocumentError, read_regular
from ssno.data.errors import DataError
from ssno.data.sandbox.report import whole_limit

LARGEST = 2**30
NUMBERS = {
    **{f"Float{bits}": f"f{bits // 8}" for bits in (32, 64)},
    **{f"Int{bits}": f"i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": f"u{bits // 8}" for bits in (8, 16, 32, 64)},
}
HEADERS = {"UInt32": "u4", "UInt64": "u8"}
BEGIN = re.compile(rb"\s*_")
COMPRESSORS = {"": None, "vtkZLibDataCompressor": "zlib", "vtkLZMADataCompressor": "lzma"}


@dataclass(frozen=True)
class VTKPiece:
    """What a file holds: points (n, 3), fields at points (n or n x c), and two-point lines (m, 2)."""

    points: np.ndarray
    fields: Mapping[str, np.ndarray] = field(default_factory=dict)
    lines: np.ndarray | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything by name, as it goes through the pipe."""
        lines = {} if self.lines is None else {"lines": self.lines}
        return {"points": self.points, **lines, **{f"fields/{name}": values for name, values in self.fields.items()}}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> "VTKPiece":
        """What came through the pipe."""
        fields = {name[len("fields/") :]: values for name, values in arrays.items() if name.startswith("fields/")}
        return cls(arrays["points"], fields, arrays.get("lines"))


def read_vtk(path: str | Path) -> VTKPiece:
    """Read a .vtu or .vtp file with one piece."""
    try:
        return _File(Path(path), read_regular(Path(path), limit=LARGEST)).piece()
    except (DataError, DocumentError, MemoryError, OSError):
        raise
    except Exception as error:  # XML, base64 and two compressions have exceptions of their own
        raise DataError(f"{path} is not a complete VTK file ({type(error).__name__}: {error}).") from error


class _File:
    def __init__(self, path: Path, content: bytes):
        self.path, self.left = path, whole_limit(len(content))
        self.appended, self.raw = memoryview(b""), False
        tag = content.find(b"<AppendedData")
        tag_end = content.find(b">", tag) + 1
        if tag >= 0 and b'encoding="raw"' in content[tag:tag_end] and (found := BEGIN.match(content, tag_end)):
            end = content.rfind(b"</AppendedData>")
            if end < found.end():
                raise DataError(f"{path} ends inside its appended data.")
            self.appended, self.raw = memoryview(content)[found.end() : end], True
            content = content[: found.end()] + content[end:]
        root = ElementTree.fromstring(content, ElementTree.XMLParser(target=_Elements(path)))
        if root.tag != "VTKFile":
            raise DataError(f"{path} is not a VTK file: its root is <{root.tag}>.")
        self.root = root
        self.order = "<" if root.get("byte_order", "LittleEndian") == "LittleEndian" else ">"
        if (word := root.get("header_type", "UInt32")) not in HEADERS:
            raise DataError(
                f"{path} has headers of {word!r}; only {' and '.join(HEADERS)} are read. Save it with one of them."
            )
        self.word = np.dtype(self.order + HEADERS[word])
        compressor = root.get("compressor", "")
        if compressor not in COMPRESSORS:
            raise DataError(
                f"{path} is compressed by {compressor!r}; only zlib and LZMA are read. Save it with one of them."
            )
        self.compressor = COMPRESSORS[compressor]
        if (element := root.find("AppendedData")) is not None and not self.raw:
            self.appended = memoryview((element.text or "").strip().removeprefix("_").encode())

    def piece(self) -> VTKPiece:
        pieces = self.root.findall(".//Piece")
        if len(pieces) != 1:
            raise DataError(f"{self.path} has {len(pieces)} pieces; exactly one is read.")
        (piece,) = pieces
        count = int(piece.get("NumberOfPoints", "0"))
        points = self._array(piece.find("Points/DataArray"), count)
        fields = {
            element.get("Name", ""): self._array(element, count) for element in piece.findall("PointData/DataArray")
        }
        lines = None
        if (number := int(piece.get("NumberOfLines", "0"))) > 0:
            ends = {e.get("Name"): e for e in piece.findall("Lines/DataArray")}
            offsets = self._array(ends.get("offsets"), number)
            if not np.array_equal(offsets, 2 * np.arange(1, number + 1)):
                raise DataError(f"{self.path} has lines of more or fewer than two points.")
            lines = self._array(ends.get("connectivity"), 2 * number).reshape(-1, 2).astype(np.int64)
            if lines.min() < 0 or lines.max() >= count:
                raise DataError(f"{self.path} has lines between points that it does not have.")
        return VTKPiece(points, fields, lines)

    def _array(self, element: ElementTree.Element | None, tuples: int) -> np.ndarray:
        if element is None:
            raise DataError(f"{self.path} lacks an array of its points, fields or lines.")
        name, kind = element.get("Name", "?"), element.get("type", "")
        if kind not in NUMBERS:
            raise DataError(f"{self.path}: array {name!r} holds {kind!r}, which is not read.")
        dtype, components = np.dtype(self.order + NUMBERS[kind]), int(element.get("NumberOfComponents", "1"))
        size = tuples * components * dtype.itemsize
        if not 0 <= size <= self.left:
            raise DataError(
                f"{self.path}: array {name!r} declares {size} bytes, more than a file of this size can hold."
            )
        self.left -= size
        layout = element.get("format", "ascii")
        if layout == "ascii":
            values = np.array((element.text or "").split(), dtype=dtype)
        else:
            offset = int(element.get("offset", "0")) if layout == "appended" else 0
            if not 0 <= offset <= len(self.appended):
                raise DataError(f"{self.path}: array {name!r} begins at byte {offset}, behind the end of the file.")
            inline = b"" if layout == "appended" else (element.text or "").strip().encode()
            source = self.appended[offset:] if layout == "appended" else memoryview(inline)
            data = self._bytes(_Source(source, raw=layout == "appended" and self.raw), size, name)
            values = np.frombuffer(data, dtype=dtype)
        if values.size != tuples * components:
            raise DataError(
                f"{self.path}: array {name!r} holds {values.size} numbers, declared are {tuples * components}."
            )
        native = values.astype(dtype.newbyteorder("="), copy=False)
        return native.reshape(tuples, components) if components > 1 else native

    def _bytes(self, source: "_Source", size: int, name: str) -> bytes | memoryview:
        if self.compressor is None:
            header_and_data = source.take(self.word.itemsize + size)
            (length,) = np.frombuffer(header_and_data[: self.word.itemsize], self.word).tolist()
            if length != size or len(header_and_data) < self.word.itemsize + size:
                raise DataError(f"{self.path}: array {name!r} has {length} bytes, its points need {size}.")
            return header_and_data[self.word.itemsize :]
        (blocks,) = np.frombuffer(source.peek(self.word.itemsize), self.word).tolist()
        if blocks == 0:
            return b""
        if blocks * self.word.itemsize > len(source.data):
            raise DataError(f"{self.path}: array {name!r} declares {blocks} blocks, more than the file holds.")
        header = np.frombuffer(source.take((3 + blocks) * self.word.itemsize), self.word).tolist()
        lengths, found = header[3:], []
        packed = memoryview(source.take(sum(lengths)))
        if len(packed) < sum(lengths):
            raise DataError(f"{self.path}: array {name!r} is cut off.")
        left = size
        for length in lengths:
            piece, packed = packed[:length], packed[length:]
            tool = zlib.decompressobj() if self.compressor == "zlib" else lzma.LZMADecompressor()
            found.append(tool.decompress(piece, max(left, 0) + 1))
            left -= len(found[-1])
            if left < 0:
                raise DataError(f"{self.path}: array {name!r} unpacks to more than its {size} bytes.")
        return b"".join(found)


class _Elements(ElementTree.TreeBuilder):
    """Elements without a document type: one could define entities that unfold without end."""

    def __init__(self, path: Path):
        super().__init__()
        self.path = path

    def doctype(self, *_: object) -> None:
        raise DataError(f"{self.path} defines entities, which no VTK file does; it is not read.")


class _Source:
    """Bytes that are taken from the front, raw or from base64; each take of base64 is a run with its own padding."""

    def __init__(self, data: memoryview, *, raw: bool):
        self.data, self.raw = data, raw

    def peek(self, count: int) -> bytes | memoryview:
        if self.raw:
            return self._checked(self.data[:count], count)
        return self._checked(
            base64.b64decode(self.data[: 4 * math.ceil((count + 2) / 3)], validate=True)[:count], count
        )

    def take(self, count: int) -> bytes | memoryview:
        taken = count if self.raw else 4 * math.ceil(count / 3)
        data, self.data = self.data[:taken], self.data[taken:]
        return data if self.raw else base64.b64decode(data, validate=True)[:count]

    @staticmethod
    def _checked(data: bytes | memoryview, count: int) -> bytes | memoryview:
        if len(data) < count:
            raise ValueError("cut off")
        return data
