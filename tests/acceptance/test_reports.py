"""Every form of every report through the real command: what scripts and pages are fed with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.hostile import PAYLOADS
from tests.unit.report.sarif_schema import SARIF

MISSPELT = '{"apiVersion": "reconciler/v1", "kind": "Action", "metadata": {"organization": "acme", '

NEW_SERVICE = "Service sqlite:.reconciler/identity.db (new: there is no store yet), tree default"


@pytest.fixture
def broken(small: Path) -> Path:
    """Return a folder with one error and one warning beside what is right."""
    write(small / "wrong.yaml", MISSPELT + '"name": "x"}, "spec": {"scirpt": "x"}}')
    write(small / "warned.yaml", an_action("warned", script="let nothing = 1;"))
    return small


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif", "junit"])
def test_validate_fails_in_every_form(run: Run, broken: Path, form: str) -> None:
    """The exit code comes from the findings and not from how they are told."""
    ran = run("validate", "--format", form)

    assert (ran.code, ran.err) == (1, "")
    assert "wrong.yaml" in ran.out


def test_validate_annotates_the_lines_of_a_pull_request(run: Run, broken: Path) -> None:
    """A command for each finding, and a count; outside of a workflow no file is written."""
    lines = run("validate", "--format", "github").out.splitlines()

    assert [line.split(" ")[0] for line in lines[:-1]] == ["::warning", "::error", "::error"]
    assert any("file=manifests/wrong.yaml,line=1,col=" in line for line in lines)
    assert lines[-1] == "2 errors, 1 warning"


def test_validate_writes_the_summary_of_the_step_where_there_is_one(
    run: Run, broken: Path, tmp_path: Path
) -> None:
    """After what other commands of the step have written there."""
    summary = write(tmp_path / "summary.md", "before\n")

    run("validate", "--format", "github", GITHUB_STEP_SUMMARY=str(summary))

    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## Not valid: 8 manifests\n")
    assert "manifests/wrong.yaml:1:" in text
    unwritable = run("validate", "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path))
    assert unwritable.code == 1
    assert "cannot write the step summary" in unwritable.err


def test_validate_tells_code_scanning(run: Run, broken: Path) -> None:
    """Valid against the standard's schema, with the place."""
    report = run("validate", "--format", "sarif").json

    jsonschema.validate(report, SARIF)
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in report["runs"][0]["results"]
    ]
    assert set(places) == {"manifests/wrong.yaml", "manifests/warned.yaml"}


def test_validate_reports_every_file_to_a_ci_server(run: Run, broken: Path) -> None:
    """The right ones, too."""
    out = run("validate", "--format", "junit").out

    assert out.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    assert re.findall(r'<testcase [^>]*name="manifests/(\w+)\.yaml" time="0"/>', out) == [
        "greet", "organization", "partner", "spa", "web",
    ]  # fmt: skip
    assert out.count("<failure ") == 1


def test_a_plan_as_a_comment_holds_the_digest_that_apply_takes(run: Run, small: Path) -> None:
    """What was reviewed is what is applied."""
    comment = run("plan", "--format", "markdown")

    assert (comment.code, comment.err) == (0, "")
    assert comment.out.startswith(
        "<!-- reconciler-plan service=sqlite:.reconciler/identity.db tree=default -->\n"
        "## Plan: 6 to create, 0 to update, 0 to delete\n"
    )
    (digest,) = re.findall(r"- Digest: `(sha256:[0-9a-f]{64})`", comment.out)
    assert run("apply", "--digest", digest).code == 0
    assert "## No changes." in run("plan", "--format", "markdown").out


