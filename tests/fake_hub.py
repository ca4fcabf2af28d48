"""A hub on this machine: what huggingface_hub asks of the real one, and a count of what it was given."""

import hashlib
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = 1000  # bytes from which a file is kept in Git LFS and known by its sha256


@dataclass
class FakeHub:
    """One repository, ``someone/model``, which is a data set too; its newest commit is the last."""

    commits: dict[str, dict[str, bytes]]
    gated: bool = False
    served: Counter = field(default_factory=Counter)  # bytes of each file
    cut: dict[str, int] = field(default_factory=dict)  # a file's connection breaks after so many bytes
    spoilt: set[str] = field(default_factory=set)  # files that arrive with another content
    url: str = ""

    def listing(self, commit: str) -> dict:
        return {
            "id": "someone/model",
            "sha": commit,
            "gated": "manual" if self.gated else False,
            "cardData": {"license": "mit"},
            "siblings": [_sibling(name, content) for name, content in self.commits[commit].items()],
        }


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder as those of a commit; huggingface_hub's own notes are left out."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def etag(content: bytes) -> str:
    if len(content) >= LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _sibling(name: str, content: bytes) -> dict:
    sibling = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
    if len(content) < LARGE:
        return sibling | {"blobId": etag(content)}
    return sibling | {"lfs": {"sha256": etag(content), "oid": etag(content), "size": len(content), "pointerSize": 130}}


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: object) -> None: ...

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.headers.get("Authorization") == "Bearer hf_expired":
            self._send(401, b"", {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif match := re.fullmatch(r"/api/(?:models|datasets)/someone/model(?:/revision/(.+))?", path):
            commit = match[1] if match[1] in self.hub.commits else list(self.hub.commits)[-1]
            self._send(200, json.dumps(self.hub.listing(commit)).encode(), {})
        elif match := re.fullmatch(r"(?:/datasets)?/someone/model/resolve/(\w+)/(.+)", path):
            self._file(match[1], match[2], with_body)
        elif path == "/api/models/someone/private":
            self._send(401, b"", {})
        else:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _file(self, commit: str, name: str, with_body: bool) -> None:
        if self.hub.gated:
            self._send(403, b"", {"X-Error-Code": "GatedRepo"})
            return
        content = self.hub.commits[commit][name]
        headers = {"ETag": f'"{etag(content)}"', "X-Repo-Commit": commit}
        # As the real hub says of large files: Xet has them too. There is none here, so nobody may ask it.
        headers |= {"X-Xet-Hash": etag(content), "Link": f'<{self.hub.url}/xet>; rel="xet-auth"'}
        if not with_body:
            self._send(200, b"", headers, length=len(content))
            return
        if name in self.hub.spoilt:
            content = bytes(len(content))
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-")).groups()
        begin, end = int(first), min(int(last or len(content)) + 1, len(content))
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
        sent = content[begin : min(end, self.hub.cut.get(name, end))]
        self.hub.served[name] += len(sent)
        self._send(206 if begin else 200, sent, headers, length=end - begin)

    def _send(self, status: int, body: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body) if length is None else length)}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve(commits: dict[str, dict[str, bytes]], **options):
    """A :class:`FakeHub` that answers on this machine while the block runs."""
    hub = FakeHub(commits, **options)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
