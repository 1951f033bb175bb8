"""Model folders on the Hugging Face Hub, through the optional package huggingface_hub (`pip install 'ssno[hub]'`).

    SSNO.from_pretrained("org/name", revision="3f1c...")      load_forecaster("hf://org/name@3f1c...")

Of a repository only the two files of a model folder are fetched, by their exact names and if they are not larger than
our readers allow; the list of files that the server sends decides nothing else. Their checksums are compared with those
of the commit, and the folder $XDG_CACHE_HOME/ssno/hub/ORG--NAME/COMMIT/NAME appears with both files or not at all.
Nothing in it is executed. A revision that is a whole commit and was fetched before needs no network.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ssno.base.atomic_write import cache_folder

REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
REVISION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|[./](?=[A-Za-z0-9_-])){0,127}")
COMMIT = re.compile(r"[0-9a-f]{40}")
ADDRESS = re.compile(r"hf:/{0,2}([^@]*)(?:@(.*))?", flags=re.S)
"""hf://org/name@revision; paths write two slashes as one."""
SECONDS = 20.0
"""How long to wait for a first answer."""


def hub_folder() -> Path:
    """Where fetched model folders are."""
    return cache_folder() / "hub"


def download(repository: str, revision: str | None = None, *, limits: Mapping[str, int]) -> Path:
    """The model folder of a repository at a revision (a branch, a tag or a commit), fetched unless it is here.

    `limits` names the files to fetch, with the most bytes each may have.
    """
    check_repository(repository)
    if revision is not None and not REVISION.fullmatch(revision):
        raise ValueError(f"`revision` must be a branch, a tag or a commit, such as main, got {revision!r}.")
    home, name = hub_folder() / repository.replace("/", "--"), repository.partition("/")[2]
    if COMMIT.fullmatch(revision or "") and (home / str(revision) / name).is_dir():
        return home / str(revision) / name
    library = require_library(repository)
    with _translated(library, repository, revision):
        api = library.HfApi(library_name="ssno")
        info = api.model_info(repository, revision=revision, files_metadata=True, timeout=SECONDS)
        commit, files = str(info.sha), {one.rfilename: one for one in info.siblings or ()}
    if not COMMIT.fullmatch(commit):
        raise ValueError(f"The server names no commit for {repository} (it says {commit[:80]!r}). Nothing was fetched.")
    folder = home / commit / name
    if folder.is_dir():
        return folder
    for file, limit in limits.items():
        if file not in files:
            raise FileNotFoundError(f"The repository {repository} has no {file}, so it is not a model of ssno.")
        if not 0 <= (files[file].size or 0) <= limit:
            raise ValueError(f"{file} of {repository} has {files[file].size} bytes; at most {limit} are read.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as staging:
        (made := Path(staging) / "made").mkdir()
        for file in limits:
            with _translated(library, repository, commit):
                here = api.hf_hub_download(repository, file, revision=commit, local_dir=Path(staging) / "fetched")
            if not _is_whole(Path(here), files[file]):
                raise ValueError(f"{file} of {repository} differs from the checksum of its commit. Try again.")
            Path(here).replace(made / file)
        with suppress(OSError):  # another process was faster; its folder has the same files
            made.rename(folder)
    return folder


def upload(folder: Path, repository: str, *, files: Sequence[str]) -> str:
    """Add files of a folder to a repository, made if there is none, in one commit; returns the commit."""
    check_repository(repository)
    library = require_library(repository)
    with _translated(library, repository, None):
        api = library.HfApi(library_name="ssno")
        api.create_repo(repository, exist_ok=True)
        added = [library.CommitOperationAdd(path_in_repo=file, path_or_fileobj=folder / file) for file in files]
        return str(api.create_commit(repository, added, commit_message="Publish a model of ssno").oid)


def check_repository(name: str) -> None:
    """Refuse what is no name of a repository."""
    if not REPOSITORY.fullmatch(name) or ".." in name or "--" in name:
        raise ValueError(
            f"{name!r} is not the name of a repository on the Hugging Face Hub: ORGANISATION/NAME, in letters, digits, "
            "dots, dashes and underscores."
        )


def require_library(repository: str) -> Any:
    """huggingface_hub, or what to install."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"Reaching {repository} on the Hugging Face Hub needs {error.name}: pip install 'ssno[hub]'. There is no "
            "folder of that name here."
        ) from error
    return huggingface_hub


def _is_whole(path: Path, listed: Any) -> bool:
    """Whether a file has the checksum of its commit: SHA-256 if it is stored by LFS, else that of git."""
    with path.open("rb") as file:
        if listed.lfs is not None:
            return hashlib.file_digest(file, "sha256").hexdigest() == listed.lfs.sha256
        content = file.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == listed.blob_id


@contextmanager
def _translated(library: Any, repository: str, revision: str | None) -> Iterator[None]:
    """Errors of huggingface_hub, and of whichever HTTP library its version uses, in our words."""
    kinds = library.errors
    try:
        yield
    except kinds.RevisionNotFoundError as error:
        raise FileNotFoundError(f"The repository {repository} has no revision {revision!r}.") from error
    except kinds.RepositoryNotFoundError as error:
        raise FileNotFoundError(
            f"There is no folder {repository} here, and no repository of that name on the Hugging Face Hub that you "
            "may read. Check the name; private and gated ones need `hf auth login`."
        ) from error
    except Exception as error:
        seen = sorted(path.parent.name for path in (hub_folder() / repository.replace("/", "--")).glob("*/*/"))
        known = f" Without network, load a commit that was fetched before: {', '.join(seen)}." if seen else ""
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConnectionError(f"The Hugging Face Hub did not answer for {repository}: {reason}{known}") from error
