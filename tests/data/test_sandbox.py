"""Hostile and broken files: nothing outside the file is touched, nothing incomplete is taken for whole."""

import os
import stat
import struct
import time
import zipfile
import zlib

import h5py
import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from ssno.data.errors import DataError
from ssno.data.sandbox import parent as probe
from ssno.data.sandbox import parent as sandbox
from ssno.data.sandbox import parent as whole_arrays
from ssno.data.sandbox.child import examine
from ssno.data.sandbox.hdf5 import MAX_CHUNK
from ssno.data.sandbox.parent import Child, contents_of
from ssno.data.sandbox.report import whole_limit


@pytest.fixture
def secret(tmp_path):
    """A file elsewhere that a hostile file would like us to read."""
    path = tmp_path / "elsewhere" / "secret.h5"
    path.parent.mkdir()
    with h5py.File(path, "w") as file:
        file["key"] = np.arange(12.0).reshape(3, 4)
    return path


def refused(tmp_path, build) -> dict[str, str]:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        build(file)
        file["fine"] = np.zeros((2, 3))
    contents = contents_of(tmp_path / "a.h5")
    assert list(contents.arrays) == ["fine"]
    return dict(contents.refused)


def test_links_to_other_files_are_not_followed(tmp_path, secret) -> None:
    found = refused(tmp_path, lambda file: file.update({"bait": h5py.ExternalLink(str(secret), "/key")}))
    assert found == {"bait": f"is a link to another file, {str(secret)!r}"}
    with pytest.raises(DataError, match="'bait' in .*a.h5 is a link to another file"):
        _ = contents_of(tmp_path / "a.h5")["bait"]


def test_soft_links_and_loops_of_groups_end(tmp_path) -> None:
    def build(file: h5py.File) -> None:
        file["loop"] = h5py.SoftLink("/loop")
        file["inner/up"] = file["/"]
        file["inner/self"] = file["inner"]

    found = refused(tmp_path, build)
    assert found["loop"] == "is a soft link to '/loop'; name the target itself"
    assert found["inner/self"] == "is a second name of something listed elsewhere"
    assert found["inner/up"] == "is a second name of something listed elsewhere"


def test_virtual_datasets_and_external_storage_are_not_read(tmp_path, secret) -> None:
    def build(file: h5py.File) -> None:
        layout = h5py.VirtualLayout((3, 4), "f8")
        layout[:] = h5py.VirtualSource(str(secret), "key", (3, 4))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", (4,), "f8", external=[(str(secret), 0, 32)])

    found = refused(tmp_path, build)
    assert all("takes its numbers from other files" in found[name] for name in ("virtual", "external"))


@pytest.mark.parametrize(
    ("dtype", "why"),
    [
        (h5py.vlen_dtype(np.float32), "objects, references or strings of varying length"),
        (h5py.string_dtype(), "objects, references or strings of varying length"),
        (h5py.ref_dtype, "objects, references or strings of varying length"),
        (np.dtype([("a", "f4"), ("b", "i4")]), "not real numbers"),
        (np.dtype("c16"), "holds complex128, not real numbers"),
        (np.dtype("S8"), "not real numbers"),
    ],
)
def test_types_that_are_not_numbers_are_not_read(tmp_path, dtype, why) -> None:
    found = refused(tmp_path, lambda file: file.create_dataset("odd", (3,), dtype))
    assert why in found["odd"]


def test_unknown_filters_are_not_run(tmp_path) -> None:
    found = refused(tmp_path, lambda file: file.create_dataset("odd", data=np.arange(64), scaleoffset=4, chunks=(8,)))
    assert found["odd"] == "is stored with filter 6, which ssno does not run; store it with gzip"


