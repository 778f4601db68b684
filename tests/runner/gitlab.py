"""A project on GitLab as far as its jobs can tell, and a runner that executes them here.

Each job gets a fresh clone of a real bare repository, a fresh HOME, the variables that GitLab would
give it and nothing else. Merge request comments go to a server on loopback, which also knows merge
requests, pipelines, their artifacts and the configuration of CI; artifacts and dotenv reports go
from job to job as ``needs`` and ``stage`` say. Of ``rules`` it knows ``==`` and ``&&``,
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from tests.runner.actions import QUICK
from tests.warm_client import warm_program

PROJECT, FORK, MERGE_REQUEST = "1", "2", "7"
COMMENT_TOKEN = f"glpat-{MERGE_REQUEST}"
STAGES = ("build", "test", "deploy")  # those of a pipeline that names none
REVIEW_TOKEN = f"glpat-review-{MERGE_REQUEST}"
HEAD = f"refs/merge-requests/{MERGE_REQUEST}/head"
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
    """A variable of the project, as its settings have it.

    Several of one name, for several environments, are told apart by what stands behind ``@``.
    """

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
    """A project with its bare repository, its variables and the comments of its merge request.

    Attributes:
        scoped: Values of variables for one environment alone, by its name.
        id_token: Signs the token of a job, of its claims with their audience.
    """

    folder: Path
    api: str = ""
    notes: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": 1, "author": {"id": 5}, "body": "Looks good."}]
    )
    variables: dict[str, Variable] = field(default_factory=dict)
    scoped: dict[str, dict[str, str]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(100))
    merge_requests: list[dict[str, Any]] = field(default_factory=list)
    pipelines: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[int, Mapping[str, bytes]] = field(default_factory=dict)
    id_token: Callable[[Mapping[str, str]], str] | None = None

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

    def merge_request(self, *, fork: bool = False, target: str = "main") -> Pipeline:
        """Run the pipeline of a merge request from the branch at the desk into main."""
        sha = self.git("rev-parse", "HEAD")
        base = self.git("merge-base", "origin/main", "HEAD")
        source = int(FORK if fork else PROJECT)
        self.merge_requests[:] = [
            {"iid": int(MERGE_REQUEST), "state": "opened", "target_branch": target, "sha": sha,
             "source_project_id": source, "target_project_id": int(PROJECT),
             "merge_commit_sha": None, "squash_commit_sha": None}
        ]  # fmt: skip
        given = {
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_PROJECT_ID": FORK if fork else PROJECT,
            "CI_MERGE_REQUEST_IID": MERGE_REQUEST,
            "CI_MERGE_REQUEST_PROJECT_ID": PROJECT,
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": FORK if fork else PROJECT,
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": target,
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
            "CI_MERGE_REQUEST_PROJECT_URL": f"file://{self.folder / 'project'}",
        }
        variables = {} if fork else self.variables
        return Pipeline(self, sha, base, given, variables, is_protected=False).run()

    def merged(self, head: str, commit: str) -> None:
        """Keep that the merge request was merged as a commit, if it has this head."""
        for one in self.merge_requests:
            if one["sha"] == head:
                one |= {"state": "merged", "squash_commit_sha": commit}

    def push(self) -> Pipeline:
        """Run the pipeline of a push to main, where the desk is."""
        sha, before = self.git("rev-parse", "HEAD"), self.git("rev-parse", "HEAD^")
        return self._on_main("push", sha, before)

    def night(self) -> Pipeline:
        """Run the pipeline of a schedule on main."""
        return self._on_main("schedule", self.git("rev-parse", "origin/main"), "")

    def _on_main(self, source: str, sha: str, before: str) -> Pipeline:
        given = {"CI_PIPELINE_SOURCE": source, "CI_PROJECT_ID": PROJECT, "CI_COMMIT_BRANCH": "main",
                 "CI_COMMIT_BEFORE_SHA": before or "0" * 40}  # fmt: skip
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
        """Read the pipeline as the commit has it, with each file that it includes."""
        top = self._read(".gitlab-ci.yml")
        included = top.pop("include")
        self.written: dict[str, Any] = {}
        for each in included if isinstance(included, list) else [included]:
            part = self._read(each["local"])
            assert not part.keys() & self.written.keys(), "jobs of one name"
            self.written |= part
        self.written |= top
        self.number = next(self.project.numbers)
        source = self.given["CI_PIPELINE_SOURCE"]
        self.project.pipelines.append(
            {"id": self.number, "sha": self.sha, "source": source, "jobs": {},
             "ref": HEAD if source == "merge_request_event" else "main",
             "project_id": int(self.given["CI_PROJECT_ID"])}
        )  # fmt: skip

    def _read(self, path: str) -> dict[str, Any]:
        text = self.project.git("show", f"{self.sha}:{path}")
        read: dict[str, Any] = yaml.safe_load(text)
        return read

    def run(self) -> Pipeline:
        """Run each job of this pipeline in the order of stages and needs, but for manual ones."""
        stages = self.written.get("stages", STAGES)
        jobs = {name: self._job(name) for name in self.written if name.startswith("reconciler ")}
        left = sorted(jobs, key=lambda name: stages.index(jobs[name]["stage"]))
        left = [name for name in left if self._rule(jobs[name]) is not None]
        while left:
            # One that needs a job further down waits for it.
            name = next(one for one in left if not set(_needs(jobs[one])) & set(left))
            left.remove(name)
            self._begin(jobs, name)
        return self

    def _begin(self, jobs: Mapping[str, Any], name: str) -> None:
        when = (self._rule(jobs[name]) or {}).get("when", "on_success")
        behind = {self.ran[one].status for one in self._behind(jobs, name)}
        if when != "always" and behind & {"manual", "waiting"}:
            self.ran[name] = Ran("waiting")
        elif when != "always" and behind - {"success"}:
            self.ran[name] = Ran("skipped")
        elif when == "manual":
            self.ran[name] = Ran("manual")
        else:
            self.ran[name] = self._execute(name)

    def play(self, name: str, *, is_lost: bool = False, **more: str) -> Ran:
        """Run a manual job, or a job again; a lost runner uploads nothing.

        What waited for it, or was skipped because of it, is looked at again.
        """
        assert self.ran[name].status in {"manual", "failed", "success"}, self.ran[name].status
        ran = self._execute(name, **more)
        self.ran[name] = Ran("failed", ran.log) if is_lost else ran
        jobs = {one: self._job(one) for one in self.ran}
        again = {name}
        for one in self.ran:  # in the order of needs
            waited = self.ran[one].status in {"waiting", "skipped"}
            if waited and again & {*self._behind(jobs, one)}:
                again.add(one)
                self._begin(jobs, one)
        return self.ran[name]

    def _job(self, name: str) -> dict[str, Any]:
        job = self.written[name]
        extended = self._job(job["extends"]) if "extends" in job else {}
        return {**extended, **job}

    def _behind(self, jobs: Mapping[str, Any], name: str) -> list[str]:
        """Return the jobs of this pipeline that a job waits for."""
        if "needs" in jobs[name]:
            return [one for one in _needs(jobs[name]) if one in self.ran]
        stages = self.written.get("stages", STAGES)
        place = stages.index(jobs[name]["stage"])
        return [one for one in self.ran if stages.index(jobs[one]["stage"]) < place]

    def _rule(self, job: Mapping[str, Any]) -> Mapping[str, Any] | None:
        for rule in job["rules"]:
            assert set(rule) <= {"if", "changes", "when", "allow_failure"}
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

    def _id_tokens(self, job: Mapping[str, Any]) -> dict[str, str]:
        """Return the signed tokens that a job asks for."""
        if self.project.id_token is None:
            return {}
        claims = {
            "project_id": self.given["CI_PROJECT_ID"],
            "project_path": "acme/identity",
            "ref": self.given.get("CI_COMMIT_BRANCH", "idea"),
            "ref_protected": "true" if self.is_protected else "false",
            "pipeline_source": self.given["CI_PIPELINE_SOURCE"],
            "pipeline_id": str(self.number),
            "user_login": "ada",
            "environment": job.get("environment", {}).get("name", ""),
            "sub": "project_path:acme/identity:ref_type:branch",
        }
        tokens = {}
        for name, one in job.get("id_tokens", {}).items():
            origin = self.variables[one["aud"].removeprefix("$")].value
            tokens[name] = self.project.id_token({**claims, "aud": origin})
        return tokens

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
            if _needs(job).get(behind, {}).get("artifacts") is False:
                continue
            dotenv |= self.ran[behind].dotenv
            for file, content in self.ran[behind].artifacts.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
        environment = {
            **self.written.get("variables", {}), **job.get("variables", {}), **self.given,
            **dotenv, **self._visible(job),
            "CI": "true", "GITLAB_CI": "true", "CI_DEFAULT_BRANCH": "main",
            "CI_COMMIT_SHA": self.sha, "CI_PROJECT_DIR": str(folder),
            "CI_API_V4_URL": self.project.api, "CI_PIPELINE_ID": str(self.number),
            "CI_JOB_ID": str(number), "HOME": str(home), "TMPDIR": str(top / "tmp"),
            **self._id_tokens(job),
            **more,
            "PATH": f"{self.project.folder / 'image'}:/usr/bin:/bin",
        }  # fmt: skip
        lines = "\n".join(self._lines([*job.get("before_script", []), *job["script"]]))
        done = subprocess.run(
            ["bash", "-c", f"set -eo pipefail\n{lines}"], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stdout, done.stdout
        (top / "log").write_text(done.stdout, encoding="utf-8")
        ran = self._ended(job, environment, folder, done)
        self.project.artifacts[number] = ran.artifacts
        (kept,) = [one for one in self.project.pipelines if one["id"] == self.number]
        kept["jobs"][name] = number
        return ran

    def _visible(self, job: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of the project that GitLab gives to a job."""
        environment = job.get("environment", {}).get("name", "")
        known = {
            name.partition("@")[0]: one.value
            for name, one in self.variables.items()
            if one.environment in {"*", environment} and (self.is_protected or not one.protected)
        }
        return known | (self.project.scoped.get(environment, {}) if self.variables else {})

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


