"""Values of variables: which source wins, and what a typed value stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.configuration.values import Given, values_in
from reconciler.diagnostics import SourceLocation
from reconciler.manifests.yaml_source import MAX_SCALAR
from tests.unit.configuration.configurations import configuration_of

TEXT = """\
variables:
  host: {type: string, pattern: "^[a-z.]+$", default: default.example}
  list: {type: list, default: []}
  flag: {type: boolean}
  many: {type: number}
  text: {type: string}
environments: {a: {variables: {host: a.example}}}
"""
OPTION, VARIABLE = SourceLocation("--var host"), SourceLocation("RECONCILER_VAR_host")


def test_the_last_source_wins(tmp_path: Path) -> None:
    """Default, environment, process environment, command line: in rising order."""
    read = configuration_of(tmp_path, TEXT)
    chosen = read.environments["a"]
    by_variable = Given("host", "v.example", VARIABLE)
    by_option = Given("host", "o.example", OPTION)

    def host(*given: Given, environment: bool = True) -> object:
        values, findings = values_in(read, chosen if environment else None, given)
        assert findings == []
        assert values["flag"] is None
        assert values["host"] is not None
        return values["host"].value, values["host"].origin.line, values["host"].origin.file[:6]

    assert host(environment=False) == ("default.example", 4, str(tmp_path)[:6])
    assert host() == ("a.example", 9, str(tmp_path)[:6])
    assert host(by_variable) == ("v.example", 0, "RECONC")
    assert host(by_variable, by_option) == ("o.example", 0, "--var ")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("host", "true", "true"),
        ("list", '["a", 1, true]', ["a", 1, True]),
        ("flag", "true", True),
        ("many", "-1.5e3", -1500.0),
        ("many", "7", 7),
    ],
)
def test_a_typed_value_is_json_unless_it_is_to_be_a_text(
    tmp_path: Path, name: str, text: str, value: Any
) -> None:
    """A text needs no quotes around it in a shell."""
    read = configuration_of(tmp_path, TEXT)

    values, findings = values_in(read, None, [Given(name, text, OPTION)])

    assert findings == []
    assert values[name] == (value, OPTION)


@pytest.mark.parametrize(
    ("name", "text", "code", "start"),
    [
        ("host", "A1", "CONFIG-VALUE", "host does not match its pattern"),
        ("host", "a${list}", "CONFIG-NESTED", "the value of host holds ${"),
        ("host", "a" * (MAX_SCALAR + 1), "CONFIG-VALUE", "the value of host is longer than"),
        ("list", "a", "CONFIG-VALUE", "list is not given as JSON"),
        ("list", '{"a": 1}', "CONFIG-VALUE", "list is declared as a list"),
        ("list", "[[1]]", "CONFIG-VALUE", "list is declared as a list"),
        ("list", "[" * 60_000, "CONFIG-VALUE", "list is not given as JSON"),
        ("flag", "1", "CONFIG-VALUE", "flag is declared as a boolean"),
        ("many", "NaN", "CONFIG-VALUE", "many is not given as JSON"),
        ("many", "1e999", "CONFIG-VALUE", "a number of many is too large"),
        ("list", "[1, -1e999]", "CONFIG-VALUE", "a number of list is too large"),
        ("list", r'["\ud800"]', "CONFIG-VALUE", "the value of list is not valid UTF-8"),
        ("text", "a\udcff", "CONFIG-VALUE", "the value of text is not valid UTF-8"),
        ("host", "a\udcff", "CONFIG-VALUE", "the value of host is not valid UTF-8"),
        ("many", "true", "CONFIG-VALUE", "many is declared as a number"),
        ("hots", "a", "CONFIG-UNDECLARED", "there is no variable hots"),
    ],
)
def test_a_value_that_cannot_be_used_is_found_where_it_was_given(
    tmp_path: Path, name: str, text: str, code: str, start: str
) -> None:
    """The finding names the option."""
    read = configuration_of(tmp_path, TEXT)

    _, (finding,) = values_in(read, None, [Given(name, text, OPTION)])

    assert (finding.code, finding.location) == (code, OPTION)
    assert finding.summary.startswith(start)