def test_arrays_that_were_never_written_are_incomplete(tmp_path) -> None:
    def build(file: h5py.File) -> None:
        file.create_dataset("contiguous", (100, 100), "f4")
        some = file.create_dataset("chunked", (8, 10), "f4", chunks=(2, 10))
        some[:3] = 1.0
        file.create_dataset("vast", (10**9, 10**9), "f8", chunks=(1000, 1000))
        file.create_dataset("null", data=h5py.Empty("f4"))

    found = refused(tmp_path, build)
    assert found["contiguous"] == "is incomplete: 0 of 40000 bytes were written"
    assert found["chunked"] == "is incomplete: 2 of 4 chunks were written"
    assert found["vast"] == "is incomplete: 0 of 1000000000000 chunks were written"
    assert found["null"] == "is empty"


def test_chunks_too_large_to_hold_are_refused_unread(tmp_path) -> None:
    size = MAX_CHUNK // 4 + 1
    found = refused(tmp_path, lambda file: file.create_dataset("odd", (size,), "f4", chunks=(size,)))
    assert f"larger than {MAX_CHUNK} bytes" in found["odd"]


def test_named_types_and_large_attributes_are_left_out(tmp_path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file["type"] = np.dtype("f4")
        file.attrs["long"] = "x" * 2**15
        file.attrs["many"] = np.zeros(2**14)
        file.attrs["nothing"] = h5py.Empty("f4")
        file.attrs["link"] = file.ref
    contents = contents_of(tmp_path / "a.h5")
    assert contents.refused == {"type": "is a named type, not data"}
    assert set(contents.attributes()) == {"long"}


def test_files_with_too_many_objects_or_levels_are_refused(tmp_path, monkeypatch) -> None:
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file["/".join("abcdefgh" * 6)] = np.zeros((2, 2))
    with pytest.raises(DataError, match="more than 10000 objects or 32 levels of groups"):
        contents_of(tmp_path / "deep.h5")


def test_a_chunk_that_fails_its_checksum_is_named(tmp_path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", data=np.ones((4, 64), "f4"), chunks=(1, 64), fletcher32=True)
        place = file["u"].id.get_chunk_info(2)
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[place.byte_offset + 5] ^= 1
    (tmp_path / "a.h5").write_bytes(data)
    assert contents_of(tmp_path / "a.h5").refused["u"].startswith("cannot be read:")
    assert "u" in contents_of(tmp_path / "a.h5", budget=0).arrays  # nothing is read through, as for our own files


def test_large_arrays_are_sampled_at_both_ends(tmp_path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", data=np.ones((40, 2**19), "f4"), chunks=(1, 2**19), fletcher32=True)
        place = file["u"].id.get_chunk_info(39)
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[place.byte_offset + 5] ^= 1
    (tmp_path / "a.h5").write_bytes(data)
    assert "u" in contents_of(tmp_path / "a.h5", budget=2**20).refused


def test_pickles_are_never_loaded(tmp_path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "evil"),)

    objects = np.empty(1, dtype=object)
    objects[0] = Evil()
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", u=objects)
    for name, key in (("a.npy", "array"), ("a.npz", "u")):
        contents = contents_of(tmp_path / name)
        assert contents.refused[key] == "holds Python objects, references or strings of varying length"
    assert not (tmp_path / "evil").exists()


def npy(shape: str, data: bytes = b"", descr: str = "<f4") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy("(1000000, 1000000)"), r"is incomplete: float32 \(1000000, 1000000\) needs 4000000000000 bytes, 0 are"),
        (npy("(-1, 4)", bytes(16)), r"is incomplete: float32 \(-1, 4\)"),
        (npy("(2, 4)", bytes(31)), "needs 32 bytes, 31 are there"),
    ],
)
def test_npy_headers_that_promise_too_much_are_refused(tmp_path, content, message) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=message):
        _ = contents_of(tmp_path / "a.npy")["array"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x93NUMPY\x03\x00" + bytes(64), "cannot be read as NPY, it is damaged"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535, "cannot be read as NPY"),
        (npy("(2, 4)").replace(b"'<f4'", b"__import__('os')"), "cannot be read as NPY"),
        (b"PK\x03\x04" + bytes(100), "cannot be read as NPZ"),
        (b"CDF\x01" + b"\xff" * 100, "cannot be read as NetCDF"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "cannot be read as HDF5"),
        (b"hello, world", "is not an HDF5, NetCDF, NPY, NPZ, MATLAB, CSV or PyTorch file"),
        (b"", "is empty"),
    ],
)
def test_broken_containers_are_named(tmp_path, content, message) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match=message):
        contents_of(tmp_path / "a")