@pytest.mark.parametrize(
    ("on_merge", "told"),
    [("github", "starts the workflow by hand"), ("gitlab", "starts the manual job")],
)
def test_a_comment_says_what_ci_does_on_merge(
    run: Run, small: Path, on_merge: str, told: str
) -> None:
    """Nobody who reads it in a pull request applies it from a desk; a saved plan says the same."""
    comment = run("plan", "--format", "markdown", "--on-merge", on_merge, "--out", "p.plan").out

    _, _, after = comment.partition("**Next:** ")
    assert after.startswith("Merge to apply this. CI then plans again")
    assert (told in after, "```sh" in after) == (True, False)
    assert run("show", "p.plan", "--format", "markdown", "--on-merge", on_merge).out == comment
    assert told in run("show", "p.plan", "--format", "html", "--on-merge", on_merge).out
    assert run("apply", "--auto-approve", "--secrets-to", "file:s").code == 0
    nothing = run("plan", "--format", "markdown", "--on-merge", on_merge).out
    assert nothing.endswith("**Next:** Nothing to do.\n")


def test_findings_take_the_place_of_a_plan_that_cannot_be_made(run: Run, broken: Path) -> None:
    """With the first line of its comment; nothing but findings, in at most so many characters."""
    for number in range(30):
        write(broken / f"w{number}.yaml", an_action(f"w{number}", timeout="`" * 5 + f" {number}m"))

    told = run("plan", "--tree", "shop", "--format", "markdown", "--out", "p.plan")
    short = run("plan", "--tree", "shop", "--format", "markdown", "--max-chars", "2500")

    marker = "<!-- reconciler-plan service=sqlite:.reconciler/identity.db tree=shop -->\n"
    assert (told.code, short.code) == (1, 1)
    assert told.out.startswith(
        f"{marker}## Not planned: the manifests are not valid\n\n- 32 errors"
    )
    assert told.out.endswith("**Next:** Fix the manifests, then push again.\n")
    assert "\n``````text\n" in told.out
    assert "unknown field scirpt" in told.out
    assert len(short.out) <= 2500
    assert re.search(r"\d+ more are in the log of the job\.", short.out)
    assert "32 errors" in told.err
    assert run("plan", "--tree", "shop").out == ""
    assert not (broken.parent / "p.plan").exists()


def test_a_comment_is_as_long_as_is_asked_for(run: Run, small: Path) -> None:
    """And what it leaves out is counted."""
    for number in range(60):
        write(small / f"a{number}.yaml", an_action(f"a{number}"))

    short = run("plan", "--format", "markdown", "--max-chars", "3000").out

    assert len(short) <= 3000
    assert re.search(r"\*\*\d+ of 66 changes are not shown below\*\*", short)
    assert "not shown" not in run("plan", "--format", "markdown").out
    assert run("plan", "--format", "markdown", "--max-chars", "10").code == 1


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_the_detailed_exit_code_is_the_same_in_every_form(run: Run, small: Path, form: str) -> None:
    """A form is a matter of taste."""
    assert run("plan", "--format", form, "--detailed-exitcode").code == 2
    assert run("plan", "--format", form).code == 0


def test_a_plan_shows_its_risks_first_in_every_form(run: Run, small: Path) -> None:
    """The line that matters is not the four hundredth."""
    run("apply", "--auto-approve")
    write(small / "web.yaml", an_application("web", devMode=True, clockSkew="1s"))

    text = run("plan").out
    plan = run("plan", "--format", "json").json
    comment = run("plan", "--format", "markdown").out
    page = run("plan", "--format", "html").out

    assert "Risks, the most dangerous first:\n  dev-mode-on  OidcApplication acme/" in text
    assert "! dev-mode-on (devMode): checks of the OIDC specification are not performed" in text
    assert plan["summary"]["risks"] == 1
    assert plan["changes"][0]["risks"] == [
        {
            "class": "dev-mode-on",
            "field": "devMode",
            "message": "checks of the OIDC specification are not performed",
        }
    ]
    assert "\n- Risks: 1 `dev-mode-on`\n" in comment
    assert "Risks: look at these first" in page