def _needs(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the jobs that a job needs, with how it needs each."""
    needs = [{"job": one} if isinstance(one, str) else one for one in job.get("needs", [])]
    assert all(set(one) <= {"job", "optional", "artifacts"} for one in needs)
    return {one["job"]: one for one in needs}


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
    project = Project(folder)
    with _api(project) as project.api:
        _git(folder, "init", "--quiet", "--bare", "--initial-branch", "main", str(project.bare))
        project.desk.mkdir()
        project.git("init", "--quiet", "--initial-branch", "main")
        for repository in (project.bare, project.desk):
            _git(repository, "config", "core.compression", "0")
        _git(project.bare, "config", "uploadpack.allowAnySHA1InWant", "true")
        project.git("remote", "add", "origin", f"file://{project.bare}")
        (project.desk / "README").write_text("A team.\n")
        project.commit("Begin")
        yield project


class _Server(ThreadingHTTPServer):
    """GitLab's API, for one project."""

    daemon_threads = False  # its end waits for answers under way, and closes their sockets
    project: Project


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a job."""

    server: _Server

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
        path, _, query = self.path.partition("?")
        asked = dict(parse_qsl(query))
        if self.headers["PRIVATE-TOKEN"] == REVIEW_TOKEN:
            found = _known(self.server.project, path.removeprefix(f"{_API}/"), asked)
            self._answer(found, 404 if found is None else 200)
            return
        assert self.headers["PRIVATE-TOKEN"] == COMMENT_TOKEN
        if path == "/api/v4/user":
            self._answer({"id": 4})
            return
        assert path == NOTES
        self._answer(_page(self.server.project.notes, asked))

    def do_POST(self) -> None:
        assert self.path == NOTES
        notes = self.server.project.notes
        notes.append({"id": len(notes) + 1, "author": {"id": 4}, "body": self._body()})
        self._answer(notes[-1], 201)

    def do_PUT(self) -> None:
        number = int(self.path.removeprefix(f"{NOTES}/"))
        note = self.server.project.notes[number - 1]
        note["body"] = self._body()
        self._answer(note)

    def log_message(self, *_: Any) -> None:
        pass


def _page(items: Sequence[Any], query: Mapping[str, str]) -> Sequence[Any]:
    page, size = int(query["page"]), int(query["per_page"])
    return items[(page - 1) * size : page * size]


def _known(project: Project, path: str, query: Mapping[str, str]) -> Any:
    """Return what the API tells of a project, or None where there is no such thing."""
    match path.split("/"):
        case ["repository", "commits", sha, "merge_requests"]:
            names = ("merge_commit_sha", "squash_commit_sha", "sha")
            requests = [
                one for one in project.merge_requests if sha in {one[name] for name in names}
            ]
            return _page(requests, query)
        case ["merge_requests", number, "pipelines"]:
            assert number == MERGE_REQUEST
            return _page([one for one in project.pipelines if one["ref"] == HEAD], query)
        case ["pipelines", number, "jobs"]:
            (pipeline,) = [one for one in project.pipelines if str(one["id"]) == number]
            jobs = [{"name": name, "id": job} for name, job in pipeline["jobs"].items()]
            return _page(jobs, query)
        case ["jobs", number, "artifacts", *file]:
            content = project.artifacts[int(number)].get("/".join(file))
            return None if content is None else json.loads(content)
        case ["ci", "lint"]:
            commit = query["content_ref"]
            included = project.git("show", f"{commit}:.gitlab-ci.yml")
            files = re.findall(r"[\w./-]+\.yml", included)
            texts = [project.git("show", f"{commit}:{file}") for file in files]
            return {"merged_yaml": "\n".join(texts)}
        case _:
            raise AssertionError(path)


@contextmanager
def _api(project: Project) -> Iterator[str]:
    """Serve what GitLab tells of a project; yield the address."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.project = project
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api/v4"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_API = f"/api/v4/projects/{PROJECT}"
NOTES = f"{_API}/merge_requests/{MERGE_REQUEST}/notes"


def _git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{part}_{kind}": value for part in ("AUTHOR", "COMMITTER")
           for kind, value in (("NAME", "A Person"), ("EMAIL", "person@example.com"))}  # fmt: skip
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **who},
    )  # fmt: skip
    return done.stdout.strip()
