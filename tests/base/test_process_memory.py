"""Memory as the operating system counts it."""

from pathlib import Path

from ssno.base.memory import free_memory, held, most_held, physical_memory


def test_memory_of_the_process_is_known_on_every_system(monkeypatch) -> None:
    assert 10**7 < held() <= most_held() * 1.05
    assert 10**7 < free_memory() < physical_memory()

    def missing(self, **_):
        raise OSError

    monkeypatch.setattr(Path, "read_text", missing)
    assert held() == most_held()
    assert free_memory() == physical_memory()
