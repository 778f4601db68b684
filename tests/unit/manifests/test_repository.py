"""Which manifests of a repository declare objects, beside those that a run read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.manifests import repository as module
from reconciler.manifests.discovery import MAX_FILE
from reconciler.manifests.placeholders import Token, tokens
from reconciler.manifests.repository import OtherTreeError, repository_of
from reconciler.resources.ref import Kind
from reconciler.state import Elsewhere
from tests.builders import GREET, SHOP, WEB, a_ref, held
from tests.unit.manifests.trees import write_tree

MANIFEST = (
    "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{organization: {org}, name: {name}}}\n"
)
GREETING = MANIFEST.format(kind="Action", org="ACME", name="Greet")
PINNED = GREETING.replace("name: Greet", "name: hello, id: '7'")
DEFAULTS = "apiVersion: reconciler/v1\nkind: Defaults\nmetadata: {organization: ACME}\n"
OWNED = GREETING.replace("organization: ACME, ", "")
DOOMED = [held(GREET, object_id="7"), held(WEB, object_id="8"), held(SHOP, object_id="9")]


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tree(tmp_path, {"above.yaml": GREETING, "r/.git/HEAD": "", "r/m/org.yaml": ""})
    monkeypatch.chdir(tmp_path / "r")
    return tmp_path / "r"


def look(*other_trees: str, paths: tuple[str, ...] = ("m",)) -> Elsewhere:
    found = repository_of(paths)
    return found.look([found.other_tree(path) for path in other_trees], DOOMED)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, []),
        ({"m/greet.yaml": GREETING}, []),
        ({"n/greet.yaml": GREETING}, ["7"]),
        ({"greet.yml": GREETING}, ["7"]),
        ({"n/greet.json": GREETING}, []),
        ({".hidden/.greet.yaml": GREETING}, ["7"]),
        ({"n/.git/greet.yaml": GREETING}, []),
        ({"n/a.yaml": f"a: 1\n---\n{GREETING}---\nb: 2\n"}, ["7"]),
        ({"n/a.yaml": PINNED}, ["7"]),
        ({"n/a.yaml": GREETING.replace("v1", "v2")}, ["7"]),
        ({"n/a.yaml": GREETING.replace("reconciler/v1", "example/v1")}, []),
        ({"n/a.yaml": GREETING.replace("Action", "IdpJwtConfig")}, []),
        ({"n/a.yaml": GREETING.replace("ACME", "globex")}, []),
        ({"n/a.yaml": GREETING.replace("Greet", "[Greet]")}, []),
        ({"n/a.yaml": "[reconciler/v1]\n"}, []),
        ({"n/a.yaml": "\ufeff" + GREETING}, ["7"]),
        ({"n/a.yaml": GREETING.replace("Action", "Project").replace("Greet", "shop")}, ["9"]),
        ({"d.yaml": DEFAULTS, "n/a.yaml": OWNED}, ["7"]),
        ({"n/z.yaml": DEFAULTS, "n/a.yaml": OWNED}, ["7"]),
        ({"d.yaml": DEFAULTS, "n/z.yaml": DEFAULTS.replace("ACME", "x"), "n/a.yaml": OWNED}, []),
        ({"n/d.yaml": DEFAULTS, "o/a.yaml": OWNED}, []),
        ({"n/a.yaml": GREETING.replace("ACME", "'${who}'")}, ["7"]),
        ({"n/a.yaml": GREETING.replace("Greet", "'gr${rest}'")}, ["7"]),
        ({"n/a.yaml": GREETING.replace("Greet", "'${rest}!'")}, []),
        ({"n/a.yaml": GREETING.replace("Greet", "'$${rest}'")}, []),
        ({"n/a.yaml": PINNED.replace("'7'", "'${id}'")}, ["7", "8", "9"]),
    ],
)
def test_every_yaml_file_of_the_repository_is_read(
    files: dict[str, str], found: list[str], repository: Path
) -> None:
    """Hidden ones, too; but for what the run read itself and what is Git's."""
    write_tree(repository, files)

    elsewhere = look()

    assert (sorted(elsewhere.declared), elsewhere.unreadable) == (found, ())
    assert elsewhere.is_whole


