"""A project on GitLab as far as its jobs can tell, and a runner that executes them here.

Each job gets a fresh clone of a real bare repository, a fresh HOME, the variables that GitLab would
give it and nothing else. Merge request comments go to a server on loopback; artifacts and dotenv
reports go from job to job as ``needs`` and ``stage`` say. Of ``rules`` it knows ``==`` and ``&&``,
``changes`` and ``when``: what else a pipeline uses is an error here.

``python -m venv`` and ``pip install`` are stand-ins: they check the options, compare the tool's
wheel with its hash, and note which folder it came from. The program is that of this checkout.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from tests.runner.actions import QUICK
from tests.warm_client import warm_program

PROJECT, FORK, MERGE_REQUEST = "1", "2", "7"
COMMENT_TOKEN = f"glpat-{MERGE_REQUEST}"
_CONDITION = re.compile(r'\$(\w+)\s*==\s*(?:\$(\w+)|"([^"]*)")')

_PYTHON = """\
#!/bin/sh
case "$1 $2" in
    '-m venv') mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    '-m pip') shift 2 && exec {python} -I {pip} "$(dirname "$(dirname "$0")")" "$@" ;;
    *) exec {python} "$@" ;;
esac
"""
_PIP = """\
import hashlib, os, pathlib, re, sys

tool, *arguments = sys.argv[1:]
assert arguments == [
    "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
    "--requirement", "requirements.txt",
], arguments
text = pathlib.Path("requirements.txt").read_text()
line = re.compile(r"^(\\./\\S+\\.whl) .*?sha256:([0-9a-f]{64})$", re.M | re.S)
wheel, hashed = line.search(text).groups()
assert hashlib.sha256(pathlib.Path(wheel).read_bytes()).hexdigest() == hashed
pathlib.Path(os.environ["HOME"], "installed-from").write_text(os.getcwd())
program = pathlib.Path(tool, "bin", "reconciler")
program.write_text("PROGRAM")
program.chmod(0o755)
"""


class _Reference(yaml.YAMLObject):
    yaml_loader = yaml.SafeLoader
    yaml_tag = "!reference"

    def __init__(self, path: Sequence[str]) -> None:
        self.path = path

    @classmethod
    def from_yaml(cls, loader: Any, node: Any) -> _Reference:
        return cls(loader.construct_sequence(node))


@dataclass(frozen=True)
class Variable:
    """A variable of the project, as its settings have it."""

    value: str
    protected: bool = False
    environment: str = "*"


@dataclass(frozen=True)
class Ran:
    """What became of a job: ``success``, ``failed``, ``skipped`` or ``manual``."""

    status: str
    log: str = ""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    artifacts_name: str = ""
    dotenv: Mapping[str, str] = field(default_factory=dict)
    installed_from: str = ""


@dataclass
class Project:
    """A project with its bare repository, its variables and the comments of its merge request."""

    folder: Path
    api: str
    notes: list[dict[str, Any]]
    variables: dict[str, Variable] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(100))

    @property
    def desk(self) -> Path:
        return self.folder / "desk"

    @property
    def bare(self) -> Path:
        return self.folder / "project.git"

    def git(self, *arguments: str) -> str:
        """Run Git at the desk."""
        return _git(self.desk, *arguments)

    def commit(self, message: str = "Change") -> str:
        """Commit all there is at the desk, push the branch, and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD")
        return self.git("rev-parse", "HEAD")

    def merge_request(self, *, fork: bool = False) -> Pipeline:
        """Run the pipeline of a merge request from the branch at the desk into main."""
        sha = self.git("rev-parse", "HEAD")
        given = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_PROJECT_ID": FORK if fork else PROJECT,
            "CI_MERGE_REQUEST_IID": MERGE_REQUEST,
            "CI_MERGE_REQUEST_PROJECT_ID": PROJECT,
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": FORK if fork else PROJECT,
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_MERGE_REQUEST_PROJECT_URL": f"file://{self.folder / 'project'}",
        }
        base = self.git("merge-base", "origin/main", "HEAD")
        variables = {} if fork else self.variables
        return Pipeline(self, sha, base, given, variables, is_protected=False).run()

    def push(self) -> Pipeline:
        """Run the pipeline of a push to main, where the desk is."""
        sha, before = self.git("rev-parse", "HEAD"), self.git("rev-parse", "HEAD^")
        return self._on_main("push", sha, before)

    def night(self) -> Pipeline:
        """Run the pipeline of a schedule on main."""
        return self._on_main("schedule", self.git("rev-parse", "origin/main"), "")

    def _on_main(self, source: str, sha: str, before: str) -> Pipeline:
        given = {"CI_PIPELINE_SOURCE": source, "CI_PROJECT_ID": PROJECT, "CI_COMMIT_BRANCH": "main"}
        return Pipeline(self, sha, before, given, self.variables, is_protected=True).run()


