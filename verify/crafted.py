"""Files made by hand to do harm, one function for each kind of file; each yields names and contents.

What an attack on JSON is, is the same for every document of ours, and what an attack on a name is, for every container.
"""

import io
import json
import os
import pickle
import shutil
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from safetensors.numpy import save

from verify import hostile
from verify.campaign import Counts

FILES = 569
"""How many there are (tests/verify/test_hostile_files.py)."""
Attack = tuple[str, Callable[[Path], object]]
"""What it is called, and what writes it to a path."""
NAMES = ("../../../etc/passwd", "/etc/passwd", "<script>alert(1)</script>", "\x1b[31mred\x1b]0;t\x07", "a\0b", "=1+1")
NAMES += (
    "{{7*7}}",
    "%s%n",
    "con",
    "a" * 5000,
    "\u202etxt.exe",
    "'; drop table",
    "$(touch executed)",
    "`id`",
    ".",
    "..",
)


class Runs:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {hostile.CANARY}",)


def content(data: bytes | Callable[[], bytes]) -> Callable[[Path], object]:
    """Writes these bytes; large ones are made when they are needed."""
    return lambda path: path.write_bytes(data if isinstance(data, bytes) else data())


def linked(to: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to(to)

    return make


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


ANY_FILE: list[Attack] = [
    ("empty", content(b"")),
    ("zeros", content(bytes(2**20))),
    ("noise", content(np.random.default_rng(0).bytes(2**16))),
    ("a pipe", pipe),
    ("a folder", folder),
    ("a link to /dev/zero", linked("/dev/zero")),
    ("a link to nowhere", linked("nowhere")),
    ("a link to itself", linked("damaged")),
]


def any_json(original: bytes) -> Iterator[Attack]:
    """Attacks on a document whose healthy content is known."""
    yield from ANY_FILE
    values = json.loads(original.splitlines()[0] if b"}\n{" in original else original)
    first = next(iter(values))
    yield "lists in lists", content(b"[" * 200_000 + b"]" * 200_000)
    yield "objects in objects", content(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)
    yield "open lists", content(b"[" * 2**20)
    yield (
        "a number of a million digits",
        content(json.dumps({**values, first: 0}).encode()[:-1] + b',"n":' + b"9" * 10**6 + b"}"),
    )
    yield "numbers beyond floats", content(json.dumps(values).encode()[:-1] + b',"n":1e999999,"m":-1e999999}')
    yield "NaN everywhere", content(json.dumps(numbers_to(values, float("nan"))).encode())
    yield "infinity everywhere", content(json.dumps(numbers_to(values, float("inf"))).encode())
    yield "huge numbers everywhere", content(json.dumps(numbers_to(values, 2**63)).encode())
    yield "negative numbers everywhere", content(json.dumps(numbers_to(values, -1)).encode())
    yield "truth in place of numbers", content(json.dumps(numbers_to(values, True)).encode())
    yield "keys twice", content(json.dumps(values).encode()[:-1] + b"," + json.dumps(values).encode()[1:])
    yield "a lone surrogate", content(json.dumps(texts_to(values, "\ud800")).encode())
    yield "UTF-16", content(json.dumps(values).encode("utf-16"))
    yield "a byte order mark", content(b"\xef\xbb\xbf" + json.dumps(values).encode())
    yield "spaces without end", content(lambda: b" " * (65 * 2**20))
    yield (
        "a text of 60 MB",
        content(lambda: json.dumps({**values, "note": ""}).encode()[:-2] + b"x" * (60 * 2**20) + b'"}'),
    )
    yield "a hundred thousand keys", content(json.dumps({**values, **{f"k{n}": n for n in range(10**5)}}).encode())
    yield "a list in place of an object", content(json.dumps([values]).encode())
    for number, name in enumerate(NAMES[:6]):
        yield f"texts that are name {number}", content(json.dumps(texts_to(values, name)).encode())


def numbers_to(value: Any, new: Any) -> Any:
    """The same with every number replaced."""
    if isinstance(value, dict):
        return {name: numbers_to(inner, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [numbers_to(inner, new) for inner in value]
    return new if isinstance(value, int | float) and not isinstance(value, bool) else value


def texts_to(value: Any, new: str) -> Any:
    """The same with every text replaced, but for what names the format."""
    if isinstance(value, dict):
        return {name: inner if name == "format" else texts_to(inner, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [texts_to(inner, new) for inner in value]
    return new if isinstance(value, str) else value


def safetensors(original: bytes) -> Iterator[Attack]:
    """Weights: an 8-byte length, a JSON header, numbers."""
    yield from ANY_FILE
    header = json.loads(original[8 : 8 + struct.unpack("<Q", original[:8])[0]])
    name = next(key for key in header if key != "__metadata__")

    def with_header(text: bytes, tail: bytes = bytes(4096)) -> Callable[[Path], object]:
        return content(struct.pack("<Q", len(text)) + text + tail)

    def entry(**changes: Any) -> Callable[[Path], object]:
        usual = {"dtype": "F32", "shape": [1024], "data_offsets": [0, 4096]}
        return with_header(json.dumps({name: {**usual, **changes}}).encode())

    yield "a header without end", content(struct.pack("<Q", 2**63) + original[8:])
    yield "a header of 90 MB", content(lambda: struct.pack("<Q", 90 * 2**20) + b"{" + b" " * (90 * 2**20 - 2) + b"}")
    yield "negative offsets", entry(data_offsets=[-4096, 0])
    yield "offsets backwards", entry(data_offsets=[4096, 0])
    yield "offsets beyond the end", entry(data_offsets=[0, 2**60], shape=[2**58])
    yield "a product that overflows", entry(shape=[2**32, 2**32, 4])
    yield "an unknown type", entry(dtype="OBJECT")
    yield "a shape of texts", entry(shape=["1024"])
    yield "a thousand axes", entry(shape=[1] * 1000 + [1024])
    yield "a deep header", with_header(b'{"a":' * 10_000 + b"1" + b"}" * 10_000)
    yield (
        "a name twice",
        with_header(2 * json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()),
    )
    yield "no tensor", with_header(b"{}", b"")
    yield "one tensor too many", content(save({"stranger": np.zeros(3, np.float32)}))
    for number, other in enumerate(NAMES):
        yield f"a tensor of name {number}", content(save({other: np.zeros(3, np.float32)}))
    yield "a pickle", content(pickle.dumps(Runs()))


def hdf5(original: bytes) -> Iterator[Attack]:
    """HDF5 has links, external storage, filters, references and types without end."""
    yield from ANY_FILE

    def written(fill: Callable[[h5py.File], object]) -> Callable[[Path], object]:
        def make(path: Path) -> None:
            path.unlink(missing_ok=True)
            with h5py.File(path, "w") as file:
                fill(file)

        return make

    def put(**options: Any) -> Callable[[h5py.File], object]:
        return lambda file: file.create_dataset("tensor", **options)

    def deep(file: h5py.File) -> None:
        group: Any = file
        for _ in range(3000):
            group = group.create_group("g")

    def cycle(file: h5py.File) -> None:
        file.create_group("a")["b"] = file["/"]

    def virtual(file: h5py.File) -> None:
        layout = h5py.VirtualLayout((4, 4), "f4")
        layout[:] = h5py.VirtualSource("/etc/passwd", "tensor", (4, 4))
        file.create_virtual_dataset("tensor", layout)

    def set_link(link: Any) -> Callable[[h5py.File], object]:
        return lambda file: file.__setitem__("tensor", link)

    def broken_chunk(file: h5py.File) -> None:
        data = file.create_dataset("tensor", (4, 8, 16), "f4", chunks=(4, 8, 16), compression="gzip")
        data.id.write_direct_chunk((0, 0, 0), zlib.compress(bytes(2**26), 9))

    external = [("/etc/passwd", 0, 512)]
    yield "an external link", written(set_link(h5py.ExternalLink("/etc/passwd", "/tensor")))
    yield "an external link to a device", written(set_link(h5py.ExternalLink("/dev/zero", "/tensor")))
    yield "a soft link to itself", written(set_link(h5py.SoftLink("/tensor")))
    yield "external storage", written(put(shape=(8, 4, 2), dtype="f8", external=external))
    yield "a virtual dataset", written(virtual)
    yield "3000 groups in each other", written(deep)
    yield "a group in itself", written(cycle)
    yield "20,000 datasets", written(lambda file: [file.create_dataset(f"u{n}", data=n) for n in range(20_000)])
    yield "a shape without storage", written(put(shape=(2**20, 2**20, 2**20), dtype="f8", chunks=(1, 1, 8)))
    yield "an axis without end", written(put(shape=(2**62,), dtype="u1", chunks=(1,)))
    yield "one chunk of 3 GB", written(put(shape=(3 * 2**28,), dtype="f4", chunks=(3 * 2**28,)))
    yield "a chunk that swells", written(broken_chunk)
    yield "no points", written(put(shape=(0, 8, 16), dtype="f4"))
    yield "no shape", written(put(data=h5py.Empty("f4")))
    yield "texts", written(put(shape=(4, 8), dtype=h5py.string_dtype()))
    yield "references", written(put(shape=(4, 8), dtype=h5py.ref_dtype))
    yield "lists of any length", written(put(shape=(4, 8), dtype=h5py.vlen_dtype("f4")))
    yield "records", written(put(shape=(4, 8), dtype=[("a", "f4"), ("b", "i2")]))
    yield "complex numbers", written(put(data=np.zeros((4, 8, 16), complex)))
    yield "half precision of NaN", written(put(data=np.full((4, 8, 16), np.nan, "f2")))
    yield "numbers of 16 bytes", written(put(data=np.zeros((4, 8, 16), np.longdouble)))
    yield "opaque bytes", written(put(shape=(4,), dtype="V64"))
    yield "an attribute of 60 KB", written(lambda file: file.attrs.create("a", "x" * 60_000))
    yield "30 axes", written(put(shape=(1,) * 30, dtype="f4"))
    for number, name in enumerate(NAMES):
        yield (
            f"a dataset of name {number}",
            written(lambda file, name=name: file.create_dataset(name.replace("\0", "0"), data=np.zeros((4, 8, 16)))),
        )


def npy(original: bytes) -> Iterator[Attack]:
    """A header in Python's own notation, and numbers."""
    yield from ANY_FILE

    def header(text: str, version: bytes = b"\x01\x00") -> Callable[[Path], object]:
        size = struct.pack(
            "<H" if version == b"\x01\x00" else "<I", len(text) % 2**16 if version == b"\x01\x00" else len(text)
        )
        return content(b"\x93NUMPY" + version + size + text.encode() + bytes(4096))

    def array(descr: str, shape: str) -> Callable[[Path], object]:
        return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")

    yield (
        "objects",
        content(
            b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
            + b" " * 60
            + pickle.dumps([Runs()])
        ),
    )
    yield "code in the header", header("__import__('os').system('touch executed')\n")
    yield "a call for a shape", array("'<f4'", "(print(1),)")
    for shape in (
        "(2**60,)",
        f"({2**60},)",
        f"({2**31}, {2**31}, {2**31})",
        "(-1, 4)",
        "(True,)",
        "(1e9,)",
        "[4]",
        "('4',)",
    ):
        yield f"shape {shape}", array("'<f4'", shape)
    yield "a thousand axes", array("'<f4'", f"({'1,' * 1000})")
    yield "a deep header", header("(" * 5000 + ")" * 5000)
    yield "a header of 30 MB", header(" " * (30 * 2**20) + "{}", b"\x02\x00")
    yield "version 9", content(b"\x93NUMPY\x09\x00" + bytes(200))
    for descr in ("'<f16'", "'|V1000000000'", "'<U99999999'", "[('a', '|O')]", "'<M8[s]'", "'f'*9", "'<c8'", "'|S0'"):
        yield f"type {descr}", array(descr, "(4,)")


def npz(original: bytes) -> Iterator[Attack]:
    """ZIP files of arrays."""
    yield from ANY_FILE
    array = io.BytesIO()
    np.save(array, np.zeros((4, 8, 16)))

    def archive(*members: tuple[str, bytes], how: int = zipfile.ZIP_STORED, zeros: int = 0) -> Callable[[Path], object]:
        def make(path: Path) -> None:
            with warnings.catch_warnings(), zipfile.ZipFile(path, "w", how) as file:
                warnings.simplefilter("ignore")
                for name, data in members:
                    file.writestr(name, data + bytes(zeros))

        return make

    huge = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (268435456,), }".ljust(117)
        + b"\n"
    )
    yield "a bomb", archive(("u.npy", huge), how=zipfile.ZIP_DEFLATED, zeros=2**28)
    yield "a bomb of lzma", archive(("u.npy", huge), how=zipfile.ZIP_LZMA, zeros=2**26)
    yield "a member twice", archive(("u.npy", array.getvalue()), ("u.npy", array.getvalue()))
    yield "70,000 members", archive(*[(f"{n}.npy", b"") for n in range(70_000)])
    yield "archives in archives", archive(("u.npy", original), ("v.npz", original))
    yield "a pickle", archive(("u.npy", pickle.dumps(Runs())))
    objects = io.BytesIO()
    np.save(objects, np.array([None, 1], object), allow_pickle=True)
    yield "objects", archive(("u.npy", objects.getvalue()))
    for number, name in enumerate(NAMES):
        yield f"a member of name {number}", archive((f"{name.replace(chr(0), '0')}.npy", array.getvalue()))
    cut = original.rfind(b"PK\x05\x06")
    yield "sizes of a directory", content(original[: cut + 8] + b"\xff" * 12 + original[cut + 20 :])
    yield "encrypted", content(original.replace(b"PK\x01\x02", b"PK\x01\x02", 1)[:6] + b"\x01" + original[7:])


def torch_file(original: bytes) -> Iterator[Attack]:
    """ZIP files with a pickle."""
    yield from ANY_FILE

    def pickled(data: bytes) -> Callable[[Path], object]:
        def make(path: Path) -> None:
            with zipfile.ZipFile(path, "w") as file:
                file.writestr("archive/data.pkl", data)
                file.writestr("archive/version", b"3")

        return make

    for protocol in (0, 2, 4):
        yield f"a pickle that runs, protocol {protocol}", pickled(pickle.dumps(Runs(), protocol))
    for code in (b"cos\nsystem\n(S'touch executed'\ntR.", b"c__builtin__\neval\n(S'1'\ntR.", b"(ios\nsystem\nS'id'\n."):
        yield f"opcodes {code[:12]!r}", pickled(code)
    yield "a pickle without end", pickled(b"(" * 10**6)
    yield "memo numbers", pickled(b"\x80\x02]" + b"q\xff" * 1000 + b"r\xff\xff\xff\x7f.")
    yield "a text of 4 GB", pickled(b"\x80\x02X\xff\xff\xff\xff.")
    yield "a bare pickle", content(pickle.dumps(Runs()))
    yield "tuples in tuples", pickled(b"\x80\x02" + b")" + b"\x85" * 10**6 + b".")


def csv(original: bytes) -> Iterator[Attack]:
    """Tables of text."""
    yield from ANY_FILE
    yield "a line of 60 MB", content(lambda: b"1" * (60 * 2**20))
    yield "a million columns", content(b"1," * 10**6 + b"1\n")
    yield "a million empty lines", content(b"time,x,u\n" + b"\n" * 10**6)
    yield "quotes without end", content(b'time,x,u\n"' + b"1,2,3\n" * 10_000)
    yield "NUL", content(original.replace(b"\n", b"\0\n"))
    yield "formulas", content(b"time,x,=cmd|' /C calc'!A0\n0,0,=1+1\n")
    yield "numbers beyond floats", content(b"time,x,u\n0,0,1e999\n0,1,-1e999\n")
    yield "digits without end", content(b"time,x,u\n0,0," + b"9" * 10**6 + b"\n")
    yield "ragged", content(original + b"1,2\n1,2,3,4\n")
    yield "UTF-16", content(original.decode().encode("utf-16"))
    for number, name in enumerate(NAMES[:6]):
        yield f"a column of name {number}", content(original.replace(b"u\n", name.encode() + b"\n", 1))


def vtk(original: bytes) -> Iterator[Attack]:
    """XML with numbers in it."""
    yield from ANY_FILE
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    yield (
        "a billion laughs",
        content(f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "ha">{entities}]><a>&l11;</a>'.encode()),
    )
    yield "an external entity", content(b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><VTKFile>&x;</VTKFile>')
    yield "a parameter entity", content(b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><VTKFile/>')
    yield "deep tags", content(b"<a>" * 300_000)
    yield "an attribute of 40 MB", content(lambda: b'<VTKFile type="' + b"x" * (40 * 2**20) + b'"/>')
    yield "a million attributes", content(b"<VTKFile " + b" ".join(b'a%d="1"' % n for n in range(10**5)) + b"/>")
    for count in ("-1", "1e9", str(2**63), "9" * 400, "nan"):
        yield (
            f"{count[:20]} points",
            content(original.replace(b'NumberOfPoints="', b'NumberOfPoints="' + count.encode() + b'" a="')),
        )
    yield "offsets beyond the end", content(original.replace(b'offset="', b'offset="999999999999'))
    yield "negative offsets", content(original.replace(b'offset="', b'offset="-'))


def matlab(original: bytes) -> Iterator[Attack]:
    """MATLAB files of version 5."""
    yield from ANY_FILE
    head = original[:128]
    bomb = zlib.compress(struct.pack("<2I", 14, 2**30) + bytes(2**26), 9)
    yield "a bomb", content(head + struct.pack("<2I", 15, len(bomb)) + bomb)
    yield "a variable of 4 GB", content(head + struct.pack("<2I", 14, 2**32 - 1) + bytes(64))
    yield "dimensions without end", content(original.replace(struct.pack("<3i", 3, 4, 4), b"\xff\xff\xff\x7f" * 3))
    yield "negative dimensions", content(original.replace(struct.pack("<3i", 3, 4, 4), b"\xff\xff\xff\xff" * 3))
    for kind in (1, 2, 3, 4, 5, 16, 17, 255):  # cells, structures, objects, text, sparse, functions, opaque, none
        tag = original.find(struct.pack("<2I", 6, 8), 128)
        yield f"class {kind}", content(original[: tag + 8] + bytes([kind]) + original[tag + 9 :])
    yield (
        "compressed in compressed",
        content(head + struct.pack("<2I", 15, 99) + zlib.compress(struct.pack("<2I", 15, 9) * 9)),
    )


def netcdf(original: bytes) -> Iterator[Attack]:
    """Classic NetCDF."""
    yield from ANY_FILE
    for count in (2**31 - 1, 2**32 - 1, 2**24):
        number = struct.pack(">I", count)
        yield f"{count} dimensions", content(original[:8] + b"\0\0\0\x0a" + number + original[16:])
        yield f"{count} records", content(original[:4] + number + original[8:])
        yield f"a name of {count} letters", content(original[:16] + number + original[20:])


def sweep(suffix: str) -> Callable[[bytes], Iterator[Attack]]:
    def attacks(original: bytes) -> Iterator[Attack]:
        yield from ANY_FILE
        if suffix == "yaml":
            yield (
                "aliases",
                content(b"a: &a [x,x,x,x,x]\n" + b"\n".join(b"k%d: &k%d [*a,*a]" % (n, n) for n in range(30))),
            )
            yield "an object", content(b"run: !!python/object/apply:os.system ['touch executed']\n")
            yield "deep lists", content(b"run: " + b"[" * 20_000)
            yield "a merge of itself", content(b"a: &a\n  <<: *a\n")
        else:
            yield "deep arrays", content(b"a = " + b"[" * 20_000)
            yield "deep tables", content(b"[" + b".".join([b"a"] * 20_000) + b"]\n")
            yield "a number of a million digits", content(b"seeds = [" + b"9" * 10**6 + b"]\n")
            yield "a date", content(b"seeds = [1979-05-27T07:32:00Z]\n")
        yield (
            "a grid without end",
            content(json.dumps({"grid": {f"train.k{n}": list(range(100)) for n in range(50)}}).encode()),
        )

    return attacks


KINDS: dict[str, Callable[[bytes], Iterator[Attack]]] = {
    **dict.fromkeys(("run/config.json", "checkpoint.json", "evaluation.json", "sweep.json"), any_json),
    **dict.fromkeys(("dataset/manifest.json", "airfrans/manifest.json", "run/metrics.jsonl"), any_json),
    **dict.fromkeys(("run/model.safetensors", "checkpoint tensors"), safetensors),
    "burgers.hdf5": hdf5,
    "array.npy": npy,
    "packed.npz": npz,
    "tensors.pt": torch_file,
    "table.csv": csv,
    "case.vtu": vtk,
    "wall.vtp": vtk,
    "plain.mat": matlab,
    "three.nc": netcdf,
    "sweep.toml": sweep("toml"),
    "sweep.yaml": sweep("yaml"),
    "exported.onnx": lambda original: iter(ANY_FILE),
}


@cache
def files(kind: str) -> list[Attack]:
    """The attacks on a kind of file; contents of healthy ones are needed for them."""
    target = next(one for one in hostile.TARGETS if one.name == kind)
    return list(KINDS[kind](hostile.located(target).read_bytes()))


@cache
def corpus() -> list[tuple[str, int]]:
    return [(kind, at) for kind in KINDS for at in range(len(files(kind)))]


def prepare() -> None:
    """The corpus, for all forks."""
    hostile.prepare()
    corpus()


def trial(number: int, place: Path) -> Counts:
    """One crafted file in place of the healthy one."""
    kind, at = corpus()[number]
    target = next(one for one in hostile.TARGETS if one.name == kind)
    original = hostile.located(target)
    home = original.relative_to(hostile.originals()).parts[0]
    if (hostile.originals() / home).is_dir():
        shutil.copytree(hostile.originals() / home, place / home)
    path = place / original.relative_to(hostile.originals())
    name, make = files(kind)[at]
    make(path)
    os.chdir(place)
    try:
        found = hostile.outcome(lambda: target.read(path), place)
    except BaseException as error:
        raise AssertionError(f"{kind}, {name}: {type(error).__name__}: {error}") from error
    return {found: 1, kind: 1}
