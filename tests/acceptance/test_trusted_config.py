"""Hostile pull requests: what one writes into ``reconciler.yaml`` is refused without a request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    ORGANIZATION,
    Ran,
    Run,
    an_action,
    write,
)


class Counting(ThreadingHTTPServer):
    """A service that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Counting)
        self.server.asked.append(str(self.headers.get("authorization")))
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def counting() -> Iterator[Counting]:
    with Counting() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def service() -> Iterator[Counting]:
    with counting() as server:
        yield server


@pytest.fixture(scope="module")
def other() -> Iterator[Counting]:
    with counting() as server:
        yield server


def a_configuration(path: Path, service: str, **fields: Any) -> Path:
    live = {"service": service, "protected": True, "variables": {"host": "shop.example.com"}}
    known = {
        "apiVersion": "reconciler/v1",
        "kind": "Configuration",
        "variables": {"host": {"type": "string"}},
        "environments": {"live": {**live, **fields.pop("live", {})}, **fields.pop("more", {})},
    }
    return write(path, json.dumps({**known, **fields}))


@dataclass(frozen=True)
class Job:
    """A job with the token of its service, and a service that it was not given."""

    run: Run
    folder: Path
    service: Counting
    other: Counting

    @property
    def asked(self) -> list[str]:
        return self.service.asked + self.other.asked

    @property
    def environment(self) -> dict[str, str]:
        return {
            "RECONCILER_ENV": "live",
            "RECONCILER_TRUSTED_CONFIG": "trusted/reconciler.yaml",
            "RECONCILER_SERVICE": self.service.address,
            "RECONCILER_TOKEN": "rct_geheim",
        }

    def propose(self, **fields: Any) -> None:
        a_configuration(self.folder / "reconciler.yaml", self.service.address, **fields)

    def __call__(self, *arguments: str) -> Ran:
        return self.run(*arguments, **self.environment)


@pytest.fixture
def job(run: Run, small: Path, service: Counting, other: Counting) -> Job:
    service.asked.clear()
    other.asked.clear()
    a_configuration(small.parent / "trusted" / "reconciler.yaml", service.address)
    return Job(run, small.parent, service, other)


@pytest.mark.parametrize(
    ("proposed", "what"),
    [
        ({"live": {"service": "OTHER"}}, "service of environment live"),
        ({"live": {"tree": "theirs"}}, "tree of environment live"),
        ({"tree": "theirs"}, "tree of environment live"),
        ({"live": {"protected": False}}, "protected of environment live"),
        ({"more": {"twin": {"tree": "theirs"}}}, "environment twin"),
    ],
    ids=["service", "tree", "tree of all", "protected", "another environment"],
)
def test_a_change_of_what_judges_it_blocks_before_anything_is_asked(
    job: Job, proposed: dict[str, Any], what: str
) -> None:
    """The plan holds the difference and nothing else; neither service hears of it."""
    job.propose(**json.loads(json.dumps(proposed).replace("OTHER", job.other.address)))

    planned = job("plan", "--detailed-exitcode")
    applied = job("apply", "--digest", "sha256:" + "0" * 64, "--secrets-to", "file:kept")

    assert (planned.code, applied.code) == (3, 3), planned.all + applied.all
    for ran in (planned, applied):
        head, rest = ran.out.split("\n\n")[:2]
        address = job.service.address
        assert head.startswith(f"Environment live: service {address} (not asked), tree ")
        assert rest.startswith("Blocked: merge these changes of the configuration on their own.")
        assert "\n  reconciler.yaml:1:" in rest
        assert f"{what} is not as in the trusted configuration" in rest
    assert planned.out.splitlines()[-2] == "Nothing was planned: the service was not asked."
    assert planned.out.splitlines()[-1].startswith("Blocked by ")
    assert job.asked == []


def test_without_environments_another_tree_blocks_as_well(job: Job) -> None:
    """As the tree of another team, a change could delete what that team owns."""
    for path, tree in (("trusted/reconciler.yaml", "shop"), ("reconciler.yaml", "theirs")):
        said = {"apiVersion": "reconciler/v1", "kind": "Configuration", "tree": tree}
        write(job.folder / path, json.dumps(said))

    given = {name: value for name, value in job.environment.items() if name != "RECONCILER_ENV"}

    planned = job.run("plan", "--detailed-exitcode", **given)

    assert planned.code == 3
    assert "the tree is not as in the trusted configuration" in planned.out
    assert job.asked == []