@dataclass
class Pipeline:
    """The jobs of one pipeline."""

    project: Project
    sha: str
    before: str
    given: Mapping[str, str]
    variables: Mapping[str, Variable]
    is_protected: bool
    ran: dict[str, Ran] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the pipeline as the commit has it."""
        text = self.project.git("show", f"{self.sha}:.gitlab/reconciler.gitlab-ci.yml")
        self.written: dict[str, Any] = yaml.safe_load(text)
        self.number = next(self.project.numbers)

    def run(self) -> Pipeline:
        """Run each job of this pipeline in the order of stages, but for manual ones."""
        stages = self.written["stages"]
        jobs = {name: self._job(name) for name in self.written if name.startswith("reconciler ")}
        for name in sorted(jobs, key=lambda name: stages.index(jobs[name]["stage"])):
            rule = self._rule(jobs[name])
            if rule is None:
                continue
            when = rule.get("when", "on_success")
            behind = self._behind(jobs, name)
            if when != "always" and any(self.ran[one].status != "success" for one in behind):
                self.ran[name] = Ran("skipped")
            elif when == "manual":
                self.ran[name] = Ran("manual")
            else:
                self.ran[name] = self._execute(name)
        return self

    def play(self, name: str, *, is_lost: bool = False, **more: str) -> Ran:
        """Run a manual job, or a job again; a lost runner uploads nothing."""
        assert self.ran[name].status in {"manual", "failed", "success"}, self.ran[name].status
        ran = self._execute(name, **more)
        self.ran[name] = Ran("failed", ran.log) if is_lost else ran
        return self.ran[name]

    def _job(self, name: str) -> dict[str, Any]:
        job = self.written[name]
        return {**self.written.get(job.get("extends", ""), {}), **job}

    def _behind(self, jobs: Mapping[str, Any], name: str) -> list[str]:
        """Return the jobs of this pipeline that a job waits for."""
        if "needs" in jobs[name]:
            return [one for one in jobs[name]["needs"] if one in self.ran]
        stages = self.written["stages"]
        place = stages.index(jobs[name]["stage"])
        return [one for one in self.ran if stages.index(jobs[one]["stage"]) < place]

    def _rule(self, job: Mapping[str, Any]) -> Mapping[str, Any] | None:
        for rule in job["rules"]:
            assert set(rule) <= {"if", "changes", "when"}
            if self._holds(rule["if"]) and self._changed(rule.get("changes")):
                found: Mapping[str, Any] = rule
                return found
        return None

    def _holds(self, condition: str) -> bool:
        known = {**self.given, "CI_DEFAULT_BRANCH": "main"}
        for part in condition.split("&&"):
            found = _CONDITION.fullmatch(part.strip())
            assert found is not None, condition
            left, variable, text = found.groups()
            right = known.get(variable) if variable else text
            if known.get(left) != right:
                return False
        return True

    def _changed(self, patterns: Sequence[str] | None) -> bool:
        if patterns is None:
            return True
        names = self.project.git("diff", "--name-only", self.before, self.sha).splitlines()
        globs = [pattern.replace("**/*", "*") for pattern in patterns]
        return any(fnmatch.fnmatch(name, glob) for name in names for glob in globs)

    def _execute(self, name: str, **more: str) -> Ran:
        job, number = self._job(name), next(self.project.numbers)
        top = self.project.folder / f"job-{number}"
        folder, home = top / "builds" / "project", top / "home"
        home.mkdir(parents=True)
        (top / "tmp").mkdir()
        _git(top, "clone", "--quiet", *QUICK, f"file://{self.project.bare}", str(folder))
        _git(folder, "checkout", "--quiet", "--detach", self.sha)
        dotenv: dict[str, str] = {}
        for behind in self._behind({one: self._job(one) for one in self.ran} | {name: job}, name):
            dotenv |= self.ran[behind].dotenv
            for file, content in self.ran[behind].artifacts.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
        environment = {
            **self.written.get("variables", {}), **self.given, **dotenv, **self._visible(job),
            "CI": "true", "GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main",
            "CI_COMMIT_SHA": self.sha, "CI_PROJECT_DIR": str(folder),
            "CI_API_V4_URL": self.project.api, "CI_PIPELINE_ID": str(self.number),
            "CI_JOB_ID": str(number), "HOME": str(home), "TMPDIR": str(top / "tmp"),
            **more,
            "PATH": f"{self.project.folder / 'image'}:/usr/bin:/bin",
        }  # fmt: skip
        lines = "\n".join(self._lines(job["script"]))
        done = subprocess.run(
            ["bash", "-c", f"set -eo pipefail\n{lines}"], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stdout, done.stdout
        (top / "log").write_text(done.stdout, encoding="utf-8")
        return self._ended(job, environment, folder, done)

    def _visible(self, job: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of the project that GitLab gives to a job."""
        environment = job.get("environment", {}).get("name", "")
        return {
            name: one.value
            for name, one in self.variables.items()
            if one.environment in {"*", environment} and (self.is_protected or not one.protected)
        }

    def _lines(self, script: Sequence[Any]) -> Iterator[str]:
        for line in script:
            if isinstance(line, _Reference):
                job, key = line.path
                yield from self._lines(self.written[job][key])
            else:
                yield line

    def _ended(
        self, job: Mapping[str, Any], environment: Mapping[str, str], folder: Path,
        done: subprocess.CompletedProcess[str],
    ) -> Ran:  # fmt: skip
        status = "failed" if done.returncode else "success"
        artifacts = job.get("artifacts", {})
        kept: dict[str, bytes] = {}
        dotenv: dict[str, str] = {}
        if status == "success" or artifacts.get("when") == "always":
            for path in artifacts.get("paths", []):
                top = folder / path
                files = [top] if top.is_file() else [one for one in top.rglob("*") if one.is_file()]
                kept |= {str(one.relative_to(folder)): one.read_bytes() for one in files}
            report = folder / artifacts.get("reports", {}).get("dotenv", "no such file")
            if report.exists():
                dotenv = dict(line.split("=", 1) for line in report.read_text().splitlines())
        name = re.sub(r"\$(\w+)", lambda one: environment[one[1]], artifacts.get("name", ""))
        installed = Path(environment["HOME"], "installed-from")
        came = installed.read_text() if installed.exists() else ""
        shutil.rmtree(folder)
        return Ran(status, done.stdout, kept, name, dotenv, came)


