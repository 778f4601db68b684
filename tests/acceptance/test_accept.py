"""What the service holds is written into the manifests that declare it, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    ROOT,
    Place,
    Ran,
    Run,
    an_action,
    an_application,
    as_it_was_read,
    write,
)
from tests.acceptance.zitadel import ServeZitadel
from tests.direct import Direct
from tests.layouts import LAYOUTS, OBJECTS, OF_ZITADEL, Layout, values_of
from tests.unit.manifests.test_rewrite import words_of


def commit(folder: Path) -> None:
    """Commit everything in a folder, which becomes a repository."""
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for words in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=ana", "-c", "user.email=ana@example.com", "commit", "--quiet", "-m", "x"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **own})


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file beneath a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def applied(place: Place) -> Place:
    """Return the small tree, committed and applied."""
    write(place.folder / ".gitignore", ".reconciler\n")
    commit(place.folder)
    assert place.run("apply", "--auto-approve", "--secrets-to", "file:.reconciler/s").code == 0
    return place


def accept(place: Place, *more: str, **environment: str) -> Ran:
    """Accept, without a question."""
    return place.run("drift", "--accept", "--auto-approve", *more, **environment)


def files_of(layout: Layout, organization: str, *, is_new: bool) -> Mapping[str, str]:
    """Return the files of an organization in a layout, before or after."""
    files = {}
    for kind, metadata, pairs in OBJECTS:
        fields = {name: pair for name, pair in pairs.items() if name not in OF_ZITADEL}
        known = {"organization": organization} if "organization" in metadata else {}
        marks = {"active": not is_new} if "active" in metadata else {"preventDelete": is_new}
        own = {**metadata, **known, **marks}
        spec = values_of(layout, fields, is_new=is_new)
        name = f"{kind}-{metadata['name']}{layout.ending}"
        files[name] = layout.draw(kind, own, spec, words_of(kind))
    can_be_joined = layout.syntax != "json" and layout.ends and not layout.before
    if can_be_joined and not layout.is_reversed:
        return {"all.yaml": f"---{layout.newline}".join(files.values())}
    return files


REST = """\
apiVersion: reconciler/v1
kind: Organization
metadata: {{name: {name}}}
---
apiVersion: reconciler/v1
kind: Action
metadata: {{organization: {name}, name: second}}
spec: {{script: "function second() {{}}"}}
---
apiVersion: reconciler/v1
kind: Action
metadata: {{organization: {name}, name: third}}
spec: {{script: "function third() {{}}"}}
"""


@pytest.mark.slow
def test_each_field_of_each_kind_in_each_layout_is_accepted_alone(here: Place) -> None:
    """Another program draws what the files must be, to the byte; then nothing is left to plan."""
    shutil.rmtree(here.manifests)
    other = here.folder / "other"
    for number, layout in enumerate(LAYOUTS):
        name = f"org{number}"
        for folder, is_new in ((here.manifests, False), (other, True)):
            write(folder / name / "rest.yaml", REST.format(name=name))
            for file, text in files_of(layout, name, is_new=is_new).items():
                path = folder / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
    sink = ("--secrets-to", "file:.reconciler/s")
    write(here.folder / ".gitignore", ".reconciler\n")
    commit(here.folder)
    assert here.run("apply", "--auto-approve", *sink).code == 0
    before, wanted = read_files(here.manifests), read_files(other)
    rest = {f"org{number}/rest.yaml" for number in range(len(LAYOUTS))}
    assert {name for name in before if before[name] == wanted[name]} == rest
    hot = here.run(
        "apply", "other", "--tree", "hot", "--auto-approve", "--allow-updates", "9999", *sink
    )
    assert hot.code == 0, hot.all

    shown = here.run("drift", "--accept", "--dry-run")
    assert shown.code == 0, shown.all
    assert read_files(here.manifests) == before

    done = accept(here)

    assert done.code == 0, done.all
    assert read_files(here.manifests) == wanted
    assert here.run("plan", "--detailed-exitcode").code == 0


def test_a_question_is_asked_after_the_difference(applied: Place) -> None:
    """Without a terminal nothing is written; a look at the difference needs none."""
    before = read_files(applied.manifests)
    assert applied.run("drift", "--accept").out == "No drift to accept.\n"
    applied.direct.change("greet", timeout="5s")

    asked = applied.run("drift", "--accept")
    looked = applied.run("drift", "--accept", "--dry-run")

    assert (asked.code, looked.code) == (1, 0)
    assert "no terminal to ask whether to write 1 file" in asked.err
    for each in (asked, looked):
        assert "--- manifests/greet.yaml\n+++ manifests/greet.yaml\n" in each.out
        assert '"timeout": "5s"' in each.out
        assert "1 field to accept, in 1 file." in each.out
    assert read_files(applied.manifests) == before


@as_it_was_read
def test_what_is_named_alone_is_accepted(applied: Place) -> None:
    """An object or a field of it, beside the PATHS."""
    applied.direct.change("greet", timeout="5s", allowedToFail=True)

    done = accept(applied, "manifests", "Action/acme/greet.timeout")
    again = accept(applied, "Action/acme/greet.timeout", "Action/acme/greet")

    assert done.code == 0, done.all
    assert "allowedToFail" not in done.out
    assert "Action/acme/greet.timeout has no drift: nothing to accept." in again.err
    assert "the file has changes that are not committed" in again.err
    assert again.code == 1
    commit(applied.folder)
    assert accept(applied, "Action/acme/greet").code == 0
    assert applied.run("plan", "--detailed-exitcode").code == 0


@as_it_was_read
def test_an_object_is_named_as_drift_prints_it(applied: Place) -> None:
    """With a blank after its kind, and with a field."""
    applied.direct.change("greet", timeout="5s", allowedToFail=True)

    assert accept(applied, "Action acme/greet.timeout").code == 0
    commit(applied.folder)
    assert accept(applied, "Action acme/greet").code == 0
    assert applied.run("plan", "--detailed-exitcode").code == 0


def test_what_was_declared_since_stays(applied: Place) -> None:
    """A field that only the manifests changed is no drift, and is not taken back."""
    text = an_action(allowedToFail=True)
    write(applied.manifests / "greet.yaml", text)
    commit(applied.folder)
    applied.direct.change("greet", timeout="5s")

    assert accept(applied).code == 0

    changed = (applied.manifests / "greet.yaml").read_text()
    assert '"allowedToFail": true' in changed
    assert '"timeout": "5s"' in changed
    assert len(changed) == len(text) + len(', "timeout": "5s"')
    plan = applied.run("plan", "--format", "json").json
    assert [field["name"] for field in plan["changes"][0]["fields"]] == ["allowedToFail"]
    commit(applied.folder)
    assert "has no drift" in accept(applied, "Action/acme/greet").err
    assert accept(applied, "Action/acme/greet.allowedToFail").code == 0  # asked for by its name
    assert applied.run("plan", "--detailed-exitcode").code == 0


def test_names_that_are_not_declared_are_told(applied: Place) -> None:
    """What was made by hand is exported, with a name that a shell does not obey."""
    for name in ("hand", "$(touch ran)"):
        applied.direct("CreateAction", organization=org(applied), name=name, script="let x;")

    unnamed = accept(applied)
    named = accept(applied, "Action/acme/hand")
    nowhere = accept(applied, "Action/acme/hands.timeout")

    assert "reconciler export Action/acme/hand --out FOLDER" in unnamed.err
    assert "reconciler export 'Action/acme/$(touch ran)' --out FOLDER" in unnamed.err
    assert "reconciler export Action/acme/hand --out FOLDER" in named.err
    assert "neither declared nor held" in nowhere.err
    assert (unnamed.code, named.code, nowhere.code) == (0, 1, 1)


def org(place: Place) -> str:
    """Return the id of the organization."""
    (found,) = [each for each in place.direct("ListOrgs")["result"] if each["name"] == "acme"]
    return str(found["id"])


def test_what_was_deleted_loses_its_document(applied: Place) -> None:
    """Its file, if it was the only one in it."""
    text = (
        f"# all\n{an_action('one')}\n---\n{an_application('old')}\n--- # last\n{an_action('two')}\n"
    )
    write(applied.manifests / "more.yaml", text)
    write(applied.manifests / "only.json", an_application("json"))
    commit(applied.folder)
    assert applied.run("apply", "--auto-approve", "--secrets-to", "file:.reconciler/s").code == 0
    for name in ("old", "spa", "json"):
        applied.direct.remove_app(name)

    done = accept(applied)

    assert done.code == 0, done.all
    assert "3 documents to accept, in 3 files." in done.out
    assert "+++ /dev/null" in done.out
    for name in ("spa.yaml", "only.json"):
        assert not (applied.manifests / name).exists()
    left = (applied.manifests / "more.yaml").read_text()
    assert left == f"# all\n{an_action('one')}\n--- # last\n{an_action('two')}\n"
    assert applied.run("plan", "--detailed-exitcode").code == 0


@as_it_was_read
def test_a_script_file_is_written(applied: Place) -> None:
    """As the service holds it; ``${`` is escaped only where variables are replaced."""
    metadata = "metadata: {organization: acme, name: NAME}"
    for name, flag in (("plain", ""), ("made", ", templated: true")):
        write(
            applied.manifests / f"{name}.yaml",
            f"apiVersion: reconciler/v1\nkind: Action\n"
            f"{metadata.replace('NAME}', name + flag + '}')}\nspec: {{scriptFile: js/{name}.js}}\n",
        )
        write(applied.manifests / "js" / f"{name}.js", f"function {name}() {{}}")
    commit(applied.folder)
    assert applied.run("apply", "--auto-approve").code == 0
    for name in ("plain", "made"):
        applied.direct.change(name, script=f"function {name}() {{\r\n  return '${{x}}';\n}}\n")

    done = accept(applied)

    assert done.code == 0, done.all
    plain = (applied.manifests / "js" / "plain.js").read_bytes()
    assert plain == b"function plain() {\r\n  return '${x}';\n}\n"
    made = (applied.manifests / "js" / "made.js").read_bytes()
    assert made == b"function made() {\r\n  return '$${x}';\n}\n"
    assert applied.run("plan", "--detailed-exitcode").code == 0


@as_it_was_read
def test_javascript_between_back_ticks_is_no_variable(place: Place) -> None:
    """A script that is not templated may lose its ``${}``, in a manifest and in an overlay."""
    overlay = layered(place)
    for file, name in ((place.manifests, "base"), (overlay, "laid")):
        script = f"function {name}(a) {{ return `${{a}}` }}"
        write(file / f"{name}.yaml", an_action(name, script=script))
    commit(place.folder)
    assert place.run("apply", *STAGING, "--auto-approve", *SINK).code == 0
    place.direct.change("base", script="function base() {}")
    place.direct.change("laid", script="function laid() {}")
    assert accept(place, *STAGING).code == 0
    assert is_planned_empty(place)

    patch = json.loads(an_action("base", script="function base(b) { return `${b}` }"))
    write(overlay / "base.yaml", json.dumps(patch))
    commit(place.folder)
    assert place.run("apply", *STAGING, "--auto-approve", *SINK).code == 0
    place.direct.change("base", script="function base(c) { return `${c}` }")
    assert accept(place, *STAGING, "--into", "overlay").code == 0
    assert "`${c}`" in (overlay / "base.yaml").read_text()
    assert is_planned_empty(place)


def refused(place: Place, code: str, *more: str) -> str:
    """Return what is said where nothing can be accepted, and check that nothing was written."""
    before = read_files(place.manifests)
    done = accept(place, *more)
    assert done.code == 1, done.all
    assert "Nothing can be accepted." in done.out, done.all
    assert code in done.err, done.err
    assert read_files(place.manifests) == before
    return done.err


@as_it_was_read
def test_git_is_the_way_back(applied: Place) -> None:
    """What no commit holds as it is, is not written."""
    applied.direct.change("greet", timeout="5s")
    greet = applied.manifests / "greet.yaml"
    text = greet.read_text()

    greet.write_text(f"{text}# edited\n")
    assert "manifests/greet.yaml: error" in refused(applied, "ACCEPT-UNCOMMITTED")
    for flag in ("assume-unchanged", "skip-worktree"):
        for no in ("", "no-"):
            words = ["git", "update-index", f"--{no}{flag}", "manifests/greet.yaml"]
            subprocess.run(words, cwd=applied.folder, check=True)
            refused(applied, "ACCEPT-UNCOMMITTED")
    greet.write_text(text)
    for ignored in ("", "manifests\n"):
        write(applied.folder / ".gitignore", f".reconciler\n{ignored}")
        subprocess.run(["git", "rm", "-q", "--cached", greet], cwd=applied.folder, check=True)
        refused(applied, "ACCEPT-UNCOMMITTED")
        subprocess.run(["git", "reset", "-q", "--hard"], cwd=applied.folder, check=True)
    with (applied.folder / ".git" / "config").open("a") as settings:
        settings.write('[filter "x"]\n\tclean = touch ran\n')
    refused(applied, "ACCEPT-GIT")
    assert not (applied.folder / "ran").exists()
    shutil.rmtree(applied.folder / ".git")
    refused(applied, "ACCEPT-GIT")


@as_it_was_read
def test_a_read_only_file_stays(applied: Place) -> None:
    """Its owner says so, and could be root."""
    applied.direct.change("greet", timeout="5s")
    (applied.manifests / "greet.yaml").chmod(0o444)

    refused(applied, "ACCEPT-READ-ONLY")


@as_it_was_read
def test_hostile_values_are_refused_or_written_as_text(applied: Place) -> None:
    """A reader of YAML, a terminal and a reviewer take them for what they are."""
    role = write(applied.manifests / "role.yaml", ROLE)
    commit(applied.folder)
    assert applied.run("apply", "--auto-approve").code == 0
    project = applied.direct.objects()["shop"]["id"]

    def change(text: str, group: str = "") -> None:
        names = {"displayName": text, "group": group or text}
        applied.direct(
            "UpdateProjectRole", organization=org(applied), projectId=project, roleKey="m", **names
        )

    for text, code in (
        ("a\x1b[2Kb", "ACCEPT-CHARACTER"),
        ("a\nspec: b", "ACCEPT-CHARACTER"),
        ("a\x85", "ACCEPT-CHARACTER"),
        ("{{ secret }}", "ACCEPT-PLACEHOLDER"),
    ):
        change(text)
        assert "\x1b" not in refused(applied, code)
    change("Manager", "Orders")
    applied.direct.change("greet", script="function greet() {} // \u202e")
    refused(applied, "ACCEPT-CHARACTER")
    applied.direct.change("greet", script="function greet(ctx, api) {}")
    texts = ("yes", "~", "12:30:00", "0x1f", "- a", "a: b # c", '"', "'", "${x}", "*x", "!!int 1")
    for text in (*texts, "\u202e", "\ufeff", "::error::x", "##[error]x", "\u2028"):
        change(text)
        done = accept(applied)
        assert done.code == 0, (text, done.all)
        assert "# who" in role.read_text()
        assert applied.run("plan", "--detailed-exitcode").code == 0, text
        commit(applied.folder)
        shown = done.out.replace("\\u", "")
        assert text not in ("\u202e", "\ufeff", "\u2028") or text not in shown
        assert "\n::" not in shown
        assert "##[" not in shown


ROLE = """\
apiVersion: reconciler/v1
kind: ProjectRole
metadata: {organization: acme, project: shop, name: m}
spec:
  displayName: Manager # who
  group: 'Orders'
"""


@as_it_was_read
def test_a_value_that_no_manifest_can_declare_is_refused(applied: Place) -> None:
    """The service takes more than a manifest: another object is accepted all the same."""
    held = applied.direct.objects()["web"]
    config = {**held["spec"], "redirectUris": ["https://a.example.com/{x}"]}
    applied.direct("UpdateOIDCAppConfig", projectId=held["projectId"], appId=held["id"], **config)
    refused(applied, "URI-CHARACTER")
    applied.direct.change("greet", timeout="5s")

    done = accept(applied)

    assert done.code == 1
    assert "URI-CHARACTER" in done.err
    assert "1 field to accept, in 1 file." in done.out
    assert '"timeout": "5s"' in (applied.manifests / "greet.yaml").read_text()


def test_a_new_name_is_refused(applied: Place) -> None:
    """A name is pinned by hand, because it is how the object is known."""
    held = applied.direct.objects()["greet"]
    applied.direct("UpdateAction", id=held["id"], name="greeting", **held["spec"])

    said = refused(applied, "ACCEPT-RENAME")

    assert "metadata.id" in said


def test_what_changed_with_a_new_name_is_accepted_once_it_is_written(applied: Place) -> None:
    """A manifest of the old name would make another object of what the renamed one holds."""
    manifest = applied.manifests / "greet.yaml"
    held = applied.direct.objects()["greet"]
    changed = {**held["spec"], "timeout": "5s"}
    applied.direct("UpdateAction", id=held["id"], name="greeting", **changed)

    drifted = applied.run("drift").out
    refused(applied, "ACCEPT-RENAME")
    refused(applied, "ACCEPT-RENAME", "Action/acme/greet.timeout")
    renamed = json.loads(manifest.read_text())
    renamed["metadata"] |= {"name": "greeting", "id": held["id"]}
    write(manifest, json.dumps(renamed))
    commit(applied.folder)
    done = accept(applied)

    assert 'timeout: "20s" -> "5s"' in drifted
    assert done.code == 0, done.all
    assert applied.run("plan", "--detailed-exitcode").code == 0


@as_it_was_read
def test_an_object_that_is_declared_twice_is_refused(applied: Place) -> None:
    """Nobody could tell which of the two to write."""
    applied.direct.change("greet", timeout="5s")
    write(applied.manifests / "again.yaml", an_action())
    commit(applied.folder)
    before = read_files(applied.manifests)

    done = accept(applied)

    assert (done.code, "REF-DUPLICATE" in done.err) == (1, True)
    assert read_files(applied.manifests) == before


@as_it_was_read
def test_links_are_not_followed(applied: Place) -> None:
    """Neither a folder nor a file on the way may have become one."""
    applied.direct.change("greet", timeout="5s")
    looked = accept(applied, "--dry-run")
    assert looked.code == 0
    outside = write(applied.folder.parent / "outside.yaml", an_action())
    (applied.manifests / "greet.yaml").unlink()
    (applied.manifests / "greet.yaml").symlink_to(outside)

    done = accept(applied)

    assert done.code == 1
    assert "FILE-SYMLINK" in done.err
    assert outside.read_text() == an_action()


@as_it_was_read
def test_a_kill_between_files_leaves_whole_ones(applied: Place) -> None:
    """The next run goes on with what is left, and takes away what was not finished."""
    applied.direct.change("greet", timeout="5s")
    for name in ("web", "spa"):
        held = applied.direct.objects()[name]
        applied.direct(
            "UpdateOIDCAppConfig",
            projectId=held["projectId"],
            appId=held["id"],
            **{**held["spec"], "clockSkew": "2s"},
        )
    before = read_files(applied.manifests)
    for visit in (1, 2):
        killed = accept(applied, RECONCILER_CRASHPOINT="C21")
        assert killed.code < 0, visit
        left = applied.manifests / f".reconciler-{'0' * 16}.tmp"
        left.write_text("half")
        now = read_files(applied.manifests)
        assert sum(now[name] != before[name] for name in before) == visit
    assert applied.run("validate").code == 0

    done = accept(applied)

    assert done.code == 0, done.all
    assert not left.exists()
    assert applied.run("plan", "--detailed-exitcode").code == 0


@as_it_was_read
def test_a_document_that_went_before_a_kill_is_done(applied: Place) -> None:
    """The same command again goes on with the rest; a name that never was is still refused."""
    applied.direct.remove_app("spa")
    applied.direct.change("greet", timeout="5s")
    refs = ("Action/acme/greet", "OidcApplication/acme/shop/spa")
    while (applied.manifests / "spa.yaml").exists():
        assert accept(applied, *refs, RECONCILER_CRASHPOINT="C21").code < 0

    again = accept(applied, *refs)
    alone = accept(applied, refs[1])
    never = accept(applied, "OidcApplication/acme/shop/spam")

    assert (again.code, alone.code, never.code) == (0, 0, 1), again.all
    assert f"{refs[1]} is gone from the service and from the manifests" in alone.err
    assert "neither declared nor held" in never.err
    assert applied.run("plan", "--detailed-exitcode").code == 0


STAGING = ("--env", "staging")
SINK = ("--secrets-to", "file:.reconciler/s")


def layered(place: Place, *, other_overlay: str = "overlays/production") -> Path:
    """Write, commit and apply a tree of two environments; return the overlay of the first."""
    service = place.address or "sqlite:.reconciler/identity.db"
    environments = {
        "staging": {"service": service, "overlay": "overlays/staging"},
        "production": {"service": "sqlite:.reconciler/other.db", "overlay": other_overlay},
    }
    configuration = {
        "apiVersion": "reconciler/v1",
        "kind": "Configuration",
        "variables": {"host": {"type": "string", "default": "web.example.com"}},
        "environments": environments,
    }
    write(place.folder / "reconciler.yaml", json.dumps(configuration))
    (place.folder / "overlays" / "production").mkdir(parents=True, exist_ok=True)
    overlay = place.folder / "overlays" / "staging"
    web = (
        f"{WEB}  redirectUris:\n    - https://${{host}}/cb # host\n    - https://a.example.com/cb\n"
    )
    write(place.manifests / "web.yaml", web)
    write(place.manifests / "defaults.yaml", DEFAULTS)
    write(overlay / "spa.yaml", PATCH)
    write(place.folder / ".gitignore", ".reconciler\n")
    commit(place.folder)
    assert place.run("apply", *STAGING, "--auto-approve", *SINK).code == 0
    return overlay


WEB = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: web}
spec:
"""
PATCH = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: spa, patch: true}
spec:
  clockSkew: 2s # of staging
