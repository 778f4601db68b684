"""The first minutes: what a new user types, mistypes and leaves half done."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    ORGANIZATION,
    Place,
    Run,
    an_action,
    an_application,
    an_idp,
    write,
    write_small,
)
from tests.program import program
from tests.terminal import on_terminal_of

TWO_ENVIRONMENTS = """\
apiVersion: reconciler/v1
kind: Configuration
manifests: manifests
variables: {shopHost: {type: string}}
environments:
  staging: {overlay: overlays/staging, variables: {shopHost: staging.example.com}}
  production: {variables: {shopHost: shop.example.com}}
"""


def test_explain_alone_lists_the_kinds(run: Run, tree: Path) -> None:
    """With a configuration, its variables come after them."""
    bare = run("explain")
    write(tree.parent / "reconciler.yaml", TWO_ENVIRONMENTS)
    configured = run("explain")

    assert (bare.code, configured.code) == (0, 0)
    for kind in ("Organization", "Project", "OidcApplication", "Action", "ActionFlow", "Defaults"):
        assert f"\n  {kind}\n" in bare.out
    assert "`reconciler explain KIND`" in bare.out
    assert configured.out.startswith(bare.out)
    assert "shopHost" in configured.out


def test_history_takes_the_ref_that_outputs_prints(run: Run, small: Path) -> None:
    """What one command prints, the next one takes."""
    run("apply", "--auto-approve")
    ref = run("outputs").out.splitlines()[-1].split("  ")[0]
    told = run("history", ref)
    wrong = run("history", "acme/shop")

    assert (ref, told.code) == ("acme/shop/web", 0)
    assert told.out.startswith("OidcApplication/acme/shop/web  (id ")
    assert wrong.code == 1
    assert "'acme/shop' names no OidcApplication" in wrong.err


@pytest.mark.parametrize("form", ["text", "json"])
def test_strict_makes_warnings_errors(run: Run, small: Path, form: str) -> None:
    """A note stays a note: a script with CRLF is none to stop for."""
    write(small / "greet.yaml", an_action(script="function greet(ctx, api) {\r\n}"))
    noted = run("validate", "--strict", "--format", form)
    write(small / "web.yaml", an_application(redirectUris=["http://web.example.com/cb"]))
    lax, strict = run("validate", "--format", form), run("validate", "--strict", "--format", form)

    assert (noted.code, lax.code, strict.code) == (0, 0, 1)
    if form == "json":
        severities = {each["code"]: each["severity"] for each in strict.json["diagnostics"]}
        assert strict.json["valid"] is False
        assert severities == {"SCRIPT-CRLF": "note", "URI-HTTP": "error"}
    else:
        assert "warning URI-HTTP" in lax.out
        assert "error URI-HTTP" in strict.out
        assert "Valid:" not in strict.out


@pytest.fixture
def layered(tree: Path) -> Path:
    """Return a folder with two environments; one has an overlay."""
    folder = tree.parent
    web = an_application(redirectUris=["https://${shopHost}/cb"])
    patch = {"metadata": {"organization": "acme", "project": "shop", "name": "web"}}
    written = {"apiVersion": "reconciler/v1", "kind": "OidcApplication", **patch}
    write(folder / "reconciler.yaml", TWO_ENVIRONMENTS)
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "web.yaml", web)
    overlaid = {**written, "spec": {"devMode": True}}
    write(folder / "overlays" / "staging" / "web.yaml", json.dumps(overlaid))
    return folder


def test_what_render_writes_is_judged_by_itself(run: Run, layered: Path) -> None:
    """No overlay is laid over it once more, be it piped or in a file."""
    rendered = run("render", "--env", "staging")
    write(layered / "rendered.yaml", rendered.out)
    piped = run("validate", "-", "--format", "json", stdin=rendered.out)
    in_a_file = run("validate", "rendered.yaml", "--format", "json")

    assert (rendered.code, piped.code, in_a_file.code) == (0, 0, 0)
    assert piped.out == in_a_file.out.replace("rendered.yaml", "stdin")
    assert (piped.json["manifests"], piped.json["environments"]) == (3, ["staging", "production"])
    assert [each["code"] for each in piped.json["diagnostics"]] == ["OIDC-DEV-MODE"]


def test_stdin_is_judged_like_a_file(run: Run, layered: Path) -> None:
    """Variables count; what is wrong has its line; nothing else stands beside it."""
    web = (layered / "manifests" / "web.yaml").read_text()
    right = run("validate", "-", stdin=web)
    wrong = run("validate", "-", stdin=web.replace('"spec"', '\n"specs"'))
    two = run("validate", "-", "manifests", stdin=web)
    large = run("validate", "-", stdin="#" * (1024 * 1024 + 1))
    nothing = run("validate", "-", stdin="# render failed\n")

    assert (right.code, wrong.code, two.code, large.code) == (0, 1, 1, 1)
    assert nothing.code == 1
    assert "stdin: error FILE-NONE: no manifests found" in nothing.out
    assert "stdin:2:1: error SCHEMA-UNKNOWN-FIELD: unknown field specs" in wrong.out
    assert "Give it alone" in two.err
    assert "render --out DIR" in large.err


def test_a_file_is_judged_alone(run: Run, small: Path) -> None:
    """Its project is declared in another file of the tree: nothing is wrong with this one."""
    one = run("validate", "manifests/web.yaml", "--strict")
    (small / "organization.yaml").unlink()
    whole = run("validate")

    assert (one.code, one.out) == (0, "Valid: 1 manifest is right.\n")
    assert "Project acme/shop is declared nowhere" in whole.out


@pytest.mark.parametrize("command", ["plan", "validate", "apply"])
def test_an_empty_folder_is_told_how_to_begin(run: Run, tmp_path: Path, command: str) -> None:
    """A path that was typed is not: whoever typed it has manifests."""
    missing, typed = run(command), run(command, "manifest")
    (tmp_path / "manifests").mkdir()
    empty = run(command)

    assert (missing.code, typed.code, empty.code) == (1, 1, 1)
    assert "run `reconciler init`" in missing.all
    assert "run `reconciler init`" in empty.all
    assert "reconciler init" not in typed.all


def test_a_configuration_with_the_wrong_ending_is_a_mistake(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Without it the store of this folder would be planned instead of the service that it names."""
    (tmp_path / ".git").mkdir()
    without_overlay = TWO_ENVIRONMENTS.replace("overlay: overlays/staging, ", "")
    wrong = write(tmp_path / "reconciler.yml", without_overlay)
    planned, chosen = run("plan"), run("plan", "--env", "staging")
    named = run("plan", "--config", "reconciler.yml", "--env", "staging")
    wrong.rename(tmp_path / "reconciler.yaml")
    renamed = run("plan", "--env", "staging")

    assert (planned.code, chosen.code, named.code, renamed.code) == (1, 1, 0, 0)
    for ran in (planned, chosen):
        assert "reconciler.yml is not read: its name is not reconciler.yaml" in ran.err
        assert "Rename it to reconciler.yaml" in ran.err