def test_a_declaration_has_its_place(repository: Path) -> None:
    write_tree(repository, {"n/deep/a.yaml": "a: 1\n---\n" + GREETING})

    assert str(look().declared["7"]) == "n/deep/a.yaml:5:38"
    assert look("n").declared == {}
    assert look("n/deep/").declared == {}
    assert look("n/deep/a.yaml").declared == {}
    assert look(paths=("m", "n")).declared == {}
    assert look(paths=("n/deep/a.yaml",)).declared == {}


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ("a: &x 1\n", False),
        (f"# &x\n{GREETING}a: &x 1\n", True),
        ("a: {{ x }}\n# reconciler/v\n", True),
        ("a: 1\na: 2\n", False),
        ("x" * MAX_FILE + "\n", False),
        ("x" * MAX_FILE * 2 + "\n" + GREETING, True),
        ("x" * (MAX_FILE - 5) + "reconciler/v1" + "x" * MAX_FILE, True),
    ],
)
def test_what_cannot_be_read_counts_only_if_it_may_be_a_manifest(
    content: str, repository: Path, *, blocks: bool
) -> None:
    write_tree(repository, {"n/a.yaml": content})

    unreadable = look().unreadable

    assert [place.file for place, _ in unreadable] == (["n/a.yaml"] if blocks else [])
    assert look("n").unreadable == ()


def test_links_are_not_followed(repository: Path) -> None:
    """What they lead to is read where it is, or is not of this repository."""
    (repository / "n").mkdir()
    (repository / "n" / "a.yaml").symlink_to("../../above.yaml")
    (repository / "o").symlink_to("..")
    os.mkfifo(repository / "n" / "b.yaml")

    assert look() == Elsewhere(is_whole=True)


def test_without_git_the_common_folder_stands_for_the_repository(tmp_path: Path) -> None:
    write_tree(tmp_path, {"x/m/a.yaml": "", "x/n/b.yaml": "", "x/o/c.yaml": GREETING})
    many = repository_of([str(tmp_path / "x/m"), str(tmp_path / "x/n/b.yaml")])
    one = repository_of([str(tmp_path / "x/m")])

    assert list(many.look((), DOOMED).declared) == ["7"]
    assert not many.look((), DOOMED).is_whole
    assert one.look((), DOOMED) == Elsewhere()
    assert many.other_tree(str(tmp_path / "x/o")) == "o"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere", "does not exist"),
        ("..", "is not in the repository"),
        ("../above.yaml", "is not in the repository"),
        (".", "overlaps"),
        ("m", "overlaps"),
        ("m/org.yaml", "overlaps"),
    ],
)
def test_a_folder_that_cannot_be_another_tree_is_refused(path: str, problem: str) -> None:
    with pytest.raises(OtherTreeError, match=problem):
        look(path)


def test_a_folder_is_named_in_the_same_way_from_everywhere(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(repository, {"n/deep/a.yaml": GREETING})
    here = repository_of(["m"]).other_tree("n/deep")
    monkeypatch.chdir(repository / "n")
    there = repository_of(["../m"]).other_tree("./deep/")

    assert here == there == "n/deep"


@pytest.mark.parametrize(
    ("document", "found"), [(GREETING, ["7"]), (GREETING.replace("}", ", absent: true}"), [])]
)
def test_a_folder_that_was_read_in_part_is_searched(document: str, found: list[str]) -> None:
    """What an overlay adds is declared, and what it takes out is not."""
    write_tree(Path(), {"over/a.yaml": document, "other/a.yaml": GREETING})
    repository = repository_of(["m", "over", "other"])

    assert list(repository.look([], DOOMED).declared) == []
    assert list(repository.searching("over").look([], DOOMED).declared) == found


def test_a_document_is_not_compared_with_every_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 deletes beside as many documents with a variable in a name took a minute."""
    looked: list[str] = []

    def counted(text: str) -> Iterator[Token]:
        looked.append(text)
        return tokens(text)

    monkeypatch.setattr(module, "tokens", counted)
    text = GREETING.replace("ACME", "'${who}'")
    names = [f"'${{x}}-{at}'" if at % 2 else f"greet-{at}" for at in range(20)]
    write_tree(Path("n"), {"a.yaml": "---\n".join(text.replace("Greet", name) for name in names)})
    doomed = [held(a_ref(Kind.ACTION, f"greet-{at}"), object_id=f"{at}") for at in range(20)]

    found = repository_of(("m",)).look([], doomed)

    assert sorted(map(int, found.declared)) == list(range(20))
    assert len(looked) <= len(names)