"""
DEFAULTS = """\
apiVersion: reconciler/v1
kind: Defaults
spec: {Action: {timeout: 3s}}
"""


def change_application(place: Place, name: str, **fields: Any) -> None:
    """Change an application on the service."""
    held = place.direct.objects()[name]
    config = {**held["spec"], **fields}
    place.direct("UpdateOIDCAppConfig", projectId=held["projectId"], appId=held["id"], **config)


def is_planned_empty(place: Place) -> bool:
    """Return whether nothing is left to plan in the first environment."""
    return place.run("plan", *STAGING, "--detailed-exitcode").code == 0


def test_what_others_share_is_written_into_the_overlay_alone(place: Place) -> None:
    """A variable and Defaults are refused where they are; other items of a list are not."""
    overlay = layered(place)
    uris = ["https://b.example.com/cb", "https://a.example.com/cb"]
    change_application(place, "web", redirectUris=uris)
    of_base = refused(place, "ACCEPT-VARIABLE", *STAGING)
    assert "the variable host" in of_base
    assert "or write it for this environment alone with --into overlay" in of_base
    place.direct.change("greet", timeout="5s")
    assert "manifests/defaults.yaml:3" in refused(place, "ACCEPT-SHARED", *STAGING)
    before = read_files(place.manifests)

    done = accept(place, *STAGING, "--into", "overlay")

    assert done.code == 0, done.all
    assert read_files(place.manifests) == before
    assert (overlay / "action.acme.greet.yaml").read_text() == (
        "apiVersion: reconciler/v1\nkind: Action\nmetadata:\n  organization: acme\n  name: greet\n"
        "  patch: true\nspec:\n  timeout: 5s\n"
    )
    assert is_planned_empty(place)
    commit(place.folder)

    change_application(place, "web", redirectUris=[*uris, "https://c.example.com/cb"])
    assert accept(place, *STAGING).code == 0
    assert read_files(place.manifests) == before
    assert is_planned_empty(place)


@as_it_was_read
@pytest.mark.parametrize("more", [(), ("--into", "overlay")])
def test_a_variable_of_the_overlay_is_not_sent_to_the_overlay(
    place: Place, more: tuple[str, ...]
) -> None:
    """That advice would lead to the same refusal again."""
    overlay = layered(place)
    write(overlay / "spa.yaml", f"{PATCH}  redirectUris: ['https://${{host}}/cb']\n")
    commit(place.folder)
    assert place.run("apply", *STAGING, "--auto-approve", *SINK).code == 0
    change_application(place, "spa", redirectUris=["https://b.example.com/cb"])

    told = refused(place, "ACCEPT-VARIABLE", *STAGING, *more)

    assert "Change the value of the variable in reconciler.yaml.\n" in told
    assert "--into" not in told


@as_it_was_read
def test_each_object_has_a_new_file_of_its_own_in_the_overlay(place: Place) -> None:
    """Also where the names of two, one after the other, are the same text."""
    overlay = layered(place)
    names = (("a-b", "c"), ("a", "b-c"))
    for organization, project in names:
        write(place.manifests / f"{organization}.yaml", OTHERS.format(organization, project))
    commit(place.folder)
    assert place.run("apply", *STAGING, "--auto-approve", *SINK).code == 0
    for organization, _ in names:
        direct = Direct(place.direct.store, organization=organization)
        change_application(replace(place, direct=direct), "web", clockSkew="3s")

    done = accept(place, *STAGING, "--into", "overlay")

    assert done.code == 0, done.all
    assert {path.name for path in overlay.glob("oidc*")} == {
        "oidcapplication.a-b.c.web.yaml",
        "oidcapplication.a.b-c.web.yaml",
    }
    assert is_planned_empty(place)


OTHERS = """\
apiVersion: reconciler/v1
kind: Organization
metadata: {{name: {0}}}
---
apiVersion: reconciler/v1
kind: Project
metadata: {{organization: {0}, name: {1}}}
---
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {{organization: {0}, project: {1}, name: web}}
spec: {{redirectUris: ["https://web.example.com/cb"]}}
"""


@as_it_was_read
def test_items_beside_a_variable_are_accepted(place: Place) -> None:
    """The item that has the variable stays as it is written, and so does its comment."""
    layered(place)
    uris = ["https://web.example.com/cb", "https://new.example.com/cb"]
    change_application(place, "web", redirectUris=uris)

    done = accept(place, *STAGING)

    assert done.code == 0, done.all
    assert "Files outside of overlays count for all 2 environments" in done.err
    text = (place.manifests / "web.yaml").read_text()
    assert text.endswith("    - https://${host}/cb # host\n    - https://new.example.com/cb\n")
    assert is_planned_empty(place)


@as_it_was_read
def test_a_value_of_the_own_overlay_is_written_there(place: Place) -> None:
    """Without a flag: it comes from there. Another field of the object stands in the base."""
    overlay = layered(place)
    change_application(place, "spa", clockSkew="4s", devMode=True)

    done = accept(place, *STAGING)

    assert done.code == 0, done.all
    assert (overlay / "spa.yaml").read_text() == PATCH.replace("2s", "4s")
    assert '"devMode": true' in (place.manifests / "spa.yaml").read_text()
    assert is_planned_empty(place)

    commit(place.folder)
    change_application(place, "spa", clockSkew="5s", accessTokenRoleAssertion=True)
    assert accept(place, *STAGING, "--into", "overlay").code == 0
    wanted = PATCH.replace("  clockSkew: 2s", "  accessTokenRoleAssertion: true\n  clockSkew: 5s")
    assert (overlay / "spa.yaml").read_text() == wanted
    assert is_planned_empty(place)


@as_it_was_read
def test_an_overlay_of_two_environments_is_not_written(place: Place) -> None:
    """Its value would change in both."""
    overlay = layered(place, other_overlay="overlays/staging")
    change_application(place, "spa", clockSkew="4s")

    refused(place, "ACCEPT-SHARED", *STAGING)
    change_application(place, "web", clockSkew="4s")
    done = accept(place, *STAGING, "--into", "overlay")
    assert done.code == 1, done.all
    assert "the overlay of staging is that of another environment, too" in done.err
    assert (overlay / "spa.yaml").read_text() == PATCH
    assert [path.name for path in overlay.iterdir()] == ["spa.yaml"]


@as_it_was_read
def test_what_was_deleted_is_taken_out_of_an_environment(place: Place) -> None:
    """With ``absent``; the base keeps it for the others, and a patch of it is in the way."""
    overlay = layered(place)
    place.direct.remove_app("web")
    place.direct.remove_app("spa")
    before = read_files(place.manifests)

    done = accept(place, *STAGING, "--into", "overlay")

    assert done.code == 1
    assert "overlays/staging/spa.yaml:1:1: error ACCEPT-OVERLAY" in done.err
    assert "absent: true" in (overlay / "oidcapplication.acme.shop.web.yaml").read_text()
    assert read_files(place.manifests) == before
    refused(place, "ACCEPT-OVERLAY", *STAGING)


@as_it_was_read
def test_a_script_file_of_two_is_not_written(applied: Place) -> None:
    """The other action would run another script, too."""
    for name in ("one", "two"):
        document = json.loads(an_action(name))
        document["spec"] = {"scriptFile": "both.js"}
        write(applied.manifests / f"{name}.yaml", json.dumps(document))
    write(applied.manifests / "both.js", "function both() {}")
    commit(applied.folder)
    assert applied.run("apply", "--auto-approve").code == 0
    applied.direct.change("one", script="function one() {}")

    assert "both.js" in refused(applied, "ACCEPT-SHARED")


@as_it_was_read
def test_flags_of_acceptance_need_it(applied: Place) -> None:
    """Alone they would promise what drift does not do."""
    for flags, problem in (
        (["--dry-run"], "--dry-run is given without --accept"),
        (["--into", "overlay"], "--into is given without --accept"),
        (["--accept", "--format", "json"], "--accept is given with --format or"),
        (["--accept", "--detailed-exitcode"], "--accept is given with --format or"),
        (["--accept", "--into", "overlay"], "no environment with an overlay is chosen"),
    ):
        done = applied.run("drift", *flags)
        assert (done.code, problem in done.err) == (1, True), done.all


OF_A_ZITADEL = f"""\
{WEB}  authMethodType: NONE
  redirectUris: ["https://web.example.com/cb"]
  backChannelLogoutUri: https://web.example.com/out # who
  loginVersion: # pages
    loginV2:
      baseUri: https://login.example.com
