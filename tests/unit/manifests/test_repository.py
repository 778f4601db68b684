"""Which manifests of a repository declare objects, beside those that a run read."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from reconciler.manifests import repository as module
from reconciler.manifests.discovery import MAX_FILE
from reconciler.manifests.repository import OtherTreeError, repository_of
from reconciler.resources.ref import Kind
from reconciler.state import Elsewhere
from tests.builders import GREET, SHOP, WEB, a_ref, held
from tests.unit.manifests.trees import write_tree

MANIFEST = (
    "apiVersion: reconciler/v1\nkind: {kind}\nmetadata: {{organization: {org}, name: {name}}}\n"
)
GREETING = MANIFEST.format(kind="Action", org="ACME", name="Greet")
JSON_GREETING = (
    '{"apiVersion": "reconciler/v1", "kind": "Action", "metadata": '
    '{"organization": "acme", "name": "greet"}}'
)
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
        ({"n/greet.json": GREETING}, ["7"]),
        ({"n/greet.json": JSON_GREETING}, ["7"]),
        ({"n/greet.json": JSON_GREETING.replace("/", "\\/")}, ["7"]),
        ({"n/data.json": '[{"apiVersion": "reconciler/v1"}]'}, []),
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


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"m/.greet.yaml": GREETING}, ["7"]),
        ({"m/.n/greet.yaml": GREETING}, ["7"]),
        ({"m/n/.o/p/greet.txt": GREETING}, ["7"]),
        ({"m/greet": GREETING}, ["7"]),
        ({"m/greet.YML": GREETING}, ["7"]),
        ({"m/.n/.git/greet.yaml": GREETING}, []),
        ({"m/.n/greet.txt": GREETING.replace("reconciler/v1", "example/v1")}, []),
        ({"m/greet": GREETING.replace("reconciler/v1", '"reconciler\\x2fv1"')}, ["7"]),
        ({"m/d.yaml": DEFAULTS, "m/n/.o/greet.yaml": OWNED}, ["7"]),
        ({"m/n/d.yaml": DEFAULTS, "m/.o/greet.yaml": OWNED}, []),
        ({"m/.d.yaml": DEFAULTS, "m/.greet.yaml": OWNED}, ["7"]),
        ({"n/greet.YAML": GREETING}, ["7"]),
        ({"n/greet.yaml.bak": GREETING}, ["7"]),
        ({"n/greet": GREETING}, []),
    ],
)
def test_what_the_run_passed_over_is_searched(
    files: dict[str, str], found: list[str], repository: Path
) -> None:
    """Beneath the PATHS whatever its name, since nothing there is meant for somebody else."""
    write_tree(repository, files)

    assert (sorted(look().declared), look().unreadable) == (found, ())
    assert sorted(look(paths=("m", "n", *files)).declared) == []


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (" " * MAX_FILE + JSON_GREETING, True),
        (" " * MAX_FILE + JSON_GREETING.replace("reconciler/v1", "example/v1"), False),
    ],
)
def test_large_json_is_searched_because_the_run_passes_over_it(
    content: str, repository: Path, *, blocks: bool
) -> None:
    """Other files of this size are an error of the run itself."""
    write_tree(repository, {"m/a.json": content})

    assert [place.file for place, _ in look().unreadable] == (["m/a.json"] if blocks else [])


@pytest.mark.parametrize(("name", "blocks"), [("n/a.yaml", True), ("n/a.json", False)])
def test_what_is_too_large_to_be_searched_blocks_but_for_data(
    name: str, repository: Path, *, blocks: bool
) -> None:
    write_tree(repository, {name: ""})
    with (repository / name).open("r+b") as large:
        large.truncate(1 << 40)

    assert [place.file for place, _ in look().unreadable] == ([name] if blocks else [])


def test_what_is_passed_over_can_be_of_another_tree(repository: Path) -> None:
    write_tree(repository, {"m/.n/a.yaml": GREETING, "m/b": GREETING, "m/c.yaml": GREETING})

    assert str(look().declared["7"]).startswith("m/b:")
    assert str(look("m/b").declared["7"]).startswith("m/.n/a.yaml:")
    assert look("m/b", "m/.n").declared == {}
    with pytest.raises(OtherTreeError, match="overlaps"):
        look("m/.n", paths=("m", "m/.n/a.yaml"))


def test_other_environments_are_not_searched(repository: Path) -> None:
    """Their manifests are of other services, hidden ones too; the own overlay was read."""
    write_tree(repository, {"over/.a.yaml": GREETING, "m/over/a.yaml": GREETING})
    others = ["over", "m/over"]

    assert repository_of(["m"], others).look([], DOOMED).declared == {}
    (place,) = repository_of(["m", "over"], others).look([], DOOMED).declared.values()
    assert place.file == "over/.a.yaml"
    (place,) = (
        repository_of(["m"], others[:1]).searching("m/over").look([], DOOMED).declared.values()
    )
    assert place.file == "m/over/a.yaml"


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
        (GREETING.encode("utf-16"), True),
        (GREETING.encode("utf-16-be"), True),
        (GREETING.encode("utf-32"), True),
        (GREETING.encode("utf-32-le"), True),
        ("é: 1\n".encode("utf-16"), False),
        (b"\xff\xfe" + b"\0" * 100, False),
        (("x" * (MAX_FILE // 4 - 3) + GREETING + "x" * MAX_FILE).encode("utf-32-be"), True),
    ],
)
def test_what_cannot_be_read_counts_only_if_it_may_be_a_manifest(
    content: str | bytes, repository: Path, *, blocks: bool
) -> None:
    write_tree(repository, {"n/a.yaml": content, "m/README.md": "# reconciler/v1\n`a`: b\n"})

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

    def counted(token: re.Match[str]) -> str:
        looked.append(token[0])
        return star(token)

    star = module._star
    monkeypatch.setattr(module, "_star", counted)
    text = GREETING.replace("ACME", "'${who}'")
    names = [f"'${{x}}-{at}'" if at % 2 else f"greet-{at}" for at in range(20)]
    write_tree(Path("n"), {"a.yaml": "---\n".join(text.replace("Greet", name) for name in names)})
    doomed = [held(a_ref(Kind.ACTION, f"greet-{at}"), object_id=f"{at}") for at in range(20)]

    found = repository_of(("m",)).look([], doomed)

    assert sorted(map(int, found.declared)) == list(range(20))
    assert len(looked) <= len(names)