def test_zip_bombs_are_refused_before_memory_is_taken(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", npy("(3, 4)", bytes(48)))
    data = (tmp_path / "a.npz").read_bytes()
    central = data.rfind(b"PK\x01\x02")
    claimed = data[: central + 24] + struct.pack("<I", 0xFFFFFFF0) + data[central + 28 :]
    (tmp_path / "b.npz").write_bytes(claimed)
    assert "more than ZIP can compress" in contents_of(tmp_path / "b.npz").refused["u"]
    with zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", npy("(1024, 1024, 1024, 64)", bytes(2**20)))
    why = contents_of(tmp_path / "c.npz").refused["u"]
    assert "is incomplete" in why
    assert "needs 274877906944 bytes" in why


def test_a_compressed_member_larger_than_the_limit_is_refused_unread(tmp_path, monkeypatch) -> None:
    np.savez_compressed(tmp_path / "a.npz", u=np.zeros((64, 64)))
    array = contents_of(tmp_path / "a.npz")["u"].array
    monkeypatch.setattr(whole_arrays, "whole_limit", lambda stored: 100 * stored)
    with pytest.raises(DataError, match=r"a compressed NPZ file can only be read whole \(limit .* for a file of"):
        array.read((slice(None), slice(None)))


def test_what_may_be_read_whole_grows_with_the_file() -> None:
    assert [whole_limit(2**power) // 2**20 for power in (10, 20, 26, 40)] == [512, 512, 1024, 4096]


@pytest.mark.parametrize(("dims", "claimed"), [((2**15, 2**14), 2**32 - 1), ((4, 4), 2**32 - 8)])
def test_compressed_matlab_variables_that_claim_too_much_are_refused(tmp_path, dims, claimed) -> None:
    def element(kind: int, content: bytes) -> bytes:
        return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)

    parts = (
        element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<2i", *dims)) + struct.pack("<HH4s", 1, 1, b"u")
    )
    outer = 1024 if claimed % 8 == 0 else claimed  # either number may lie
    body = zlib.compress(struct.pack("<II", 14, outer) + parts + struct.pack("<II", 9, claimed) + bytes(512))
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 15, len(body)) + body)
    with pytest.raises(DataError, match=f"a variable claims {claimed} bytes, too many for a file of"):
        contents_of(tmp_path / "a.mat")


