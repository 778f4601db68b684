"""A stand-in for GitHub: one repository with its pull requests, issues and artifacts, on loopback.

Git is real: a bare repository. What jobs ask over the network is answered by a local server, which
knows the token of each job and refuses what the job's permissions do not cover.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

REPOSITORY = "acme/identity"
BOT = {"login": "github-actions[bot]"}


class RefusedError(Exception):
    """What a job asked for and does not get; the argument is the status."""


@dataclass
class Site:
    """What the site holds.

    Attributes:
        bare: The repository.
        variables: Variables of each environment; under the empty name those of the repository.
        secrets: Secrets of each environment.
        comments: Comments of each pull request, by its number.
        artifacts: Files by path, of each artifact by run and name.
        tokens: The permissions of each job that runs, by its token.
        pulls: Pull requests, as the API shows them.
        events: Names of what happened to a pull request, by its number.
        runs: Runs of workflows, as the API shows them.
    """

    bare: Path
    address: str = ""
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    issues: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    tokens: dict[str, Mapping[str, str]] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    events: dict[int, list[str]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    _moment: datetime = datetime(2026, 11, 1, tzinfo=UTC)

    def now(self) -> str:
        """Return the time on the site: a second later each time somebody asks."""
        self._moment += timedelta(seconds=1)
        return f"{self._moment:%Y-%m-%dT%H:%M:%SZ}"

    def keep_pull(self, number: int, head: Mapping[str, Any], base: str = "main") -> None:
        """Keep a pull request that is opened, or has another head."""
        known = self.pulls.setdefault(
            number,
            {"number": number, "created_at": self.now(), "merged_at": None,
             "merge_commit_sha": None},
        )  # fmt: skip
        known |= {"head": dict(head), "base": {"ref": base}}

    def merged(self, branch: str, commit: str, base: str = "main") -> None:
        """Keep that the pull requests of a branch were merged as a commit."""
        for pull in self.pulls.values():
            if pull["head"]["ref"] == branch and pull["base"]["ref"] == base:
                pull |= {"merged_at": self.now(), "merge_commit_sha": commit}

    def token_for(self, permissions: Mapping[str, str]) -> str:
        """Return a new token with the permissions of a job."""
        token = f"ghs_{secrets.token_hex(16)}"
        self.tokens[token] = permissions
        return token

    def git(self, *arguments: str) -> str:
        """Run Git in the repository and return what it says."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.bare, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def answer(self, method: str, path: str, body: Any, may: Mapping[str, str]) -> Any:
        """Return the answer to a request.

        Raises:
            RefusedError: there is no such address, or the job may not.
        """
        for verb, pattern, right, act in _ROUTES:
            found = re.fullmatch(pattern, path)
            if verb == method and found:
                _require(may, *right.split(":"))
                return act(self, body, *found.groups())
        raise RefusedError(404)


def _require(may: Mapping[str, str], name: str, level: str) -> None:
    if may.get(name, "none") not in {level, "write"}:
        raise RefusedError(403)


def _comments(site: Site, _: Any, number: str) -> Any:
    return site.comments.get(int(number), [])


def _add_comment(site: Site, body: Any, number: str) -> Any:
    held = site.comments.setdefault(int(number), [])
    held.append({"id": 1000 + len(held), "user": BOT, "body": body["body"]})
    return held[-1]


def _change_comment(site: Site, body: Any, identifier: str) -> Any:
    (comment,) = [
        one for held in site.comments.values() for one in held if one["id"] == int(identifier)
    ]
    comment["body"] = body["body"]
    return comment


def _tree(site: Site, _: Any, branch: str) -> Any:
    return {"tree": [{"path": path, "sha": sha} for path, sha in _entries(site, unquote(branch))]}


def _entries(site: Site, tree: str) -> Iterator[tuple[str, str]]:
    for line in site.git("ls-tree", tree).splitlines():
        _, _, sha, path = re.split(r"[ \t]", line, maxsplit=3)
        yield path, sha


def _issues(site: Site, _: Any) -> Any:
    return site.issues


def _add_issue(site: Site, body: Any) -> Any:
    site.issues.append({"number": 1 + len(site.issues), "state": "open", "user": BOT, **body})
    return site.issues[-1]


def _change_issue(site: Site, body: Any, number: str) -> Any:
    site.issues[int(number) - 1].update(body)
    return site.issues[int(number) - 1]


