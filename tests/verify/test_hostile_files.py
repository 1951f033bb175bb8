"""The hostile files of `make verify`: a few of them here, and what must be noticed."""

import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest
from verify.mutations import mutate, splice
from verify.system_calls import offence

from verify import crafted, hostile


def in_a_fork(function) -> int:
    """The exit code of a function in a process that nobody else needs: it may limit itself."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            function()
            code = 0
        except AssertionError:
            code = 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    "read",
    [
        lambda place: subprocess.run(["true"], check=True),
        lambda place: (place / "new").write_text("x"),
        lambda place: open(place.parent / "elsewhere").close(),
        lambda place: pickle.loads(pickle.dumps(crafted.Runs())),
        lambda place: (place / hostile.CANARY).touch(),
    ],
    ids=["a program", "a new file", "a file elsewhere", "a pickle", "a trace"],
)
def test_what_no_file_may_do_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read) -> None:
    monkeypatch.chdir(tmp_path)  # where a pickle leaves its trace
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "elsewhere").touch()
    assert in_a_fork(lambda: hostile.outcome(lambda: read(inside), inside)) == 1


def test_system_calls_that_no_file_may_cause_are_offences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "originals", lambda: tmp_path / "originals")
    inside = f'7 openat(AT_FDCWD, "{tmp_path}/a.h5", O_RDONLY|O_CLOEXEC) = 3'
    fine = [inside, '7 openat(AT_FDCWD, "/home/x", O_RDONLY) = -1 ENOENT (No such file)', "7 +++ exited with 0 +++"]
    assert not [line for line in fine if offence(line, tmp_path)]
    bad = ['7 openat(AT_FDCWD, "/home/x", O_RDONLY) = 3', '7 openat(AT_FDCWD, "/etc/x", O_WRONLY|O_CREAT, 0666) = 3']
    bad += ['7 execve("/bin/sh", ["sh"], 0x7) = 0', "7 connect(3, {sa_family=AF_INET, sin_port=htons(80)}, 16) = 0"]
    bad += ['7 unlink("/home/x") = 0', '7 rename("/home/x", "/home/y") = 0']
    assert [line for line in bad if offence(line, tmp_path)] == bad


def test_reading_data_is_no_offence(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 8)))

    def read() -> None:
        assert hostile.outcome(lambda: hostile.read_named(tmp_path / "a.npy"), tmp_path) == "data"
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY")
        assert hostile.outcome(lambda: hostile.read_named(tmp_path / "a.npy"), tmp_path) == "refused"

    assert in_a_fork(read) == 0


def test_damage_is_drawn_from_a_number(tmp_path: Path) -> None:
    original = bytes(range(256)) * 8
    first, again, other = (mutate(original, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert splice(original, b"tail", np.random.default_rng(0)) != original


def test_arrays_made_to_do_harm_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 8)))
    attacks = dict(crafted.npy((tmp_path / "a.npy").read_bytes()))
    assert len(attacks) > 25

    def read() -> None:
        os.chdir(tmp_path)
        for name in ("objects", "code in the header", "shape (2**60,)", "a pipe", "a link to /dev/zero"):
            attacks[name](tmp_path / "a.npy")
            assert hostile.outcome(lambda: hostile.read_named(tmp_path / "a.npy"), tmp_path) == "refused"

    assert in_a_fork(read) == 0