def test_shapes_that_would_fill_the_memory_by_themselves_are_refused(tmp_path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", (0, 2**26 + 1), "u1", maxshape=(None, 2**26 + 1), chunks=(1, 2**20))
    assert "axes of more than 67108864 numbers are not read" in contents_of(tmp_path / "a.h5").refused["u"]
    savemat(tmp_path / "a.mat", {"u": np.zeros((3, 4))})
    data = (tmp_path / "a.mat").read_bytes()
    for count in (10**6, -3):
        (tmp_path / "a.mat").write_bytes(data.replace(struct.pack("<2i", 3, 4), struct.pack("<2i", count, 4)))
        why = contents_of(tmp_path / "a.mat").refused["u"]
        assert why == f"has shape ({count}, 4), more numbers than a file of this size can hold"


def test_two_arrays_of_one_name_are_both_refused(tmp_path) -> None:
    def matlab(**variables: object) -> bytes:
        savemat(tmp_path / "part.mat", variables)
        return (tmp_path / "part.mat").read_bytes()

    dense, sparse = matlab(u=np.eye(4), v=np.ones(3)), matlab(u=csc_array(np.eye(4)))
    for first, second in ((dense, sparse), (sparse, dense), (dense, dense)):
        (tmp_path / "a.mat").write_bytes(first + second[128:])
        assert contents_of(tmp_path / "a.mat").refused["u"] == "occurs more than once in the file"
        with pytest.raises(DataError, match="'u' in .* occurs more than once in the file"):
            _ = contents_of(tmp_path / "a.mat")["u"]
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("u", "u.npy", "v.npy"):
            archive.writestr(name, npy("(3, 4)", bytes(48)))
    assert list(contents_of(tmp_path / "a.npz").arrays) == ["v"]


def test_chunks_stored_in_more_bytes_than_they_have_are_refused(tmp_path) -> None:
    def build(file: h5py.File) -> None:
        odd = file.create_dataset("odd", (4, 8), "f4", chunks=(1, 8), compression="gzip")
        for row in range(4):
            odd.id.write_direct_chunk((row, 0), zlib.compress(np.random.default_rng(0).bytes(2**17)))

    assert refused(tmp_path, build)["odd"].startswith("has a chunk of 32 bytes stored in 131")


def test_chunks_that_inflate_beyond_their_size_are_never_inflated(tmp_path) -> None:
    def build(file: h5py.File) -> None:
        odd = file.create_dataset("odd", (2, 2**19), "f4", chunks=(1, 2**19), compression="gzip")
        odd[0] = np.random.default_rng(0).normal(size=2**19)
        odd.id.write_direct_chunk((1, 0), zlib.compress(np.random.default_rng(0).bytes(2**20) + bytes(2**23)))

    why = "the chunk at (1, 0) becomes more than the 2097152 bytes that it should have"
    assert refused(tmp_path, build)["odd"] == f"cannot be read: {why}"
    array = contents_of(tmp_path / "a.h5", budget=0)["odd"].array
    assert array.read((slice(0, 1), slice(0, 4))).shape == (1, 4)
    with pytest.raises(DataError, match="becomes more than the 2097152 bytes"):
        array.read((slice(None), slice(0, 4)))


def test_members_that_are_not_as_described_are_refused(tmp_path) -> None:
    np.savez_compressed(tmp_path / "a.npz", u=np.zeros((4, 4)))
    array = contents_of(tmp_path / "a.npz")["u"].array
    everything = (slice(None), slice(None))
    with pytest.raises(DataError, match=r"is float64 \(4, 4\), expected <f8 \(4, 5\)"):
        type(array)(array.stamp, "u", (4, 5), "<f8", "u.npy").read(everything)
    with pytest.raises(DataError, match="Cannot read 'u'"):
        type(array)(array.stamp, "u", (4, 4), "<f8", "v.npy").read(everything)


@pytest.mark.parametrize("flag", [0x1, 0x20])
def test_encrypted_or_patched_members_are_refused(tmp_path, flag) -> None:
    np.savez(tmp_path / "a.npz", u=np.zeros((4, 4)))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + offset] |= flag
    (tmp_path / "a.npz").write_bytes(data)
    assert contents_of(tmp_path / "a.npz").refused["u"].startswith("cannot be read:")


def test_text_variables_of_netcdf_are_not_read(tmp_path, public_files) -> None:
    from scipy.io import netcdf_file

    with netcdf_file(tmp_path / "a.nc", "w") as file:
        file.createDimension("n", 4)
        file.createVariable("name", "c", ("n",))[:] = b"abcd"
        file.createVariable("u", "d", ("n",))[:] = 1.0
    contents = contents_of(tmp_path / "a.nc")
    assert list(contents.arrays) == ["u"]
    assert contents.refused["name"] == "holds |S1, not real numbers"