def git(folder: Path, *words: str) -> str:
    """Run Git with a name and nothing of this machine's settings."""
    known = {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    name = ["-c", "user.name=Ana", "-c", "user.email=ana@example.com"]
    done = subprocess.run(
        ["git", *name, *words], cwd=folder, env=known, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


EDITED = ", with changes that are not committed"


def test_a_report_of_an_edited_tree_says_so(run: Run, small: Path, tmp_path: Path) -> None:
    """What was staged or never added is as little in the commit as what was edited."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path / ".gitignore", "/.reconciler\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    commit = git(tmp_path, "rev-parse", "HEAD")

    def reported() -> str:
        return run("plan", "--format", "markdown").out

    write(tmp_path / "README.md", "not a manifest")
    clean = reported()
    write(small / "web.yaml", an_application("web", devMode=True))
    edited = reported()
    git(tmp_path, "add", ".")
    staged = reported()
    git(tmp_path, "commit", "--quiet", "--message", "Edit")
    write(small / "more.yaml", an_action("more"))
    added = reported()
    run("plan", "--out", "plan.json")
    run("apply", "--auto-approve")
    history = run("history", "Action/acme/more").out

    assert f"commit `{commit}`" in clean
    assert EDITED not in clean
    assert f"commit `{commit}{EDITED}`" in edited
    assert f"commit `{commit}{EDITED}`" in staged
    after = git(tmp_path, "rev-parse", "HEAD")
    assert f"commit `{after}{EDITED}`" in added
    assert f"commit `{after}{EDITED}`" in run("show", "plan.json", "--format", "markdown").out
    assert f"revision {after}{EDITED}" in history


def test_a_repository_runs_no_program_when_it_is_asked_for_edits(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Neither a monitor in its settings nor a bare repository inside of the manifests."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    ran = tmp_path / "ran"
    git(tmp_path, "config", "core.fsmonitor", f"touch {ran}")
    for part in ("objects", "refs"):
        (small / part).mkdir()
    write(small / "HEAD", "ref: refs/heads/main\n")
    write(small / "config", f"[core]\nbare = false\nworktree = .\nfsmonitor = touch {ran}\n")
    planned = run("plan", "--format", "markdown")

    assert EDITED in planned.out
    assert not ran.exists()


def test_a_manifest_that_git_ignores_is_not_of_the_commit(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Other files that Git ignores are not read, and do not count."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path / ".gitignore", "*~\nprivate.*\n.hidden\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    for name in ("web.yaml~", "private.txt", ".hidden/more.yaml"):
        write(small / name, "")
    others = run("plan", "--format", "markdown")
    write(small / "private.yaml", an_action("more"))
    read = run("plan", "--format", "markdown")

    assert (others.code, read.code) == (0, 0)
    assert EDITED not in others.out
    assert EDITED in read.out


@pytest.mark.parametrize(("name", "program"), [("clean", "touch {}; cat"), ("process", "touch {}")])
def test_a_filter_of_a_repository_is_not_run(
    run: Run, small: Path, tmp_path: Path, name: str, program: str
) -> None:
    """Git runs one for each file that was touched; then it is not known whether any was edited."""
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    ran = tmp_path / "ran"
    git(tmp_path, "config", f"filter.any.{name}", program.format(ran))
    write(tmp_path / ".git" / "info" / "attributes", "* filter=any\n")
    write(small / "web.yaml", an_application("web", devMode=True))
    planned = run("plan", "--format", "markdown")

    assert planned.code == 0, planned.all
    assert EDITED not in planned.out
    assert not ran.exists()


def test_secret_list_says_who_has_one_since_when_and_what_is_owed(place: Place) -> None:
    """On a service that keeps secrets until they are delivered; never the secret itself."""
    write(place.manifests / "more.yaml", an_application("more"))
    place.run("apply", "--auto-approve")
    first = place.run("secret", "list")
    place.run("secret", "rotate", "acme/shop/web", "--auto-approve", RECONCILER_CRASHPOINT="C6")
    owed = place.run("secret", "list", "--format", "json").json["applications"]
    one = place.run("secret", "list", "acme/shop/web")
    missing = place.run("secret", "list", "acme/shop/none")

    assert first.code == 0, first.all
    lines = first.out.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[:-1]] == [
        "acme/shop/more",
        "acme/shop/web",
    ]
    assert re.fullmatch(r"acme/shop/more  since [0-9T:.-]+Z", lines[0])
    assert lines[-1] == "2 applications have a client secret; none is owed."
    assert [(each["ref"]["name"], each["owed"], each["tree"]) for each in owed] == [
        ("more", False, None),
        ("web", True, "default"),
    ]
    assert owed[1]["since"] > lines[1].split()[-1]
    assert one.out.splitlines()[0].endswith("  owed to tree default")
    assert missing.code == 1
    assert "there is no application acme/shop/none" in missing.err


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of a megabyte; a folder without a limit where this user can mount none."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    mounted = (
        os.getuid() == 0 and not subprocess.run(words, capture_output=True, check=False).returncode
    )
    yield place
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


FULL = "the disk is full", "No space left on device", "no room left to write"


def test_a_full_disk_says_so(disk: Path) -> None:
    """Whatever was about to be written; a store whose shared memory has no room included."""
    run = program(disk)
    write_small(disk / "manifests")
    run("apply", "--auto-approve")
    write(disk / "manifests" / "greet.yaml", an_action(timeout="5s"))
    with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as file:
        for _ in range(512):
            file.write(bytes(4096))
    is_full = os.statvfs(disk).f_bavail == 0  # else no disk could be mounted
    ran = [
        run(*command.split())
        for command in (
            "plan --out plan.json",
            "apply --auto-approve",
            "export --out exported",
            "render --out rendered",
            "init example",
            "init --git-hooks",
            "token create --name one --role viewer",
            "store backup copy.db",
        )
    ]

    for each in ran if is_full else ():
        assert each.code == 1, each.all
        assert any(words in each.err for words in FULL), each.err
        assert "may write to" not in each.err


def found_in(run: Run, *more: str) -> list[tuple[str, str, str]]:
    """Return severity and code of each finding, and what it says with its remedy."""
    found = run("validate", "--format", "json", *more).json["diagnostics"]
    return [
        (each["severity"], each["code"], f"{each['summary']}: {each['remedy']}") for each in found
    ]


@pytest.mark.parametrize(
    ("uri", "severity", "code", "words"),
    [
        ("https://$shopHost/cb", "error", "URI-HOST", "Write ${shopHost}"),
        ("https://id.$domain/cb", "error", "URI-HOST", "Write ${domain}"),
        ("htps://web.example.com/cb", "error", "URI-SCHEME", "Write https:."),
        ("HTP://web.example.com/cb", "error", "URI-SCHEME", "Write http:."),
        ("https://##APP##/cb", "error", "PLACEHOLDER-LEFT", "##APP## looks like"),
        ("https://web.example.com/@@PROJECT@@", "error", "PLACEHOLDER-LEFT", "@@PROJECT@@ looks"),
        ("https://{{ host }}/cb", "error", "PLACEHOLDER-LEFT", "{{ host }} looks"),
    ],
)
def test_a_uri_that_can_never_be_meant_is_one_error(
    run: Run, small: Path, uri: str, severity: str, code: str, words: str
) -> None:
    """With what to write; nothing else at the same place says something that misleads."""
    write(small / "web.yaml", an_application(redirectUris=[uri]))
    [(found, name, told)] = found_in(run)

    assert (found, name) == (severity, code)
    assert words in told


def test_a_bare_variable_in_an_origin_is_named_as_well(run: Run, small: Path) -> None:
    write(small / "web.yaml", an_application(additionalOrigins=["https://$shopHost"]))

    [(_, code, told)] = found_in(run)

    assert code == "OIDC-ORIGIN"
    assert "Write ${shopHost}" in told


@pytest.mark.parametrize("name", ["##APP##", "@@PROJECT@@", "{{ name }}"])
def test_a_placeholder_of_another_tool_is_no_name(run: Run, small: Path, name: str) -> None:
    """In a script it may be meant, and is a warning."""
    write(small / "web.yaml", an_application(name, redirectUris=["https://web.example.com/cb"]))
    in_a_name = found_in(run)
    (small / "web.yaml").unlink()
    write(small / "greet.yaml", an_action(script=f"function greet() {{}} // {name}"))
    in_a_script = found_in(run)

    assert [each[:2] for each in in_a_name] == [("error", "PLACEHOLDER-LEFT")]
    assert [each[:2] for each in in_a_script] == [("warning", "PLACEHOLDER-LEFT")]


def test_two_manifests_without_a_line_between_them_are_told_so(run: Run, small: Path) -> None:
    """One finding for each of those that follow, and not four for its keys."""
    one = "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: acme}\nspec: {}\n"
    write(small / "organization.yaml", one * 3)
    two = run("validate")
    write(small / "organization.yaml", one.replace("spec: {}", "kind: Project"))
    key = run("validate")
    write(small / "organization.yaml", f"apiVersion: reconciler/v1\n{one}")
    first = run("validate")
    write(small / "organization.yaml", '{"kind": "Organization", "kind": "Project"}')
    in_one_line = run("validate")
    write(small / "organization.yaml", '{"metadata": {}, "apiVersion": 1, "apiVersion": 1}')
    flow = run("validate")
    write(small / "organization.yaml", one.replace("acme", "{{ name }}"))
    braces = run("validate")

    assert two.out.count(" error ") == 2
    for line in (5, 9):
        assert f"organization.yaml:{line}:1: error YAML-SEPARATOR: a second manifest" in two.out
    assert "Write a line of --- above this one" in two.out
    assert ":4:1: error YAML-DUPLICATE-KEY: key kind is written twice" in key.out
    assert ":2:1: error YAML-DUPLICATE-KEY: key apiVersion is written twice" in first.out
    for told in (in_one_line, flow):
        assert "    Keep one of the two.\n" in told.out
    assert "write ${name}, which reconciler.yaml declares" in braces.out


BROKEN_RULES = [
    ("HttpOnlyForWeb", "http://a.example.com/cb", {"appType": "USER_AGENT"}),
    ("HttpNotAllowed", "http://a.example.com/cb", {"grantTypes": ["IMPLICIT"]}),
    ("MustBeHttpLocalhost", "http://a.example.com/cb", {"appType": "NATIVE"}),
    ("CustomOnlyForNative", "com.example.app:/cb", {}),
    ("CustomNotAllowed", "com.example.app:/cb", {"grantTypes": ["IMPLICIT"]}),
]


@pytest.mark.parametrize(("rule", "bad", "fields"), BROKEN_RULES)
def test_a_problem_of_oidc_points_at_the_uri(
    run: Run, small: Path, rule: str, bad: str, fields: dict[str, Any]
) -> None:
    """Not at the list, in which twenty others may be right."""
    implicit: dict[str, Any] = {"responseTypes": ["ID_TOKEN"]} if "grantTypes" in fields else {}
    right = ["https://web.example.com/cb", *["http://localhost:8080/cb"] * ("Local" in rule)]
    text = an_application(redirectUris=[*right, bad], authMethodType="NONE", **fields, **implicit)
    write(small / "web.yaml", text)
    found = run("validate", "--format", "json").json["diagnostics"]
    [problem] = [each for each in found if rule in each["summary"]]

    assert problem["code"] == "OIDC-COMPLIANCE"
    assert problem["column"] == text.index(f'"{bad}"') + 1


@pytest.mark.parametrize(
    ("script", "metadata", "noted"),
    [
        pytest.param("return 'https://${region}'", {}, True, id="no template of JavaScript"),
        pytest.param("return `https://${shopHost}`", {}, True, id="a declared name"),
        pytest.param("return `https://${user}`", {}, False, id="a template of JavaScript"),
        pytest.param("return '${region}'", {"templated": False}, False, id="said to be meant"),
        pytest.param("return '${shopHost}'", {"templated": True}, False, id="replaced"),
        pytest.param("return '$${region}'", {}, False, id="an escape"),
    ],
)
def test_a_script_that_looks_templated_and_is_not_is_noted(
    run: Run, layered: Path, script: str, metadata: dict[str, bool], *, noted: bool
) -> None:
    action = json.loads(an_action(script=f"function greet(ctx, api) {{ {script} }}"))
    action["metadata"] |= metadata
    write(layered / "manifests" / "greet.yaml", json.dumps(action))
    found = [each for each in found_in(run) if each[1] == "SCRIPT-VARIABLE"]

    assert [each[0] for each in found] == ["note"] * noted


@pytest.mark.parametrize(
    ("content", "read"),
    [
        pytest.param(an_action("more"), True, id="a manifest"),
        pytest.param(json.dumps(json.loads(an_action("more")), indent="\t"), True, id="with tabs"),
        pytest.param(
            an_action("more").replace("reconciler/v1", "reconciler\\/v1"), True, id="escaped"
        ),
        pytest.param(
            an_action("more", script="function more() { return '\U0001f600\\\\ud83d' }"),
            True,
            id="with a pair of escapes for one character",
        ),
        pytest.param('{"apiVersion": "example/v1", "kind": "Action"}', False, id="another tool"),
        pytest.param(f"[{an_action('more')}]", False, id="no top level of ours"),
        pytest.param(f'{{"item": {an_action("more")}}}', False, id="inside of another"),
        pytest.param("{,}", False, id="not JSON"),
    ],
)
def test_json_is_read_where_its_top_level_is_a_manifest(
    run: Run, small: Path, content: str, *, read: bool
) -> None:
    """Others are data of some other tool, and passed over without a word."""
    write(small / "more.json", content)
    found = run("validate", "--format", "json").json

    assert (found["valid"], found["manifests"]) == (True, 6 + read)
    assert not found["diagnostics"]


def test_a_broken_manifest_in_json_is_an_error(run: Run, small: Path) -> None:
    """Passed over, it would be deleted by the next prune."""
    write(small / "more.json", an_action("more")[:-1])

    assert "manifests/more.json:2:1: error YAML-SYNTAX" in run("validate").out
    assert run("validate").code == 1


def test_a_manifest_in_json_keeps_its_object_from_a_prune(run: Run, small: Path) -> None:
    """Inside of the PATHS as well as elsewhere in the repository."""
    write(small / "more.json", an_action("more"))
    run("apply", "--auto-approve")
    inside = run("plan", "--prune", "--format", "json").json["summary"]
    (small / "more.json").rename(write(small.parent / "elsewhere" / "more.json", ""))
    write(small.parent / ".git" / "HEAD", "")
    outside = run("apply", "--prune", "--auto-approve")

    assert inside["delete"] == 0
    assert outside.code == 3
    assert "GUARD-PARTIAL-TREE" in outside.err
    assert "elsewhere/more.json" in outside.err


def hidden_by(run: Run, tree: Path, text: str) -> set[str]:
    """Return the codes of the findings about a manifest that are not of its schema."""
    write(tree / "web.yaml", text)
    codes = [code for _, code, _ in found_in(run)]
    assert any(code.startswith("SCHEMA-") for code in codes), codes
    return {code for code in codes if not code.startswith("SCHEMA-")}


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        pytest.param({"devMode": "yes"}, set(), id="one wrong value follows from nothing"),
        pytest.param(
            {"devMode": "yes", "redirectUris": ["https://a.test/#x", "http://a.test/"]},
            {"URI-FRAGMENT", "URI-HTTP"},
            id="an unrelated list",
        ),
        pytest.param({"redirectUris": [5, "https://a.test/#x"]}, {"URI-FRAGMENT"}, id="an item"),
        pytest.param({"redirectUris": [5]}, set(), id="no redirect URI is left out"),
        pytest.param({"redirect_uris": []}, set(), id="a misspelt field is not a missing one"),
        pytest.param(
            {"appType": "MOBILE", "redirectUris": ["com.example.app:/cb"]},
            set(),
            id="what depends on the type of the application",
        ),
        pytest.param(
            {"appType": "MOBILE", "grantTypes": ["REFRESH_TOKEN"], "devMode": True},
            {"OIDC-GRANT", "OIDC-DEV-MODE"},
            id="what does not",
        ),
        pytest.param({"grantTypes": "CODE", "responseTypes": ["ID_TOKEN"]}, set(), id="the grants"),
        pytest.param(
            {"secret": "x", "additionalOrigins": ["https://a.test/x"]},
            {"OIDC-ORIGIN"},
            id="an unknown field",
        ),
        pytest.param(
            {"clockSkew": "9s", "idTokenUserinfoAssertion": True},
            {"OIDC-USERINFO"},
            id="a duration",
        ),
    ],
)
def test_a_schema_error_hides_nothing_that_does_not_depend_on_it(
    run: Run, small: Path, spec: dict[str, Any], codes: set[str]
) -> None:
    """All that can be mended is told in one run, and nothing that only follows."""
    assert hidden_by(run, small, an_application(**spec)) == codes


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ('"project": "shop"', '"project": "shap"', {"REF-UNDECLARED"}),
        ('"project": "shop", ', "", set()),
        ('"name": "web"', '"name": "spa"', {"REF-DUPLICATE"}),
        ('"name": "web"', '"name": 7', set()),
        ('"name": "web"', '"name": "web "', {"NAME-SPACE"}),
        ('"metadata"', '"meta"', set()),
        ("reconciler/v1", "reconciler/v9", {"MANIFEST-API-VERSION"}),
    ],
)
def test_a_wrong_field_hides_nothing_about_names(
    run: Run, small: Path, old: str, new: str, codes: set[str]
) -> None:
    """Twins and owners that are declared nowhere are told of a broken manifest as well."""
    text = an_application(devMode="yes").replace(old, new)

    assert hidden_by(run, small, text) == codes


def test_other_kinds_are_judged_in_part_as_well(run: Run, small: Path) -> None:
    """A script is compiled although its timeout is wrong; what a ZITADEL alone takes is told."""
    script = "function greet( {"
    action = hidden_by(run, small, an_action(timeout="5000ms", script=script))
    partner = hidden_by(run, small, an_idp("other", issuer=5, headerName="no header"))
    extra = hidden_by(run, small, an_application(devMode="yes", grantTypes=["TOKEN_EXCHANGE"]))

    assert action == {"ACTION-SCRIPT", "REF-DUPLICATE"}
    assert partner == {"IDP-HEADER"}
    assert extra == {"CAPABILITY-VALUE", "OIDC-GRANT"}


@pytest.mark.parametrize(
    "command",
    [
        "explain",
        "explain OidcApplication",
        "explain PLACEHOLDER-LEFT",
        "explain Actoin.timeout",
        "validate",
        "plan",
        "apply --auto-approve",
        "drift",
        "history OidcApplication/acme/shop/web",
        "secret list",
        "outputs",
        "plan --nothing",
    ],
)
def test_no_word_is_broken_where_a_space_is_near(run: Run, small: Path, command: str) -> None:
    """At 80 columns; a word that fits on no line is the terminal's to break."""
    long = "words that are long enough to reach the end of a line, and then some more of them"
    write(small / "long.yaml", an_application(f"a name of {long}", devMode=True))
    if command.partition(" ")[0] in {"drift", "history", "secret", "outputs"}:
        run("apply", "--auto-approve")
    write(small / "greet.yaml", an_action(script=f"function greet(ctx, api) {{}} // {long} {long}"))
    told = on_terminal_of(80, small.parent, *command.split(), NO_COLOR="1").out
    wide = [line for line in told.splitlines() if len(line) > 80]

    assert told
    assert [line for line in wide if " " in line.strip()[:60]] == []
