"""Reading of ``reconciler.yaml``: values with their places, or findings to the column."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.configuration.model import VariableType
from reconciler.configuration.reading import read_configuration
from tests.unit.configuration.configurations import configuration_of, reading_of, told

WHOLE = """\
manifests: iam
tree: acme
variables:
  shopHost: {type: string, description: Host of the shop, pattern: "^[a-z.]+$"}
  previews: {type: list, default: []}
environments:
  staging:
    service: https://id.staging.example.com
    overlay: environments/staging
    variables: {shopHost: staging.shop.example.com}
  production:
    service: https://id.example.com
    tree: live
    protected: true
    variables: {shopHost: shop.example.com}
    allowPartial: false
"""


def test_every_field_is_read_with_its_place(tmp_path: Path) -> None:
    """Findings and comparisons name the line of a value."""
    read = configuration_of(tmp_path, WHOLE)
    staging, production = read.environments.values()
    host, previews = read.variables.values()

    assert (read.manifests, read.tree, read.repository) == ("iam", "acme", tmp_path)
    assert (host.type, host.pattern, host.default) == (VariableType.STRING, "^[a-z.]+$", None)
    assert host.location[1:3] == (6, 3)
    assert previews.default is not None
    assert (previews.default.value, previews.default.origin[1:3]) == ([], (7, 35))
    assert (staging.tree, staging.protected, staging.overlay) == (
        "acme", False, "environments/staging",
    )  # fmt: skip
    assert (production.tree, production.protected, production.overlay) == ("live", True, "")
    assert (staging.allow_partial, production.allow_partial) == (True, False)
    assert production.place("allowPartial")[1:3] == (18, 19)
    assert staging.variables["shopHost"].value == "staging.shop.example.com"
    assert staging.variables["shopHost"].origin[1:3] == (12, 27)
    assert production.place("service")[1:3] == (14, 14)
    assert production.place("overlay") == production.location
    assert production.location[1:3] == (13, 3)


def test_a_file_with_the_kind_alone_configures_the_usual(tmp_path: Path) -> None:
    """Every field has a default."""
    read = configuration_of(tmp_path, "")

    assert (read.manifests, read.tree, read.variables, read.environments) == (
        "manifests", "", {}, {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("tre: acme\n", ("SCHEMA-UNKNOWN-FIELD", 3, 1)),
        ("tree: 7\n", ("SCHEMA-TYPE", 3, 7)),
        ("tree: ''\n", ("SCHEMA-EMPTY", 3, 7)),
        (f"tree: {'a' * 1001}\n", ("SCHEMA-TOO-LONG", 3, 7)),
        (f"tree: {'a' * 201}\n", ("SCHEMA-TOO-LONG", 3, 7)),  # longer than a service keeps
        ('tree: "a\\0b"\n', ("SCHEMA-NUL", 3, 7)),
        (
            f"environments: {{{', '.join(f'e{n}: {{}}' for n in range(101))}}}\n",
            ("SCHEMA-TOO-LONG", 3, 15),
        ),
        ("variables: {x: {}}\n", ("SCHEMA-MISSING-FIELD", 3, 13)),
        ("variables: {x: {type: text}}\n", ("SCHEMA-VALUE", 3, 23)),
        ("variables: {x-y: {type: string}}\n", ("CONFIG-NAME", 3, 13)),
        ("environments: {Prod: {}}\n", ("CONFIG-NAME", 3, 16)),
        ("environments: {a: {proxy: x}}\n", ("SCHEMA-UNKNOWN-FIELD", 3, 20)),
        ("environments: {a: {protected: yes}}\n", ("SCHEMA-TYPE", 3, 31)),
        ("environments: {a: {variables: {x: {y: z}}}}\n", ("SCHEMA-TYPE", 3, 35)),
        ("variables: {x: {type: list, default: [[a]]}}\n", ("SCHEMA-TYPE", 3, 39)),
        ("a: &a b\n", ("YAML-ANCHOR", 3, 4)),
        ("---\n{}\n", ("CONFIG-SHAPE", 0, 0)),
    ],
)
def test_what_does_not_fit_the_schema_is_found_at_its_place(
    tmp_path: Path, text: str, finding: tuple[str, int, int]
) -> None:
    """All findings of one reading come together."""
    reading = reading_of(tmp_path, text)

    assert reading.configuration is None
    assert told(reading) == [finding]


def test_a_name_that_was_probably_meant_is_told(tmp_path: Path) -> None:
    """Findings say what to write instead."""
    unknown, wrong = reading_of(
        tmp_path, "enviroments: {}\nvariables: {Ünder: {type: string}}\n"
    ).findings

    assert (unknown.summary, unknown.remedy) == (
        "unknown field enviroments", "Did you mean environments?",
    )  # fmt: skip
    assert (wrong.summary, wrong.remedy) == (
        "Ünder cannot name a variable",
        "Write a letter, then at most 63 letters, digits and underscores.",
    )


def test_a_wrong_value_has_the_words_that_it_has_in_a_manifest(tmp_path: Path) -> None:
    """A field of the wrong part is sent to its own, and a value may be of one type of several."""
    too_many = ", ".join(f"v{number}: a" for number in range(101))
    found = reading_of(
        tmp_path,
        f"environments:\n  a: {{manifests: x}}\n  b: {{variables: {{{too_many}}}}}\n"
        "  c: {variables: {v: {}}}\n  d: {token: x}\n",
    ).findings

    assert "RECONCILER_TOKEN or --token-file" in found[-1].remedy
    assert [(each.summary, each.remedy) for each in found[:-1]] == [
        ("unknown field manifests", "Move manifests to the top of the document."),
        ("variables has 101 entries", "Keep at most 100."),
        (
            "v is a mapping, not a text, a number, true or false or a list",
            "Write a text, a number, true or false or a list.",
        ),
    ]
    outside = tmp_path / "empty.yaml"
    outside.write_text("kind: Configuration\n", encoding="utf-8")
    (missing,) = read_configuration(str(outside)).findings
    assert missing.summary == "the configuration has no apiVersion"


def test_a_file_that_cannot_be_opened_safely_is_not_read(tmp_path: Path) -> None:
    """No link is followed, and no pipe is waited for."""
    outside = tmp_path / "outside"
    outside.write_text("tree: x\n", encoding="utf-8")
    linked = tmp_path / "reconciler.yaml"
    linked.symlink_to(outside)

    assert told(read_configuration(str(linked))) == [("FILE-SYMLINK", 0, 0)]
    assert told(read_configuration(str(tmp_path / "none.yaml"))) == [("FILE-MISSING", 0, 0)]
    outside.write_bytes(b"\xff\xfe")
    assert told(read_configuration(str(outside))) == [("YAML-ENCODING", 1, 1)]
    outside.write_text("kind: Configuration\n", encoding="utf-8")
    assert told(read_configuration(str(outside))) == [("SCHEMA-MISSING-FIELD", 1, 1)]