def test_paths_that_are_no_files_are_refused(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no file"):
        contents_of(tmp_path / "none.h5")
    with pytest.raises(DataError, match="is not a file"):
        contents_of(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(DataError, match="is not a file"):
        contents_of(tmp_path / "pipe")


def test_a_file_that_goes_away_between_two_looks_is_an_error(tmp_path) -> None:
    answer = Child()
    try:
        reply = answer.ask(
            {"path": str(tmp_path / "gone.h5"), "budget": 1, "seconds": 2, "memory": 2**30}, time_limit=30.0
        )
    finally:
        answer.stop()
    assert reply[0] == {"error": "cannot be opened: No such file or directory"}


def test_coordinates_that_are_too_large_are_not_loaded(tmp_path, monkeypatch) -> None:
    np.save(tmp_path / "a.npy", np.zeros(1000))
    monkeypatch.setattr(probe, "SMALL", 1000)
    with pytest.raises(DataError, match="has 8000 bytes, too many for coordinates or parameters"):
        contents_of(tmp_path / "a.npy").values("array")


CRASH = "import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 11)"
SILENCE = "import sys, time; sys.stdin.readline(); time.sleep(60)"
LEAVE = "import sys; sys.exit(3)"
BUSY = sandbox.BOOT.replace("import main\nmain()", "import limit_seconds") + (
    "sys.stdin.readline(); limit_seconds(0)\nwhile True: pass\n"
)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (CRASH, r"x.h5 crashed the library that reads it \(exit code -11\): it is damaged or hostile"),
        (SILENCE, "x.h5 could not be examined within 0.5 s"),
        (LEAVE, "x.h5 (crashed|could not be examined)"),
    ],
)
def test_a_crash_or_a_silence_of_the_child_is_an_error_of_ours(monkeypatch, behaviour, message) -> None:
    monkeypatch.setattr(sandbox, "BOOT", behaviour)
    child = Child()
    start = time.monotonic()
    with pytest.raises(DataError, match=message):
        child.ask({"path": "x.h5", "budget": 1, "seconds": 2}, time_limit=0.5 if behaviour == SILENCE else 30.0)
    assert time.monotonic() - start < 20
    assert child.process is None


def test_a_file_that_keeps_the_library_busy_without_end_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(sandbox, "BOOT", BUSY)
    child = Child()
    with pytest.raises(DataError, match="x.h5 kept the library that reads it busy for more than 0 s"):
        child.ask({"path": "x.h5", "budget": 1, "seconds": 0}, time_limit=60.0)


def test_the_child_is_replaced_after_a_crash(tmp_path, monkeypatch) -> None:
    child = Child()
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    request = {"path": str(tmp_path / "a.npy"), "budget": 1, "seconds": 2, "memory": 2**30}
    with monkeypatch.context() as patch:
        patch.setattr(sandbox, "BOOT", CRASH)
        with pytest.raises(DataError, match="crashed"):
            child.ask(request, time_limit=30.0)
    assert child.ask(request, time_limit=30.0)[0]["kind"] == "npy"
    first = child.process
    assert child.ask(request, time_limit=30.0)[0]["kind"] == "npy"
    assert child.process is first
    child.stop()


def test_the_child_has_no_torch_and_limited_memory(tmp_path, monkeypatch) -> None:
    question = sandbox.BOOT.replace(
        "main()",
        "import json, resource, ssno.data.sandbox.child as c\nsys.stdin.readline(); c.limit_memory(2**30)\n"
        "limit = resource.getrlimit(resource.RLIMIT_DATA)[0]\n"
        "print(json.dumps({'torch': 'torch' in sys.modules, 'limit': limit}), flush=True)",
    )
    monkeypatch.setattr(sandbox, "BOOT", question)
    child = Child()
    answer, _ = child.ask({"path": "", "budget": 1, "seconds": 2}, time_limit=60.0)
    assert answer == {"torch": False, "limit": 2**30}
    child.stop()


def test_examining_in_this_process_gives_the_same_answer(tmp_path, public_files) -> None:
    public_files.the_well(tmp_path / "wake.hdf5")
    answer = examine(str(tmp_path / "wake.hdf5"), 2**20)
    contents = contents_of(tmp_path / "wake.hdf5")
    assert {record["name"] for record in answer["arrays"]} == set(contents.arrays)
    assert answer["groups"] == contents.groups
