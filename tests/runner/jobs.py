"""Runs the jobs of a GitHub workflow on this machine, step by step, as its runner would.

Each job gets an empty home folder, an empty workspace and an environment with nothing of ours in
it. Steps are run by the shell that the workflow names; actions are replaced by what they do
(``tests.runner.actions``). What the workflow asks for and is not known here is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.runner.actions import ACTIONS, Place, check_out
from tests.runner.expressions import filled_in, holds, names_a_status
from tests.runner.site import REPOSITORY, Site

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
WITHIN = 300.0  # seconds for one step


@dataclass
class Step:
    """What became of a step: ``success``, ``failure`` or ``skipped``, and all that it printed."""

    name: str
    outcome: str
    log: str = ""


@dataclass
class Job:
    """What became of a job."""

    result: str
    steps: list[Step] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    @property
    def log(self) -> str:
        """Return what all its steps printed."""
        return "".join(step.log for step in self.steps)

    def step(self, name: str) -> Step:
        """Return the one step whose name begins so."""
        (found,) = [step for step in self.steps if step.name.startswith(name)]
        return found


@dataclass(frozen=True)
class Event:
    """What starts a run.

    Attributes:
        name: Such as ``pull_request``.
        sha: The commit that is checked out unless a step says otherwise.
        payload: ``github.event``.
        is_from_fork: Whether the pull request comes from another repository: no secrets then.
        ref: What is checked out, by its name.
    """

    name: str
    sha: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    is_from_fork: bool = False
    ref: str = "refs/heads/main"

    @property
    def head(self) -> Mapping[str, Any]:
        """Return commit, branch and repository of the run, as the API shows them."""
        if "pull_request" in self.payload:
            head: Mapping[str, Any] = self.payload["pull_request"]["head"]
            return {"head_sha": head["sha"], "head_branch": head["ref"],
                    "head_repository": head["repo"]}  # fmt: skip
        branch = self.ref.removeprefix("refs/heads/")
        return {"head_sha": self.sha, "head_branch": branch,
                "head_repository": {"full_name": REPOSITORY}}  # fmt: skip


@dataclass
class Run:
    """One run of a workflow; ``attempt`` counts how often it was started."""

    workflow: Mapping[str, Any]
    event: Event
    number: int
    attempt: int = 1
    file: str = ""
    jobs: dict[str, Job] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, str]:
        return {name: job.result for name, job in self.jobs.items()}


@dataclass
class Runner:
    """Runs workflows for a site; ``folder`` is where jobs have their homes and workspaces.

    Attributes:
        installs: Where installations are kept, for the next job that asks for the same.
        injected: Environment of a step, by the start of its name: how a test kills what it runs.
        cancelled: Starts of the names of steps after which somebody cancels the job.
        before: What happens before a job starts, by its name: how a test lets time pass.
        id_tokens: Gives the variables by which a job asks for a signed token with these claims;
            None where there are no such tokens.
        program: A script that is run as the installed tool; without one the installed tool is,
            which loads all its modules each time.
    """

    site: Site
    folder: Path
    installs: Path
    injected: dict[str, dict[str, str]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    program: str = ""
    runs: int = 0
    id_tokens: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None

    def start(self, workflow: str, event: Event) -> Run:
        """Run a workflow as the commit of the event has it; a run has the next number."""
        self.runs += 1
        text = self.site.git("show", f"{event.sha}:.github/workflows/{workflow}.yml")
        run = Run(yaml.safe_load(text), event, self.runs, file=f"{workflow}.yml")
        self.site.runs.append(
            {"id": run.number, "run_number": run.number, "event": event.name,
             "path": f".github/workflows/{workflow}.yml", "created_at": self.site.now(),
             **event.head}
        )  # fmt: skip
        self._go(run, list(run.workflow["jobs"]))
        return run

    def run_failed_again(self, run: Run) -> None:
        """Run the jobs that failed once more, with all that need them; the others keep theirs."""
        run.attempt += 1
        again = [name for name, job in run.jobs.items() if job.result in {"failure", "cancelled"}]
        for name, job in run.workflow["jobs"].items():
            if name not in again and set(again) & set(_needs(job)):
                again.append(name)
        self._go(run, again)

    def run_all_again(self, run: Run) -> None:
        """Run every job once more."""
        run.attempt += 1
        self._go(run, list(run.workflow["jobs"]))

    def _go(self, run: Run, names: Sequence[str]) -> None:
        for name in names:  # written so that a job stands below those that it needs
            self.before.get(name, lambda: None)()
            run.jobs[name] = self._job(run, name)

    def _job(self, run: Run, name: str) -> Job:
        written = run.workflow["jobs"][name]
        contexts = self._contexts(run, written)
        needed = [run.jobs[other].result for other in _needs(written)]
        failed = "failure" if "failure" in needed else "skipped"
        contexts["status"] = _status("success" if set(needed) <= {"success"} else failed)
        if not _holds(written.get("if", "success()"), contexts):
            return Job("skipped")
        place = self._place(run, name)
        return _JobRun(self, written, contexts, place).run()

    def _contexts(self, run: Run, written: Mapping[str, Any]) -> dict[str, Any]:
        environment = written.get("environment", "")
        own = {} if run.event.is_from_fork else self.site.secrets.get(environment, {})
        token = self.site.token_for(written.get("permissions", run.workflow["permissions"]))
        return {
            "github": {
                "event": run.event.payload,
                "event_name": run.event.name,
                "ref": run.event.ref,
                "repository": REPOSITORY,
                "run_attempt": run.attempt,
                "run_id": run.number,
                "sha": run.event.sha,
                "token": token,
            },
            "needs": {
                other: {"outputs": run.jobs[other].outputs, "result": run.jobs[other].result}
                for other in _needs(written)
            },
            "inputs": run.event.payload.get("inputs", {}),
            "secrets": own,
            "vars": {
                **self.site.variables.get("", {}),
                **self.site.variables.get(environment, {}),
            },
            "env": {**run.workflow.get("env", {}), **self._id_tokens(run, written)},
            "shell": run.workflow["defaults"]["run"]["shell"],
        }

    def _id_tokens(self, run: Run, written: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the variables by which a job asks for a signed token, if it has the permission."""
        asked = written.get("permissions", {}).get("id-token") == "write"
        if self.id_tokens is None or run.event.is_from_fork or not asked:
            return {}
        return self.id_tokens(
            {
                "repository": REPOSITORY,
                "repository_id": "1001",
                "repository_owner_id": "77",
                "ref": run.event.ref,
                "event_name": run.event.name,
                "environment": written.get("environment", ""),
                "job_workflow_ref": f"{REPOSITORY}/.github/workflows/{run.file}@{run.event.ref}",
                "run_id": str(run.number),
                "run_attempt": str(run.attempt),
                "actor": "ada",
                "sub": f"repo:{REPOSITORY}:environment:{written.get('environment', '')}",
            }
        )

    def _place(self, run: Run, name: str) -> Place:
        """Return the folders of a job: new and empty, as on a machine of its own."""
        folder = self.folder / f"{run.number}-{run.attempt}-{name}"
        return Place(self.site, folder, self.installs, run.number, run.event.sha)


