"""The command as a whole: verbs, help, mistakes, the doctor."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import ssno
from ssno.cli.doctor import diagnose, doctor, examine
from ssno.cli.main import STOPPED, TRAINING_INTERRUPTED, VERBS, find_verb, importing, main
from ssno.training.processes import EXIT_INTERRUPTED


def test_help_names_every_verb(capsys) -> None:
    main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"ssno {name}" in shown for name in VERBS)


def test_help_of_a_first_word_names_the_verbs_below_it(capsys) -> None:
    main(["data", "--help"])
    shown = capsys.readouterr().out
    assert all((f"ssno {name}" in shown) == name.startswith("data ") for name in VERBS)


@pytest.mark.parametrize("name", list(VERBS))
def test_every_verb_has_help_that_teaches(name, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*name.split(), "--help"])
    assert stopped.value.code == 0
    assert len(capsys.readouterr().out) > 200


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "Did you mean `train`"),
        (["data", "verfy"], "Did you mean `data verify`"),
        (["data"], "data generate"),
    ],
)
def test_unknown_verbs_are_refused_with_the_nearest(words, message, capsys) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_verbs_of_two_words_are_found() -> None:
    assert find_verb(["data", "verify", "x"])[0::2] == ("data verify", ["x"])


@pytest.mark.parametrize("module", ["ssno", "ssno.cli"])
def test_python_dash_m_is_the_same_command(module) -> None:
    shown = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
    assert "ssno train" in shown.stdout


def test_the_doctor_reports_versions_and_machine(capsys) -> None:
    doctor(json=True)
    facts = json.loads(capsys.readouterr().out)
    assert facts["packages"]["torch"].startswith("2.")
    assert facts["problems"] == []
    doctor()
    assert "No problems found" in capsys.readouterr().out


def test_the_doctor_finds_problems(tmp_path) -> None:
    facts = examine(tmp_path)
    facts |= {"threads": 64, "cores": 2, "writable": False, "disk_free_gib": 0.1}
    facts["packages"] = {**facts["packages"], "scipy": "missing"}
    problems = " ".join(diagnose(facts))
    for expected in ("pip install scipy", "64 threads on 2 cores", "is not writable", "Only 0.1 GiB"):
        assert expected in problems


def broken(**problem) -> types.ModuleType:
    """A verb's module whose function raises."""

    def models() -> None:
        """Fail."""
        raise next(iter(problem.values()))

    module = types.ModuleType("ssno.cli.models")
    module.models = models  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("error", [TypeError("len() of unsized"), IndexError(3), ValueError("made by a library")])
def test_bugs_show_a_traceback_and_ask_for_a_report(error, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ssno.cli.models", broken(error=error))
    with pytest.raises(SystemExit) as stopped:
        main(["models"])
    assert stopped.value.code == 70
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "This is a bug in ssno" in told


def test_with_debug_even_mistakes_show_where_they_come_from(monkeypatch) -> None:
    monkeypatch.setenv("SSNO_DEBUG", "1")
    with pytest.raises(ValueError, match="Did you mean `train`"):
        main(["trian"])


def test_running_out_of_memory_is_no_bug(monkeypatch, capsys) -> None:
    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes")
    monkeypatch.setitem(sys.modules, "ssno.cli.models", broken(error=error))
    with pytest.raises(SystemExit) as stopped:
        main(["models"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("ssno: DefaultCPUAllocator")


def test_a_reader_who_has_seen_enough_ends_the_command_silently() -> None:
    for words in ("--help", "--version"):  # printed by rich, and by us
        piped = f"{sys.executable} -m ssno {words} | true"
        done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def loaded_by(*words: str) -> tuple[set[str], str]:
    """The modules that a command has imported when it is done, and what it printed."""
    program = "import sys; from ssno.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    return {*done.stderr.split()}, done.stdout


def test_the_first_words_need_no_numerical_library() -> None:
    for words in ("--help", "--version"):
        modules, printed = loaded_by(words)
        assert not {"torch", "numpy"} & modules
    assert printed.startswith("ssno 0.")


def test_the_list_of_models_loads_what_it_needs() -> None:
    modules, _ = loaded_by("models")  # a second each, but for the last, which imports them all
    assert not {"torch._dynamo", "scipy", "matplotlib", "ssno.evaluation"} & modules


@pytest.mark.parametrize(
    ("words", "code"), [(["train", "ks"], 75), (["sweep", "rates.toml"], 75), (["data", "generate", "heat"], 130)]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_start_up_ends_with_the_code_and_one_line(tmp_path, words, code, number) -> None:
    """In a real process, while it imports a library that says so and takes its time."""
    for slow in ("torch", "scipy"):
        (tmp_path / slow).mkdir()
        (tmp_path / slow / "__init__.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(100)\n")
    path = os.pathsep.join([str(tmp_path), str(Path(ssno.__file__).parents[1])])
    command = [sys.executable, "-m", "ssno", *words]
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (code, f"{STOPPED}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_first_step_ends_a_training_with_75(number, monkeypatch, capsys) -> None:
    monkeypatch.setattr("ssno.cli.train.load", lambda *_, **__: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "ks"])
    assert stopped.value.code == EXIT_INTERRUPTED == TRAINING_INTERRUPTED
    assert capsys.readouterr().err.endswith(f"{STOPPED}\n")
    assert signal.getsignal(number) == before


def test_commands_in_another_thread_leave_signals_alone(capsys) -> None:
    thread = threading.Thread(target=main, args=(["models"],))
    thread.start()
    thread.join()
    assert "ssno" in capsys.readouterr().out


def test_garbage_is_collected_after_the_imports_and_not_in_what_they_left(monkeypatch) -> None:
    calls = []
    for name in ("disable", "freeze", "enable"):
        monkeypatch.setattr(gc, name, lambda name=name: calls.append(name))
    with importing():
        pass
    assert calls == [], "torch is here already"
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(ImportError), importing():
        raise ImportError
    assert calls == ["disable", "freeze", "enable"]