def test_the_difference_stands_at_the_top_of_every_form(job: Job) -> None:
    """Also of a plan that was saved."""
    job.propose(live={"tree": "theirs"})
    told = "tree of environment live is not as in the trusted configuration"
    title = "Nothing was planned: the service was not asked"

    plan = job("plan", "--out", "plan.json", "--format", "json").json
    markdown = job.run("show", "plan.json", "--format", "markdown").out
    page = job.run("show", "plan.json", "--format", "html").out

    assert (plan["instance"], plan["new_service"], plan["changes"]) == (None, False, [])
    assert (plan["environment"], plan["summary"]["blocked"]) == ("live", 1)
    (finding,) = [each for each in plan["diagnostics"] if each["code"] == "GUARD-CONFIG"]
    assert (finding["severity"], finding["summary"]) == ("error", told)
    above, below = markdown.split("### Blocked\n")
    assert f"\n## {title}\n" in above
    assert told in below[:300]
    assert title in page
    assert told in page
    assert "No changes" not in markdown + page
    assert job.asked == []


def test_values_and_overlays_are_no_such_difference(job: Job) -> None:
    """The plan shows what they do. The service is asked."""
    write(job.folder / "over" / "greet.yaml", an_action(timeout="5s"))
    job.propose(live={"overlay": "over", "variables": {"host": "new.example.com"}})

    job("plan")

    assert set(job.asked) == {"Bearer rct_geheim"}


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("trusted/reconciler.yaml", None, "does not exist"),
        ("reconciler.yaml", None, "there is no reconciler.yaml for --env"),
        ("trusted/reconciler.yaml", "kind: [", "trusted/reconciler.yaml:"),
    ],
    ids=["no trusted file", "file removed", "trusted file broken"],
)
def test_without_both_files_nothing_is_asked(
    job: Job, file: str, text: str | None, words: str
) -> None:
    job.propose()
    (job.folder / file).unlink()
    if text is not None:
        write(job.folder / file, text)

    told = job("plan")

    assert told.code == 1
    assert words in told.err
    assert job.asked == []


OUTSIDE = "../outside"
"""A folder beside the repository, with a manifest and a script that only this user may read."""

HOSTILE: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "manifests outside": ({"manifests": OUTSIDE}, {}, "CONFIG-OUTSIDE"),
    "an absolute folder": ({"manifests": "/etc"}, {}, "CONFIG-OUTSIDE"),
    "an overlay outside": ({"live": {"overlay": OUTSIDE}}, {}, "CONFIG-OUTSIDE"),
    "an overlay through a link": ({"live": {"overlay": "link"}}, {}, "CONFIG-OUTSIDE"),
    "a script outside": (
        {},
        {"manifests/a.yaml": an_action("a", script=None, scriptFile=f"../{OUTSIDE}/a.js")},
        "SCRIPT",
    ),
    "a script of an overlay outside": (
        {"live": {"overlay": "over"}},
        {"over/a.yaml": an_action("a", script=None, scriptFile=f"../{OUTSIDE}/a.js")},
        "SCRIPT",
    ),
    "variables that name each other": (
        {"live": {"variables": {"host": "${host}${host}"}}}, {}, "CONFIG-NESTED",
    ),
    "a text that grows": (
        {"live": {"variables": {"host": "x" * 60_000}}},
        {"manifests/a.yaml": an_action("a", script="${host}" * 9_000).replace(
            '"name": "a"', '"name": "a", "templated": true')},
        "VARIABLE-SIZE",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_what_leads_outside_or_grows_without_end_is_refused(job: Job, case: str) -> None:
    """In bounded time and memory, with a finding, and before anything is asked."""
    fields, files, code = HOSTILE[case]
    outside = job.folder.parent / "outside"
    write(outside / "acme.yaml", ORGANIZATION)
    write(outside / "a.js", "function a() { /* geheim */ }")
    write(job.folder / ".git" / "HEAD", "")
    (job.folder / "link").symlink_to(outside)
    job.propose(**json.loads(json.dumps(fields)))
    for name, text in files.items():
        write(job.folder / name, text.replace('"script": null, ', ""))

    told = job("plan")

    assert told.code == 1, told.all
    assert code in told.err
    assert "geheim" not in told.all
    assert len(told.all) < 100_000
    assert job.asked == []


def test_an_address_that_only_the_file_names_gets_no_token(job: Job) -> None:
    """Neither the one in the environment nor one that is stored for another origin."""
    a_configuration(job.folder / "reconciler.yaml", job.other.address)
    given = {
        "XDG_CONFIG_HOME": str(job.folder / "settings"),
        "RECONCILER_ENV": "live",
        "RECONCILER_TOKEN": "rct_geheim",
    }
    job.run("login", job.service.address, stdin="rct_stored", **given)

    refused = job.run("plan", **given)
    contradicting = job.run("plan", "--service", job.service.address, **given)

    assert (refused.code, contradicting.code) == (7, 1)
    assert job.asked == []


def test_an_empty_name_of_the_trusted_file_is_refused(job: Job) -> None:
    """It is what a pipeline has of a variable that was never set; the guard must not be off."""
    job.propose()

    ran = job.run("plan", "--trusted-config", "", RECONCILER_ENV="live")

    assert ran.code == 1
    assert "--trusted-config is empty" in ran.err
    assert job.asked == []