@contextmanager
def gitlab_project(folder: Path) -> Iterator[Project]:
    """Make a project with an empty main branch, and serve the comments of its merge request."""
    image = folder / "image"
    image.mkdir()
    pip = folder / "pip.py"
    pip.write_text(_PIP.replace('"PROGRAM"', repr(warm_program())))
    python = image / "python"
    python.write_text(_PYTHON.format(python=sys.executable, pip=pip))
    python.chmod(0o755)
    with _comments() as (api, notes):
        project = Project(folder, api, notes)
        _git(folder, "init", "--quiet", "--bare", "--initial-branch", "main", str(project.bare))
        project.desk.mkdir()
        project.git("init", "--quiet", "--initial-branch", "main")
        for repository in (project.bare, project.desk):
            _git(repository, "config", "core.compression", "0")
        project.git("remote", "add", "origin", f"file://{project.bare}")
        (project.desk / "README").write_text("A team.\n")
        project.commit("Begin")
        yield project


@contextmanager
def _comments() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve the notes of a merge request, as GitLab does; yield the address and the notes."""
    notes: list[dict[str, Any]] = [{"id": 1, "author": {"id": 5}, "body": "Looks good."}]

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, content: Any, code: int = 200) -> None:
            data = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _body(self) -> str:
            assert self.headers["PRIVATE-TOKEN"] == COMMENT_TOKEN
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return str(content["body"])

        def do_GET(self) -> None:
            assert self.headers["PRIVATE-TOKEN"] == COMMENT_TOKEN
            path, _, query = self.path.partition("?")
            if path == "/api/v4/user":
                self._answer({"id": 4})
                return
            assert path == NOTES
            page = int(query.partition("page=")[2].partition("&page=")[2] or 1)
            self._answer(notes[(page - 1) * 100 : page * 100])

        def do_POST(self) -> None:
            assert self.path == NOTES
            notes.append({"id": len(notes) + 1, "author": {"id": 4}, "body": self._body()})
            self._answer(notes[-1], 201)

        def do_PUT(self) -> None:
            number = int(self.path.removeprefix(f"{NOTES}/"))
            notes[number - 1]["body"] = self._body()
            self._answer(notes[number - 1])

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api/v4", notes
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


NOTES = f"/api/v4/projects/{PROJECT}/merge_requests/{MERGE_REQUEST}/notes"


def _git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{part}_{kind}": value for part in ("AUTHOR", "COMMITTER")
           for kind, value in (("NAME", "A Person"), ("EMAIL", "person@example.com"))}  # fmt: skip
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **who},
    )  # fmt: skip
    return done.stdout.strip()
