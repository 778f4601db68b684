"""Scripts are compiled and never run (B12)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from reconciler.diagnostics import Severity, SourceLocation
from reconciler.manifests.loader import load
from reconciler.rules.form import CompileError
from reconciler.validation.desired import judge
from reconciler.validation.script import ScriptCompiler
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import ACTION, text_of, with_metadata, with_spec


@each_row("name", ["Infinity", "NaN", "undefined", "globalThis", "Object", "eval"])
def test_a_name_that_the_language_has_already_stops_nothing(name: str) -> None:
    """An action may be called anything; whether its script compiles is another question."""
    compiler = ScriptCompiler()

    assert compiler.compile("let a = 1;", name) is False
    assert isinstance(compiler.compile("let a = ;", name), CompileError)
    assert compiler.compile("function greet() {}", "greet") is True


@each_row(
    ("source", "defines"),
    [
        pytest.param("function greet() {}", True, id="a function"),
        pytest.param("async function greet() {}", True, id="an async function"),
        pytest.param("function* greet() {}", True, id="a generator"),
        pytest.param("const greet = (ctx, api) => {};", True, id="a constant"),
        pytest.param("let greet = function () {};", True, id="a variable of the new kind"),
        pytest.param("var greet = function () {};", True, id="a variable of the old kind"),
        pytest.param("class greet {}", True, id="a class"),
        pytest.param("function other() {} function greet() {}", True, id="the second function"),
        pytest.param("// é\r\nfunction greet() {}\r\n", True, id="line ends of Windows"),
        pytest.param("function greet() { return '</script>' }", True, id="the end of a script tag"),
        pytest.param("function greet() { return '\u2028' }", True, id="a line separator in a text"),
        pytest.param("function greet() { return a?.b ?? 1n ** 2n }", True, id="newer syntax"),
        pytest.param("let log = 1; function greet() {}", True, id="a name used again later"),
        pytest.param("'use strict'; function greet() {}", True, id="strict mode"),
        pytest.param("function other() {}", False, id="another function"),
        pytest.param("function Greet() {}", False, id="a function in another case"),
        pytest.param("// function greet() {}", False, id="a function in a comment"),
        pytest.param("const x = 'function greet() {}'", False, id="a function in a text"),
        pytest.param("{ let greet = 1 }", False, id="a variable in a block"),
        pytest.param("greet = () => {}", False, id="an assignment that has yet to run"),
        pytest.param("(function greet() {})", False, id="a function that is only a value"),
        pytest.param(";", False, id="nothing"),
    ],
)
def test_a_script_defines_the_function_of_its_name_or_not(source: str, *, defines: bool) -> None:
    compiler = ScriptCompiler()

    assert compiler.compile(source, "greet") is defines
    assert compiler.compile(source, "greet") is defines  # nothing of the first time is left


@each_row(
    ("source", "line", "column"),
    [
        pytest.param("function greet( {", 1, 18, id="in the first line"),
        pytest.param("function greet() {\n  return (\n}", 3, 1, id="in the third line"),
        pytest.param("a\n b c", 2, 4, id="two words"),
        pytest.param("x = '😀é' +;", 1, 11, id="after characters of several bytes"),
        pytest.param("let a; let a;", 1, 13, id="a name twice"),
        pytest.param("return 1", 1, 1, id="a return outside of a function"),
        pytest.param("await x", 1, 7, id="an await outside of a function"),
        pytest.param("import x from 'y'", 1, 8, id="an import"),
        pytest.param("break", 1, 6, id="a break outside of a loop"),
        pytest.param("/[/", 1, 1, id="a pattern that is none"),
        pytest.param("`${", 1, 4, id="an open template"),
        pytest.param("const x;", 1, 8, id="a constant without a value"),
        pytest.param("#!/usr/bin/node\n", 1, 1, id="a line for the shell"),
        pytest.param("}); evil(); (function(){", 1, 1, id="an end of a function that never began"),
    ],
)
def test_a_script_that_does_not_compile_says_where(source: str, line: int, column: int) -> None:
    verdict = ScriptCompiler().compile(source, "greet")

    assert isinstance(verdict, CompileError)
    assert (verdict.line, verdict.column) == (line, column)
    assert "at <input>" not in verdict.message


@each_row(
    "source",
    [
        pytest.param("while (true) {}", id="a loop without end"),
        pytest.param("throw 1", id="a throw"),
        pytest.param("const a = []; for (;;) a.push(new Array(1e6))", id="all the memory"),
        pytest.param("/(a+)+$/.test('a'.repeat(50) + '!')", id="a pattern without end"),
        pytest.param("globalThis.greet = 1; quit()", id="side effects"),
        pytest.param("class A { static { for (;;) {} } }", id="a static block"),
        pytest.param("var x = (() => { for (;;) {} })()", id="an initializer"),
    ],
)
def test_nothing_runs(source: str) -> None:
    before = time.process_time()

    assert ScriptCompiler().compile(source, "greet") is False
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize("character", "([{")
def test_deep_nesting_is_an_error_and_not_a_crash(character: str) -> None:
    assert isinstance(ScriptCompiler().compile(character * 2000, "greet"), CompileError)


def test_earlier_scripts_are_not_in_the_way() -> None:
    """Contexts are shared for speed; what one script declares must not count for the next."""
    compiler = ScriptCompiler()
    sources = [
        ("function greet() {}", True),
        ("function other() {}", False),
        ("const greet = 1", True),
        ("let greet = 1", True),
        ("let other = 1; function greet() {}", True),
        ("const other = 1; function greet() {}", True),
        ("function Object() {} function greet() {}", True),
        ("var undefined; function greet() {}", True),
        (";", False),
    ]
    for _ in range(30):
        assert [compiler.compile(source, "greet") for source, _ in sources] == [
            defines for _, defines in sources
        ]


@each_row("name", ["my action", "1st", "a-b", "x;y", "", "ünder", "$", "escape"])
def test_a_name_that_is_no_identifier_names_no_function(name: str) -> None:
    assert ScriptCompiler().compile(";", name) is False


def test_names_with_dollars_and_accents_can_be_functions() -> None:
    assert ScriptCompiler().compile("const größe$ = 1", "größe$") is True
    assert ScriptCompiler().compile("function größe$() {}", "größe$") is True


def test_an_error_in_a_block_stands_at_its_line(judge_text: Judge) -> None:
    text = """\