class _JobRun:
    """One job while it runs."""

    def __init__(
        self, runner: Runner, written: Mapping[str, Any], contexts: dict[str, Any], place: Place
    ) -> None:
        self._written = written
        self._injected = runner.injected
        self._cancelled = runner.cancelled
        self._place = place
        self._contexts = {
            **contexts,
            "runner": {"temp": str(place.temp)},
            "steps": {},
        }
        self._job = Job("success")
        place.token = contexts["github"]["token"]
        self._hidden = [*contexts["secrets"].values(), place.token]
        self._environment = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_RUN_ID": str(contexts["github"]["run_id"]),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_SHA": contexts["github"]["sha"],
            "GITHUB_WORKSPACE": str(place.workspace),
            "GH_STAND_IN": place.site.address,
            "HOME": str(place.home),
            "LANG": "C.UTF-8",
            "RUNNER_INSTALLS": str(place.installs),
            "RUNNER_PROGRAM": runner.program,
            "RUNNER_PYTHON": sys.executable,
            "RUNNER_TEMP": str(place.temp),
            "RUNNER_WHEELS": str(Path(sys.prefix) / "wheels-of-jobs"),
            # Where packages come from, and not what they are: a mirror, a cache, a certificate.
            **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
            **contexts["env"],
        }

    def run(self) -> Job:
        """Run the steps, then fill in what the job hands to those that need it."""
        for number, step in enumerate(self._written["steps"]):
            self._step(number, step)
        outputs = self._written.get("outputs", {})
        self._job.outputs = {
            name: filled_in(text, self._contexts) for name, text in outputs.items()
        }
        for secret in self._hidden:
            assert secret not in self._job.log, "a secret is in the log of a job"
        return self._job

    def _step(self, number: int, step: Mapping[str, Any]) -> None:
        self._contexts["status"] = _status(self._job.result)
        if not _holds(step.get("if", "success()"), self._contexts):
            self._job.steps.append(Step(step["name"], "skipped"))
            return
        outputs: dict[str, str] = {}
        if step.get("uses", "").startswith("$/"):
            done, outputs = self._own_action(number, step)
        elif "uses" in step:
            name = step["uses"].partition("@")[0]
            problem = ACTIONS[name](self._place, self._given(step))
            done = Step(step["name"], "failure" if problem else "success", problem)
        else:
            done, outputs = self._command(str(number), step, self._contexts)
        self._job.steps.append(done)
        if "id" in step:
            self._contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": done.outcome}
        if any(done.name.startswith(start) for start in self._cancelled):
            self._job.result = "cancelled"
        elif done.outcome == "failure":
            self._job.result = "failure"

    def _given(self, step: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: filled_in(value, self._contexts) if isinstance(value, str) else value
            for key, value in step.get("with", {}).items()
        }

    def _own_action(self, number: int, step: Mapping[str, Any]) -> tuple[Step, dict[str, str]]:
        """Run a composite action of the repository, from a checkout of its own at the commit."""
        top = self._place.folder / "actions"
        if not top.exists():
            check_out(self._place.site, top, self._place.sha)
        folder = top / step["uses"].removeprefix("$/")
        action = yaml.safe_load((folder / "action.yml").read_text(encoding="utf-8"))
        inputs = {name: one["default"] for name, one in action["inputs"].items()}
        contexts = {
            **self._contexts,
            "inputs": inputs | self._given(step),
            "shell": "bash --noprofile --norc -eo pipefail {0}",
            "steps": {},
        }
        log = ""
        for place, inner in enumerate(action["runs"]["steps"]):
            env = {"GITHUB_ACTION_PATH": str(folder), **inner.get("env", {})}
            named = {**inner, "name": step["name"], "env": env}
            done, outputs = self._command(f"{number}-{place}", named, contexts)
            contexts["steps"][inner["id"]] = {"outputs": outputs}
            log += done.log
            if done.outcome == "failure":
                return Step(step["name"], "failure", log), {}
        told = {name: filled_in(one["value"], contexts) for name, one in action["outputs"].items()}
        return Step(step["name"], "success", log), told

    def _command(
        self, number: str, step: Mapping[str, Any], contexts: Mapping[str, Any]
    ) -> tuple[Step, dict[str, str]]:
        script = self._place.temp / f"step-{number}.sh"
        script.write_text(step["run"], encoding="utf-8")  # no expression stands in a script
        assert "${{" not in step["run"]
        folder = filled_in(step.get("working-directory", "."), contexts)
        files = {
            name: self._place.folder / f"{name.lower()}-{number}"
            for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        for file in files.values():
            file.touch()
        told = {
            name: filled_in(str(value), contexts) for name, value in step.get("env", {}).items()
        }
        for start, more in self._injected.items():
            told |= more if step["name"].startswith(start) else {}
        done = subprocess.run(
            contexts["shell"].replace("{0}", str(script)).split(),
            cwd=self._place.workspace / folder,
            env={
                **self._environment,
                "PATH": f"{self._place.programs}:{SYSTEM_PATH}",
                **{name: str(file) for name, file in files.items()},
                **told,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        self._job.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
        outcome = "failure" if done.returncode else "success"
        return Step(step["name"], outcome, done.stdout), dict(line.split("=", 1) for line in lines)


def is_started_by(workflow: Mapping[Any, Any], event: str, changed: Sequence[str]) -> bool:
    """Return whether an event that changes these files starts a workflow."""
    triggers = workflow[True]  # YAML 1.1 reads the key "on" as a boolean
    if event not in triggers:
        return False
    if not isinstance(triggers[event], Mapping):  # by the clock, whatever was changed
        return True
    patterns = triggers[event].get("paths", ["*"])
    return any(fnmatchcase(file, pattern) for file in changed for pattern in patterns)


def _needs(written: Mapping[str, Any]) -> list[str]:
    needs = written.get("needs", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _status(result: str) -> dict[str, bool]:
    """Return the values of the status functions after a result."""
    return {name: result == name for name in ("success", "failure", "cancelled")} | {"always": True}


def _holds(condition: str, contexts: Mapping[str, Any]) -> bool:
    """Return whether a condition holds; one without a status function also needs success."""
    if not names_a_status(condition) and not contexts["status"]["success"]:
        return False
    return holds(condition, contexts)
