"""Rules of ``reconciler.yaml`` that no schema states: addresses, folders, values, twins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.configuration.model import Configuration, Environment
from reconciler.configuration.reading import read_configuration
from reconciler.configuration.semantics import differences
from reconciler.diagnostics import SourceLocation
from tests.rows import each_row
from tests.unit.configuration.configurations import configuration_of, reading_of, told


@pytest.mark.parametrize(
    "service",
    [
        "https://id.example.com",
        "https://id.example.com:8443/prefix/v2/",
        "http://127.0.0.1:8080",
        "http://localhost",
        "sqlite:stores/a.db",
    ],
)
def test_a_service_that_a_file_may_name(tmp_path: Path, service: str) -> None:
    """Encrypted, on this machine, or a file of the repository."""
    read = configuration_of(tmp_path, f"environments: {{a: {{service: '{service}'}}}}\n")

    assert read.environments["a"].service == service


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ("postgresql://db/identity", "CONFIG-SERVICE"),
        ("http://id.example.com", "CONFIG-SERVICE"),
        ("http://127.0.0.1.example.com", "CONFIG-SERVICE"),
        ("https://user:secret@id.example.com", "CONFIG-SERVICE"),
        ("https://id.example.com?x=1", "CONFIG-SERVICE"),
        ("https://id.example.com/a/../b", "CONFIG-SERVICE"),
        ("https://ID.example.com", "CONFIG-SERVICE"),
        ("https://", "CONFIG-SERVICE"),
        ("file:secrets", "CONFIG-SERVICE"),
        ("${host}", "CONFIG-SERVICE"),
        ("sqlite:~/identity.db", "CONFIG-SERVICE"),
        ("sqlite:~ana/identity.db", "CONFIG-SERVICE"),
        ("sqlite:./~/identity.db", ""),
        ("sqlite:", "CONFIG-OUTSIDE"),
        ("sqlite:../other.db", "CONFIG-OUTSIDE"),
        ("sqlite:/var/identity.db", "CONFIG-OUTSIDE"),
        ("sqlite:.git/config", "CONFIG-OUTSIDE"),
        ("sqlite:linked/identity.db", "CONFIG-OUTSIDE"),
        ("sqlite:linked/../a.db", ""),
    ],
)
def test_a_service_that_a_file_may_not_name(tmp_path: Path, service: str, code: str) -> None:
    """A pull request would direct a credential, or a write, with it."""
    (tmp_path / "linked").symlink_to(tmp_path.parent)

    reading = reading_of(tmp_path, f"environments: {{a: {{service: '{service}'}}}}\n")

    assert told(reading) == ([(code, 3, 29)] if code else [])


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("manifests: ../other\n", [("CONFIG-OUTSIDE", 3, 12)]),
        ("manifests: /etc\n", [("CONFIG-OUTSIDE", 3, 12)]),
        ("environments: {a: {overlay: ../x}}\n", [("CONFIG-OUTSIDE", 3, 29)]),
        ("environments: {a: {overlay: linked/x}}\n", [("CONFIG-OUTSIDE", 3, 29)]),
        ("environments: {a: {overlay: manifests/a}}\n", [("CONFIG-OVERLAY", 3, 29)]),
        ("environments: {a: {overlay: .}}\n", [("CONFIG-OVERLAY", 3, 29)]),
        ("manifests: .\nenvironments: {a: {overlay: a}}\n", [("CONFIG-OVERLAY", 4, 29)]),
        ("environments: {a: {overlay: manifests-a}}\n", []),
        ("environments: {a: {overlay: o}, b: {overlay: ./o}, c: {overlay: oo}}\n", []),
        (
            "environments: {a: {overlay: o}, b: {overlay: o/b}}\n",
            [("CONFIG-OVERLAY", 3, 46)],
        ),
        (
            "environments: {a: {overlay: x/../o/a/}, b: {overlay: o}}\n",
            [("CONFIG-OVERLAY", 3, 54)],
        ),
    ],
)
def test_folders_stay_in_the_repository_and_apart(
    tmp_path: Path, text: str, findings: list[tuple[str, int, int]]
) -> None:
    """Nothing outside is read because a file in the repository says so."""
    (tmp_path / "linked").symlink_to(tmp_path.parent)

    assert told(reading_of(tmp_path, text)) == findings


@pytest.mark.parametrize(
    "link",
    [".reconciler", ".reconciler/b", ".reconciler/b/identity.db", ".reconciler/b/secrets"],
)
def test_the_state_of_an_environment_stays_in_the_repository(tmp_path: Path, link: str) -> None:
    """A committed link would direct the store, the journals and the secrets."""
    repository = tmp_path / "repository"
    (repository / link).parent.mkdir(parents=True)
    (repository / link).symlink_to(tmp_path)
    text = "environments:\n  b: {service: 'https://i.example'}\n"

    reading = reading_of(repository, text)

    assert told(reading) == [("CONFIG-OUTSIDE", 4, 3)]
    assert reading.findings[0].summary == ".reconciler/b leads out of the repository"


def test_what_is_checked_is_what_is_read_through_a_linked_folder(tmp_path: Path) -> None:
    """Not what lies beside the link."""
    inner = tmp_path / "team" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    reading_of(inner, "manifests: ../shared\n")
    (tmp_path / "link").symlink_to(inner)

    configuration, _ = read_configuration(str(tmp_path / "link" / "reconciler.yaml"))

    assert configuration
    assert configuration.path("../shared") == str(tmp_path / "team" / "shared")


def test_the_git_root_is_the_repository(tmp_path: Path) -> None:
    """A file in a folder of it may name what lies beside that folder."""
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    inner = tmp_path / "team"
    inner.mkdir()

    assert told(reading_of(inner, "manifests: ../shared\n")) == []
    assert told(reading_of(inner, "manifests: ../../shared\n")) == [("CONFIG-OUTSIDE", 3, 12)]


@pytest.mark.parametrize(
    ("environments", "is_twin"),
    [
        ("{a: {service: 'https://i.example'}, b: {service: 'https://i.example/'}}", True),
        ("{a: {service: 'sqlite:a.db'}, b: {service: 'sqlite:x/../a.db', tree: default}}", True),
        ("{a: {}, b: {service: 'sqlite:.reconciler/a/identity.db'}}", True),
        ("{a: {service: 'https://i.example'}, b: {service: 'https://i.example', tree: b}}", False),
        ("{a: {service: 'http://localhost:8'}, b: {service: 'http://127.0.0.1:8'}}", True),
        ("{a: {service: 'http://[::1]/x'}, b: {service: 'http://127.0.0.2/x'}}", True),
        ("{a: {service: 'http://localhost:8'}, b: {service: 'http://127.0.0.1:9'}}", False),
        ("{a: {}, b: {}}", False),
    ],
)
def test_two_environments_have_no_tree_in_common(
    tmp_path: Path, environments: str, *, is_twin: bool
) -> None:
    """They would prune each other."""
    findings = reading_of(tmp_path, f"environments: {environments}\n").findings

    assert [finding.code for finding in findings] == (["CONFIG-TWINS"] if is_twin else [])


@pytest.mark.parametrize(
    ("environments", "place", "said", "remedy"),
    [
        ("{a: {}, b: {after: a}, c: {after: a}, d: {after: c}}", 0, "", ""),
        (
            "{staging: {}, b: {after: stagin}}", 40, "no environment stagin to come after",
            "Did you mean staging?",
        ),
        ("{first: {}, b: {after: b2}}", 38, "no environment b2", "Write one of first, b."),
        ("{a: {after: a}}", 27, "a comes after itself: a after a", "Take one after out"),
        ("{a: {after: c}, b: {after: a}, c: {after: b}, d: {after: a}}", 27,
         "a comes after itself: a after c after b after a", "Take one after out"),
    ],
)  # fmt: skip
def test_environments_come_after_others(
    tmp_path: Path, environments: str, place: int, said: str, remedy: str
) -> None:
    """One finding for a circle, at the first of its environments."""
    reading = reading_of(tmp_path, f"environments: {environments}\n")

    assert told(reading) == ([("CONFIG-AFTER", 3, place)] if said else [])
    assert all(said in finding.summary for finding in reading.findings)
    assert all(remedy in finding.remedy for finding in reading.findings)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("{x: {type: string, pattern: '('}}", [("CONFIG-PATTERN", 3, 13)]),
        ("{x: {type: string, pattern: '^(?=a)'}}", [("CONFIG-PATTERN", 3, 13)]),
        ("{x: {type: string, default: 1}}", [("CONFIG-VALUE", 3, 40)]),
        ("{x: {type: string, pattern: '^a+$', default: b}}", [("CONFIG-VALUE", 3, 57)]),
        ("{x: {type: list, pattern: '^a+$', default: [a, b]}}", [("CONFIG-VALUE", 3, 55)]),
        ("{x: {type: string, default: '${y}'}}", [("CONFIG-NESTED", 3, 40)]),
        ("{x: {type: list, default: [a, '$${y}']}}", [("CONFIG-NESTED", 3, 38)]),
        ("{x: {type: number, default: 1.5}, y: {type: boolean, default: no}}",
         [("CONFIG-VALUE", 3, 74)]),
        ("{x: {type: boolean, default: true}, y: {type: list, default: [1, a, true]}}", []),
    ],
)  # fmt: skip
def test_values_are_of_the_declared_type_and_pattern(
    tmp_path: Path, text: str, findings: list[tuple[str, int, int]]
) -> None:
    """Before any manifest uses them."""
    assert told(reading_of(tmp_path, f"variables: {text}\n")) == findings


def test_a_value_for_a_variable_that_is_not_declared(tmp_path: Path) -> None:
    """The nearest name is told; capital and small letters differ."""
    text = "variables: {shopHost: {type: string}}\nenvironments: {a: {variables: {shophost: b}}}\n"

    (finding,) = reading_of(tmp_path, text).findings

    assert (finding.code, finding.location and finding.location[1:3]) == (
        "CONFIG-UNDECLARED", (4, 42),
    )  # fmt: skip
    assert finding.remedy.startswith("Did you mean shopHost? ")


HERE = SourceLocation("reconciler.yaml", 3, 5)
SERVICE = SourceLocation("reconciler.yaml", 4, 14)


def of(**environments: dict[str, Any]) -> Configuration:
    return Configuration(
        "reconciler.yaml",
        Path(),
        Path(),
        environments={
            name: Environment(name, HERE, places={"service": SERVICE}, **fields)
            for name, fields in environments.items()
        },
    )


LIVE = {"service": "https://id.example.com", "protected": True}


@each_row(
    ("fields", "found"),
    [
        (LIVE, []),
        ({**LIVE, "overlay": "environments/live", "variables": {}}, []),
        ({**LIVE, "tree": "default"}, []),
        (
            {**LIVE, "service": "https://evil.test"},
            [("service", "https://id.example.com", "https://evil.test", SERVICE)],
        ),
        ({"protected": True}, [("service", LIVE["service"], "a store of its own", SERVICE)]),
        ({**LIVE, "tree": "other"}, [("tree", "default", "other", HERE)]),
        ({**LIVE, "protected": False}, [("protected", "true", "false", HERE)]),
        ({**LIVE, "allow_partial": False}, [("allowPartial", "true", "false", HERE)]),
    ],
)
def test_service_tree_and_protection_decide(fields: dict[str, Any], found: list[Any]) -> None:
    told = differences(of(live=LIVE), of(live=fields))

    assert [each[1:] for each in told] == found


@each_row(
    ("trusted", "proposed", "found"),
    [
        ("", "", []),
        ("", "default", []),
        ("shop", "team-b", [("", "tree", "shop", "team-b", HERE)]),
        ("shop", "", [("", "tree", "shop", "default", SourceLocation("reconciler.yaml"))]),
    ],
)
def test_without_environments_the_tree_of_the_file_decides(
    trusted: str, proposed: str, found: list[Any]
) -> None:
    """It says whose objects a plan may delete."""
    places = {"tree": HERE} if proposed else {}

    told = differences(replace(of(), tree=trusted), replace(of(), tree=proposed, places=places))

    assert [*told] == found


def test_an_environment_that_is_new_or_gone_is_a_difference() -> None:
    """A new one could have the service of another, and a tree of its own to delete in."""
    told = list(differences(of(a={}, live=LIVE), of(live=LIVE, b={})))

    assert [(each.environment, each.name, each.proposed) for each in told] == [
        ("b", "", "there"),
        ("a", "", "missing"),
    ]
    assert [each.place for each in told] == [HERE, SourceLocation("reconciler.yaml")]
