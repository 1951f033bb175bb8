"""A server on this machine that speaks as much of the Hugging Face Hub's protocol as huggingface_hub needs here."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """Repositories by name: their files. What is asked for is written down in `asked`."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.sent: dict[str, bytes] = {}
        self.address = ""
        self.damage: dict[str, bytes] = {}
        """Content that is sent instead of a file's."""
        self.sizes: dict[str, int] = {}
        """Sizes that are listed instead of a file's."""
        self.refusing = False
        """Whether uploads are refused."""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let huggingface_hub talk to this server, and to no other."""
        there = partial(huggingface_hub.HfApi, endpoint=self.address, token=False)
        monkeypatch.setattr(huggingface_hub, "HfApi", there)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)

    def listed(self, name: str, content: bytes) -> dict[str, object]:
        size = self.sizes.get(name, len(content))
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        lfs = {"sha256": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 130}
        return {"rfilename": name, "size": size, "blobId": blob, **({"lfs": lfs} if is_large(name) else {})}


def is_large(name: str) -> bool:
    return name.endswith(".safetensors")


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A server that runs inside this context."""
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def answer(self, content: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def say(self, value: object) -> None:
            self.answer(json.dumps(value).encode(), Content_Type="application/json")

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                pieces = []
                while size := int(self.rfile.readline(), 16):
                    pieces.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(pieces)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def do_GET(self) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            hub.asked.append("/".join(parts))
            if parts[:2] == ["api", "models"]:
                name, revision = "/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main"
                if name not in hub.repositories:
                    return self.answer(b"", 401, X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
                if revision not in ("main", COMMIT):
                    return self.answer(b"", 404, X_Error_Code="RevisionNotFound", X_Error_Message="Invalid rev id")
                files = [hub.listed(*item) for item in hub.repositories[name].items()]
                return self.say({"id": name, "sha": COMMIT, "siblings": files})
            name, file = "/".join(parts[:2]), "/".join(parts[4:])
            content = hub.repositories[name][file]
            tag = hashlib.sha256(content).hexdigest()
            return self.answer(hub.damage.get(file, content), ETag=f'"{tag}"', X_Repo_Commit=COMMIT)

        do_HEAD = do_GET

        def do_PUT(self) -> None:
            hub.sent[self.path.rsplit("/", 1)[-1]] = self.body()
            self.answer(b"")

        def do_POST(self) -> None:
            parts, body = urlsplit(self.path).path.strip("/").split("/"), self.body()
            hub.asked.append("/".join(parts))
            if hub.refusing:
                self.answer(b"", 403)
            elif parts[-1] == "create":
                asked = json.loads(body)
                hub.repositories.setdefault(f"{asked['organization']}/{asked['name']}", {})
                self.say({"url": f"{hub.address}/{asked['organization']}/{asked['name']}"})
            elif parts[-1] == "validate-yaml":
                self.say({"errors": [], "warnings": []})
            elif "preupload" in parts:
                modes = {True: "lfs", False: "regular"}
                named = [one["path"] for one in json.loads(body)["files"]]
                kept = [{"path": n, "uploadMode": modes[is_large(n)], "shouldIgnore": False} for n in named]
                self.say({"files": kept})
            elif parts[-1] == "batch":
                objects = json.loads(body)["objects"]
                places = [{"upload": {"href": f"{hub.address}/lfs/{one['oid']}"}} for one in objects]
                self.say({"objects": [{**one, "actions": at} for one, at in zip(objects, places, strict=True)]})
            else:
                files = hub.repositories["/".join(parts[2:4])]
                for line in map(json.loads, body.splitlines()):
                    value = line["value"]
                    if line["key"] == "file":
                        files[value["path"]] = base64.b64decode(value["content"])
                    elif line["key"] == "lfsFile":
                        files[value["path"]] = hub.sent[value["oid"]]
                address = f"{hub.address}/{'/'.join(parts[2:4])}/commit/{COMMIT}"
                self.say({"success": True, "commitOid": COMMIT, "commitUrl": address})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