apiVersion: reconciler/v1
kind: Action
metadata: {organization: acme, name: greet}
spec:
  script: |
    function greet() {
      return (
    }
"""
    [finding] = judge_text(text).diagnostics

    assert (finding.code, finding.is_error) == ("ACTION-SCRIPT", True)
    assert finding.location is not None
    assert finding.location[1:3] == (8, 5)


def test_an_error_in_a_file_stands_in_that_file(tmp_path: Path) -> None:
    document = with_spec({**ACTION, "spec": {}}, scriptFile="greet.js")
    (tmp_path / "greet.yaml").write_text(text_of(document), encoding="utf-8")
    (tmp_path / "greet.js").write_text("function greet() {\n  return (\n}\n", encoding="utf-8")

    [finding] = judge(load([tmp_path])).diagnostics

    assert finding.location == SourceLocation(f"{tmp_path}/greet.js", 3, 1)


def test_a_file_that_cannot_be_read_is_the_one_finding(tmp_path: Path) -> None:
    """There is nothing to compile, and who reads the manifests has said why."""
    document = with_spec({**ACTION, "spec": {}}, scriptFile="missing.js")
    (tmp_path / "greet.yaml").write_text(text_of(document), encoding="utf-8")

    [finding] = judge(load([tmp_path])).diagnostics

    assert (finding.code, finding.is_error) == ("SCRIPT-MISSING", True)


@pytest.mark.parametrize("size", [0, 40_001])
def test_a_file_has_the_limits_of_a_script(tmp_path: Path, size: int) -> None:
    document = with_spec({**ACTION, "spec": {}}, scriptFile="greet.js")
    (tmp_path / "greet.yaml").write_text(text_of(document), encoding="utf-8")
    (tmp_path / "greet.js").write_text("x" * size, encoding="utf-8")

    [finding] = judge(load([tmp_path])).diagnostics

    assert finding.code == ("SCHEMA-TOO-LONG" if size else "SCHEMA-EMPTY")
    assert finding.location == SourceLocation(
        f"{tmp_path}/greet.yaml",
        1,
        text_of(document).index('"greet.js"') + 1,
    )


@pytest.mark.parametrize("mark", ["\u202a", "\u202e", "\u2066", "\u2069"])
def test_a_script_that_shows_in_another_order_is_a_warning(judge_text: Judge, mark: str) -> None:
    """Reviewers approve what they see."""
    script = f"function greet() {{}} // {mark}"

    [finding] = judge_text(text_of(with_spec(ACTION, script=script))).diagnostics

    assert (finding.code, finding.is_error) == ("ACTION-DIRECTION", False)


def test_a_script_without_its_function_is_a_warning(judge_text: Judge) -> None:
    judgement = judge_text(text_of(with_metadata(ACTION, name="welcome")))

    [finding] = judgement.diagnostics
    assert (finding.code, finding.is_error) == ("ACTION-FUNCTION", False)
    assert "welcome" in finding.summary
    assert len(judgement.desired.resources) == 1


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        ("function greet() {}\r\n", ["SCRIPT-CRLF"]),
        ("function greet() {}\n", []),
        ("function greet() { return '\\r\\n' }", []),
    ],
    ids=["line ends of Windows", "line ends", "written as escapes"],
)
def test_line_ends_of_windows_are_noted(judge_text: Judge, script: str, codes: list[str]) -> None:
    """The next checkout on another machine would show an update that nobody made."""
    found = judge_text(text_of(with_spec(ACTION, script=script))).diagnostics

    assert [finding.code for finding in found if finding.code.startswith("SCRIPT")] == codes
    assert {finding.severity for finding in found} <= {Severity.NOTE}
