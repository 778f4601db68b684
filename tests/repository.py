"""Repositories of manifests for tests, made with the real ``git``; and one served over https."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.certificates import a_certificate

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "HOME": os.devnull,
}


@dataclass(frozen=True)
class Repository:
    """A repository with a work tree, whose branch is ``main``."""

    folder: Path

    @classmethod
    def new(cls, folder: Path, *options: str) -> Repository:
        folder.mkdir(parents=True)
        made = cls(folder)
        made.git("init", "--quiet", "--initial-branch=main", *options)
        return made

    def git(self, *words: str, **more: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **_IDENTITY, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | None]) -> None:
        """Write files by their paths; None removes one."""
        for name, content in files.items():
            path = self.folder / name
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")

    def commit(self, files: Mapping[str, str | None], key: Path | None = None) -> str:
        """Commit files, signed with an SSH key if one is given; return the commit."""
        self.write(files)
        self.git("add", "--all", "--force")
        sign = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}") if key else ()
        signed = "--gpg-sign" if key else "--no-gpg-sign"
        self.git(*sign, "commit", "--quiet", "--allow-empty", signed, "--message", "a change")
        return self.head

    def plant(self, entries: Mapping[str, tuple[str, str]]) -> str:
        """Commit a tree of these entries alone, by path: mode and content; no check is made."""
        lines = []
        for path, (mode, content) in entries.items():
            kind, found = "blob", content
            if mode == "160000":
                kind = "commit"
            elif mode != "040000":
                found = self._object("hash-object", "-w", "--stdin", given=content)
            else:
                kind = "tree"
            lines.append(f"{mode} {kind} {found}\t{path}\0")
        tree = self._object("mktree", "-z", "--missing", given="".join(lines))
        commit = self.git("commit-tree", tree, "-m", "planted")
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def _object(self, *words: str, given: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **_IDENTITY},
            input=given.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


def a_signing_key(folder: Path, name: str = "signer") -> tuple[Path, str]:
    """Make an SSH key; return its private file, and the line that allows it as a signer."""
    path = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    public = path.with_suffix(".pub").read_text(encoding="ascii").split()
    return path, f"{name}@example.com {public[0]} {public[1]}\n"


@dataclass
class Hosted:
    """A repository behind https: its address, its authority, and what its server was asked.

    Attributes:
        redirect: Where every request is sent on to; empty for none.
    """

    repository: Repository
    address: str
    authority: Path
    requests: list[str]
    redirect: str = ""


USER, PASSWORD = "robot", "hunter2"
_BASIC = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()
_CHALLENGE = ("WWW-Authenticate", 'Basic realm="git"')
Headers = list[tuple[str, str]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hosted: Hosted


class _Handler(BaseHTTPRequestHandler):
    """Answers the one user with what the program's own back end says."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("content-length", "0"))))

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, body: bytes) -> None:
        hosted = self.server.hosted
        hosted.requests.append(self.path)
        if hosted.redirect:
            self._send(302, [("Location", hosted.redirect + self.path)], b"")
        elif self.headers.get("authorization") != _BASIC:
            self._send(401, [_CHALLENGE], b"")
        else:
            self._send(200, *self._from_git(hosted.repository, body))

    def _from_git(self, repository: Repository, body: bytes) -> tuple[Headers, bytes]:
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            env={
                "PATH": os.environ["PATH"],
                **_IDENTITY,
                "GIT_PROJECT_ROOT": str(repository.folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
            },
            input=body,
            capture_output=True,
            check=True,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        named = [line.decode().partition(": ") for line in head.split(b"\r\n")]
        return [(name, value) for name, _, value in named], content

    def _send(self, status: int, headers: Headers, content: bytes) -> None:
        self.send_response(status)
        for name, value in (*headers, ("content-length", str(len(content)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def hosted(repository: Repository, folder: Path) -> Iterator[Hosted]:
    """Serve a repository over https with the program's own back end, to one user."""
    certificate, key = a_certificate(folder)
    server = _Server(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    address = f"https://127.0.0.1:{server.server_port}/.git"
    server.hosted = Hosted(repository, address, certificate, [])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.hosted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