def records(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [record["type"] for record in found]


def test_apply_as_a_stream_tells_each_change_as_it_begins_and_ends(run: Run, small: Path) -> None:
    """A record per line, each complete, and no secret in any of them."""
    ran = run("apply", "--auto-approve", "--format", "jsonl")
    found = records(ran.out)

    assert ran.code == 0
    assert kinds(found)[:9] == ["version", "service", *["planned_change"] * 6, "change_summary"]
    assert sorted(kinds(found)[9:-1]) == [*["apply_complete"] * 6, *["apply_start"] * 6]
    assert (found[-1]["type"], found[-1]["operation"]) == ("change_summary", "apply")
    assert found[-1]["summary"] == {
        "made": 6,
        "failed": 0,
        "not_tried": 0,
        "untouched": 0,
        "left_out": 0,
        "delivered": 0,
        "remaining": 0,
    }
    assert all({"@level", "@message", "@timestamp", "type"} <= record.keys() for record in found)
    begun: set[str] = set()
    for record in found:
        name = json.dumps(record.get("ref"))
        if record["type"] == "apply_start":
            begun.add(name)
        assert record["type"] != "apply_complete" or name in begun
    (kept,) = (small.parent / ".reconciler" / "secrets").glob("*web*")
    secret = json.loads(kept.read_text(encoding="utf-8"))["client_secret"]
    assert len(secret) == 64
    assert secret not in ran.all


def test_a_stream_of_nothing_to_do_ends_with_its_summary(run: Run, small: Path) -> None:
    """A reader that waits for the end is not left waiting."""
    run("apply", "--auto-approve")

    found = records(run("apply", "--auto-approve", "--format", "jsonl").out)

    assert kinds(found) == ["version", "service", "change_summary", "change_summary"]
    assert found[-1]["summary"]["remaining"] == 0


def test_a_stream_of_a_run_that_is_refused_ends_with_the_reason(run: Run, small: Path) -> None:
    """Nobody to ask, or manifests that are wrong: the stream says so, and the exit code too."""
    unasked = run("apply", "--format", "jsonl")
    write(small / "wrong.yaml", "a: [")
    wrong = run("apply", "--format", "jsonl", "--auto-approve")

    assert (unasked.code, wrong.code) == (1, 1)
    assert records(unasked.out)[-1]["diagnostic"]["summary"] == (
        "there is no terminal to ask whether to apply this plan"
    )
    assert kinds(records(wrong.out)) == ["version", "diagnostic"]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_beside_the_output_for_programs_stands_the_summary_alone(
    run: Run, small: Path, form: str
) -> None:
    """A log of thousands of creates hides what went wrong. Who is asked, or blocked, sees all."""
    asked = run("apply", "--format", form)
    applied = run("apply", "--auto-approve", "--format", form)
    write(small / "web.yaml", an_application(devMode=True))
    other = ("--tree", "other", "--no-adopt")
    blocked = run("apply", "--auto-approve", "--format", form, *other)

    assert (asked.code, applied.code, blocked.code) == (1, 0, 3)
    assert "+ OidcApplication acme/shop/web" in asked.err
    assert "~ OidcApplication acme/shop/web" in blocked.err
    service, plan, digest, *_ = applied.err.splitlines()
    assert service == NEW_SERVICE
    assert plan == "Plan: 6 to create, 0 to update, 0 to delete."
    assert digest.startswith("Digest: sha256:")
    assert "+ OidcApplication" not in applied.err


HOSTILE = [
    payload for payload in PAYLOADS if payload.isprintable() and "\ud800" not in payload and payload
]


def test_no_form_of_output_lets_a_name_speak(run: Run, small: Path) -> None:
    """The whole corpus, as names and scripts, through the real reader and the real writers."""
    for number, payload in enumerate(HOSTILE):
        script = f"function f() {{}}\n// {payload}\n{payload}"
        write(
            small / "evil" / f"{number}.yaml", an_action(f"{payload}{number}"[:200], script=script)
        )

    for form in ("text", "markdown", "json", "html"):
        ran = run("plan", "--format", form)
        lines = ran.all.splitlines()
        assert not [line for line in lines if line.lstrip().startswith("::") or "##[" in line], form
        assert ran.all.replace("\n", "").isprintable(), form
    annotated = run("validate", "--format", "github").out.splitlines()
    assert all(re.match(r"::(error|warning) |\d+ |Valid:", line) for line in annotated)