def _pulls_of_commit(site: Site, _: Any, commit: str) -> Any:
    return [pull for pull in site.pulls.values() if pull["merge_commit_sha"] == commit]


def _pulls(site: Site, query: Any) -> Any:
    assert query["state"] == "all"
    owner, _, branch = query["head"].partition(":")
    return [
        pull
        for pull in site.pulls.values()
        if pull["head"]["ref"] == branch
        and str(pull["head"]["repo"]["full_name"]).startswith(f"{owner}/")
    ]


def _events(site: Site, _: Any, number: str) -> Any:
    return [{"event": event} for event in site.events.get(int(number), [])]


def _contents(site: Site, query: Any, path: str) -> Any:
    try:
        found = [*_entries(site, f"{query['ref']}:{path}")]
    except subprocess.CalledProcessError:
        raise RefusedError(404) from None
    return [{"name": name, "path": f"{path}/{name}", "sha": sha} for name, sha in found]


def _runs(site: Site, query: Any, file: str) -> Any:
    found = [
        run
        for run in site.runs
        if run["path"] == f".github/workflows/{file}"
        and all(run[name] == query[name] for name in ("event", "head_sha"))
    ]
    return {"workflow_runs": found}


def _take_artifact(site: Site, _: Any, run: str, name: str) -> Any:
    if (int(run), name) not in site.artifacts:
        raise RefusedError(404)
    return site.artifacts[int(run), name]


def _keep_artifact(site: Site, body: Any, run: str, name: str) -> Any:
    """Keep the files of an artifact; one that is there already is replaced only where asked for."""
    if (int(run), name) in site.artifacts and not body["overwrite"]:
        raise RefusedError(409)
    site.artifacts[int(run), name] = body["files"]
    return {}


_IN = f"/repos/{REPOSITORY}"
_ROUTES: list[tuple[str, str, str, Callable[..., Any]]] = [
    ("GET", rf"{_IN}/issues/(\d+)/comments", "pull-requests:read", _comments),
    ("POST", rf"{_IN}/issues/(\d+)/comments", "pull-requests:write", _add_comment),
    ("PATCH", rf"{_IN}/issues/comments/(\d+)", "pull-requests:write", _change_comment),
    ("GET", rf"{_IN}/git/trees/([\w.%-]+)", "contents:read", _tree),
    ("GET", rf"{_IN}/commits/(\w+)/pulls", "pull-requests:read", _pulls_of_commit),
    ("GET", rf"{_IN}/pulls", "pull-requests:read", _pulls),
    ("GET", rf"{_IN}/issues/(\d+)/events", "pull-requests:read", _events),
    ("GET", rf"{_IN}/contents/([\w./-]+)", "contents:read", _contents),
    ("GET", rf"{_IN}/actions/workflows/([\w.-]+)/runs", "actions:read", _runs),
    # What gh takes as an archive of a run.
    ("GET", rf"{_IN}/actions/runs/(\d+)/artifacts/([\w-]+)", "actions:read", _take_artifact),
    ("GET", rf"{_IN}/issues", "issues:read", _issues),
    ("POST", rf"{_IN}/issues", "issues:write", _add_issue),
    ("PATCH", rf"{_IN}/issues/(\d+)", "issues:write", _change_issue),
    # Artifacts are for every job of the run, whatever its permissions.
    ("GET", r"/artifacts/(\d+)/([\w-]+)", "run:read", _take_artifact),
    ("PUT", r"/artifacts/(\d+)/([\w-]+)", "run:read", _keep_artifact),
]


class _Server(ThreadingHTTPServer):
    """The local server of one site."""

    daemon_threads = False  # its end waits for answers under way, and closes their sockets
    site: Site


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a job."""

    server: _Server

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def do_PATCH(self) -> None:
        self._respond()

    def do_PUT(self) -> None:
        self._respond()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""

    def _respond(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length) or b"null")
        status, answer = self._answer(body)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, body: Any) -> tuple[int, Any]:
        site = self.server.site
        may = site.tokens.get(self.headers.get("authorization", "").removeprefix("Bearer "))
        if may is None:
            return 401, {}
        path, _, query = self.path.partition("?")
        asked = dict(parse_qsl(query)) if self.command == "GET" else body
        try:
            return 200, site.answer(self.command, path, asked, {"run": "read", **may})
        except RefusedError as refused:
            return int(refused.args[0]), {}


@contextmanager
def a_site(bare: Path) -> Iterator[Site]:
    """Serve a site for as long as the context lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = Site(bare, f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
