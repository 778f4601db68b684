"""Defaults of folders: what is filled in, from where, and where a finding about it leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.manifests import loader
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import Growth, Loaded
from reconciler.manifests.placeholders import NO_LAYERS, Layers, VariableValue
from reconciler.resources.ref import Shard, shard_of
from reconciler.validation.desired import judge
from tests.unit.manifests.trees import codes, write_tree

DEFAULTS = """\
apiVersion: reconciler/v1
kind: Defaults
metadata: {{organization: {organization}}}
spec:
  OidcApplication: {{{application}}}
  Action: {{{action}}}
"""
SHOP = "apiVersion: reconciler/v1\nkind: OidcApplication\nmetadata: {{project: p, name: {}}}\n"
QUOTED = "'${tenant}'"
GREET = "apiVersion: reconciler/v1\nkind: Action\nmetadata: {name: greet}\n"


def defaults(organization: str = "acme", application: str = "", action: str = "") -> str:
    return DEFAULTS.format(organization=organization, application=application, action=action)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(files: dict[str, str], *paths: str, layers: Layers = NO_LAYERS) -> Loaded:
    write_tree(Path("tree"), files)
    return load(paths or ("tree",), None, layers)


def specs(loaded: Loaded) -> dict[str, Any]:
    return {m.document["metadata"]["name"]: m.document.get("spec") for m in loaded.manifests}


def test_an_organization_is_written_once() -> None:
    loaded = read({"z.yaml": defaults(), "a.yaml": SHOP.format("a"), "b/c.yaml": SHOP.format("c")})

    assert [m.document["metadata"] for m in loaded.manifests] == [
        {"project": "p", "name": name, "organization": "acme"} for name in ("a", "c")
    ]
    assert {each.code for each in judge(loaded).diagnostics} == {"OIDC-COMPLIANCE"}


def test_only_what_a_kind_has_is_filled_in() -> None:
    organization = "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: acme}\n"

    loaded = read({"d.yaml": defaults(application="devMode: true"), "o.yaml": organization})

    assert [m.document["metadata"] for m in loaded.manifests] == [{"name": "acme"}]
    assert "spec" not in loaded.manifests[0].document


def test_the_manifest_wins_then_the_nearest_folder() -> None:
    files = {
        "d.yaml": defaults(application="devMode: true, clockSkew: 1s, redirectUris: [a]"),
        "b/d.yaml": defaults("beta", "clockSkew: 2s"),
        "a.yaml": SHOP.format("a"),
        "b/b.yaml": SHOP.format("b") + "spec: {devMode: false}\n",
        "b/c/c.yaml": SHOP.format("c"),
    }

    loaded = read(files)

    assert specs(loaded) == {
        "a": {"devMode": True, "clockSkew": "1s", "redirectUris": ["a"]},
        "b": {"devMode": False, "clockSkew": "2s", "redirectUris": ["a"]},
        "c": {"devMode": True, "clockSkew": "2s", "redirectUris": ["a"]},
    }
    assert [m.organization for m in loaded.manifests] == ["acme", "beta", "beta"]


def test_a_value_keeps_its_place_in_the_defaults() -> None:
    files = {
        "d.yaml": defaults(application="redirectUris: ['https://a.test', 'http://b c']"),
        "b/d.yaml": defaults("' beta'", "devMode: yes"),
        "b/c.yaml": SHOP.format("c"),
    }

    found = judge(read(files)).diagnostics

    assert {(each.code, str(each.location)) for each in found if each.is_error} == {
        ("NAME-SPACE", "tree/b/d.yaml:3:26"),
        ("SCHEMA-TYPE", "tree/b/d.yaml:5:30"),
        ("URI-CHARACTER", "tree/d.yaml:5:54"),
    }


def test_an_unknown_field_is_found_where_it_is_written_used_or_not() -> None:
    wrong = defaults(application="devMod: true").replace("Action", "Acton")

    alone = judge(read({"d.yaml": wrong})).diagnostics
    used = judge(read({"d.yaml": wrong, "a.yaml": SHOP.format("a")})).diagnostics

    assert [(each.code, str(each.location)) for each in alone] == [
        ("SCHEMA-UNKNOWN-FIELD", "tree/d.yaml:5:21"),
        ("SCHEMA-UNKNOWN-FIELD", "tree/d.yaml:6:3"),
    ]
    places = [str(each.location) for each in used if each.is_error]
    assert places == [str(each.location) for each in alone]


def test_a_second_document_of_a_folder_names_the_first() -> None:
    [found] = read({"a.yaml": defaults(), "b.yaml": defaults("beta")}).diagnostics

    assert found.code == "DEFAULTS-TWICE"
    assert found.location == SourceLocation("tree/b.yaml", 1, 1)
    assert "tree/a.yaml:1:1" in found.summary


@pytest.mark.parametrize("written", ["script: 'function greet() {}'", "scriptFile: own.js"])
def test_a_script_and_its_file_stand_for_each_other(written: str) -> None:
    script = "function greet() {}"
    files = {
        "d.yaml": defaults(action="timeout: 5s, scriptFile: js/greet.js"),
        "b/d.yaml": defaults(action="script: 'function other() {}'"),
        "b/a.yaml": f"{GREET}spec: {{{written}}}\n",
        "b/own.js": script,
        "js/greet.js": "function outer() {}",
        "c.yaml": GREET.replace("greet", "outer"),
        "b/e.yaml": GREET.replace("greet", "other"),
    }

    assert specs(read(files)) == {
        "greet": {"script": script, "timeout": "5s"},
        "outer": {"script": "function outer() {}", "timeout": "5s"},
        "other": {"script": "function other() {}", "timeout": "5s"},
    }


def test_a_script_file_starts_from_the_document_that_names_it() -> None:
    files = {
        "d.yaml": defaults(action="scriptFile: greet.js"),
        "greet.js": "return (",
        "b/a.yaml": GREET,
    }

    [found] = judge(read(files)).diagnostics

    assert (found.code, str(found.location)) == ("ACTION-SCRIPT", "tree/greet.js:1:1")


def test_variables_stand_in_defaults() -> None:
    value = VariableValue("acme", SourceLocation("reconciler.yaml", 3, 7))
    files = {"d.yaml": defaults('"${org} "'), "a.yaml": SHOP.format("a")}

    [found] = [
        each
        for each in judge(read(files, layers=Layers("x", {"org": value}))).diagnostics
        if each.is_error
    ]

    assert found.location == SourceLocation("tree/d.yaml", 3, 26, "org from reconciler.yaml:3:7")


def test_a_part_of_the_tree_takes_the_defaults_of_the_folders_around_it() -> None:
    files = {
        "d.yaml": defaults(),
        "broken.yaml": "a: [",
        "a/d.yaml": defaults(application="devMode: true"),
        "a/b/c.yaml": SHOP.format("c"),
    }
    configured = Layers(root="tree")

    for path in ("tree/a/b", "tree/a/b/c.yaml"):
        loaded = read(files, path, layers=configured)
        assert loaded.diagnostics == ()
        assert [m.organization for m in loaded.manifests] == ["acme"]
        assert specs(loaded) == {"c": {"devMode": True}}
        assert not loaded.whole
    assert [m.organization for m in read(files, "tree/a/b").manifests] == ["acme"]
    both = read(files, "tree/a/d.yaml", "tree/a/b", layers=configured)
    assert codes(both.diagnostics) == []


@pytest.mark.parametrize("root", ["", "tree"])
def test_a_script_of_defaults_above_a_part_stays_beneath_the_whole(root: str) -> None:
    files = {
        "d.yaml": defaults(),
        "a/d.yaml": defaults(action="scriptFile: ../js/greet.js"),
        "a/b/greet.yaml": GREET,
        "js/greet.js": "function greet() {}",
    }

    for path in ("tree", "tree/a/b"):
        loaded = read(files, path, layers=Layers(root=root))
        assert codes(loaded.diagnostics) == []
        assert specs(loaded) == {"greet": {"script": "function greet() {}"}}


def test_other_yaml_above_the_paths_is_not_judged() -> None:
    """Nothing is known about it, and it can be that of any program."""
    write_tree(
        Path(),
        {
            "compose.yaml": "a: &a !x 'reconciler Defaults \\d'\n",
            "large.yaml": "# reconciler/v1 Defaults\n" * 50_000,
            ".ci.yaml": "reconciler/v1: !reference [Defaults, a]\n",
        },
    )

    assert codes(read({"a.yaml": SHOP.format("a")}).diagnostics) == []


@pytest.mark.parametrize("comment", ["not Defaults", "C:\\ids"])
def test_manifests_above_the_paths_are_not_judged(comment: str) -> None:
    """Those beside the word or an escape, which could spell it, are read: they hold no Defaults."""
    write_tree(Path(), {"template.yaml": f"# {comment}\n{SHOP.format(QUOTED)}"})

    assert codes(read({"a.yaml": SHOP.format("a")}).diagnostics) == []


def test_defaults_above_the_paths_in_another_encoding_are_told() -> None:
    """Left out in silence, they would change what the manifests mean."""
    write_tree(Path(), {"d.yaml": defaults().encode("utf-16")})

    assert codes(read({"a.yaml": SHOP.format("a")}).diagnostics) == ["YAML-ENCODING"]


def test_a_shard_goes_by_the_organization_that_is_filled_in() -> None:
    write_tree(Path("tree"), {"d.yaml": defaults(), "a.yaml": SHOP.format("a")})
    own = shard_of("acme", 4)

    assert len(load(["tree"], Shard(own, 4)).manifests) == 1
    assert load(["tree"], Shard(own % 4 + 1, 4)).manifests == ()


def test_what_defaults_put_in_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """One large list for each of many small manifests."""
    monkeypatch.setattr(loader, "Growth", lambda: Growth(100_000))
    uris = ", ".join(f"https://{number}.example.com" for number in range(200))
    many = "---\n".join(SHOP.format(f"n{number}") for number in range(50))

    loaded = read({"d.yaml": defaults(application=f"redirectUris: [{uris}]"), "a.yaml": many})

    assert codes(loaded.diagnostics) == ["VARIABLE-SIZE"]


def test_broken_defaults_fill_in_nothing() -> None:
    text = (
        "apiVersion: reconciler/v1\nkind: Defaults\nmetadata: [a]\nspec: {Action: 1, Project: x}\n"
    )

    found = judge(read({"d.yaml": text, "a.yaml": SHOP.format("a")})).diagnostics

    assert {str(each.location) for each in found} >= {"tree/d.yaml:3:11", "tree/d.yaml:4:16"}