"""


def test_a_zitadel_tells_no_author_so_objects_are_named(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """And fields that only it has are accepted as well: also that one is not set any more."""
    write(tree / "web.yaml", OF_A_ZITADEL)
    write(tree / "greet.yaml", an_action())
    commit(tree.parent)
    names = ["OidcApplication/acme/shop/web", "Action/acme/greet"]
    with a_zitadel() as (fake, address):
        here = {**address, "RECONCILER_AUTO_APPROVE": "true"}
        assert run("apply", **here).code == 0
        (app,), (action,) = fake.named("apps", "web"), fake.named("actions", "greet")
        fake.things.remove("actions", action)
        app["oidcConfig"]["backChannelLogoutUri"] = "https://new.example.com/out"
        texts, found = [], []
        logins: list[dict[str, Any]]
        logins = [{"loginV2": {"baseUri": "https://new.example.com"}}, {"loginV1": {}}, {}]
        for login in logins:
            app["oidcConfig"]["loginVersion"] = login
            fake.things.touch("apps", app)
            unnamed = run("drift", "--accept", **here)
            found += [run("drift", "--accept", *names, **here).code]
            found += [run("plan", "--detailed-exitcode", **here).code]
            texts += [(tree / "web.yaml").read_text()]
            commit(tree.parent)
            del names[1:]  # its document is gone

    assert unnamed.out == "No drift to accept.\n"
    assert found == [0] * 6
    assert not (tree / "greet.yaml").exists()
    first, second, last = texts
    new = OF_A_ZITADEL.replace("web.example.com/out", "new.example.com/out")
    assert first == new.replace("login.example.com", "new.example.com")
    pages = "loginV2:\n      baseUri: https://new.example.com"
    assert second == first.replace(pages, "loginV1: {}")
    assert last == first[: first.index("  loginVersion")]


def with_git_that_does(place: Place, deed: str) -> dict[str, str]:
    """Return an environment in which something happens while the run waits for Git."""
    real = shutil.which("git")
    script = f'#!/bin/sh\n{real} "$@"\ncode=$?\ncase "$*" in *status*) {deed};; esac\nexit $code\n'
    git = write(place.folder / "bin" / "git", script)
    git.chmod(0o755)
    return {"PATH": f"{git.parent}:{os.environ['PATH']}"}


@as_it_was_read
def test_a_file_that_changes_meanwhile_is_not_written(applied: Place) -> None:
    """It is no longer what was shown; one before it was written."""
    applied.direct.change("greet", timeout="5s")
    change_application(applied, "web", devMode=True)
    web = applied.manifests / "web.yaml"
    text = web.read_text()

    done = accept(applied, **with_git_that_does(applied, f"echo '# x' >> {web}"))

    assert done.code == 1
    assert "manifests/web.yaml was changed meanwhile" in done.err
    assert web.read_text() == f"{text}# x\n"
    assert '"timeout": "5s"' in (applied.manifests / "greet.yaml").read_text()


def test_what_changes_on_the_service_meanwhile_is_told(applied: Place) -> None:
    """The files are read and planned again."""
    applied.direct.change("greet", timeout="5s")
    code = (
        "from pathlib import Path; from tests.direct import Direct; "
        f"Direct(Path('{applied.direct.store}')).change('greet', timeout='6s')"
    )
    deed = f'cd {ROOT} && {sys.executable} -c "{code}"'

    done = accept(applied, **with_git_that_does(applied, deed))

    assert done.code == 1, done.all
    assert "ACCEPT-REMAINS" in done.err
    assert "what was written is not what the service holds: timeout" in done.err
    assert '"timeout": "5s"' in (applied.manifests / "greet.yaml").read_text()


def test_a_service_that_is_gone_meanwhile_is_told(run: Run, small: Path) -> None:
    """The files are written, and the run does not claim that they are in step."""
    store = small.parent / ".reconciler" / "identity.db"
    place = Place(run, Direct(store), small)
    write(place.folder / ".gitignore", ".reconciler\n")
    commit(place.folder)
    assert run("apply", "--auto-approve", *SINK).code == 0
    place.direct.change("greet", timeout="5s")

    done = accept(place, **with_git_that_does(place, f"mv {store} {store}.away"))

    assert done.code == 1, done.all
    assert "the files were written and could not be planned again" in done.err
    assert '"timeout": "5s"' in (small / "greet.yaml").read_text()
