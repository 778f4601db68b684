"""Signals and mistakes: how a command ends, and what it says, in words that a user knows."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from reconciler.cli import main
from reconciler.cli.main import run
from reconciler.errors import InterruptedRunError
from reconciler.report.codes import CODES
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    IDP,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
    without,
)


def test_an_event_loop_does_not_swallow_an_interruption() -> None:
    """A handler runs wherever the loop is: there, any other exception is logged and lost."""

    async def work() -> None:
        asyncio.get_running_loop().call_soon(interrupt)
        await asyncio.sleep(5)

    def interrupt() -> None:
        raise InterruptedRunError(signal.SIGTERM)

    with pytest.raises(InterruptedRunError):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        pytest.param(InterruptedRunError(signal.SIGTERM), 143, id="SIGTERM"),
        pytest.param(InterruptedRunError(signal.SIGINT), 130, id="SIGINT"),
        pytest.param(KeyboardInterrupt(), 130, id="Python's own"),
        pytest.param(click.Abort(), 130, id="click's own"),
    ],
)
def test_the_exit_code_names_the_signal(
    raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Click turns what it catches into a word of its own."""

    @click.command()
    def interrupted() -> None:
        raise raised

    monkeypatch.setattr(main, "cli", interrupted)

    assert main.run([]) == code


# Words of the code, of its libraries and of Python, which tell a user nothing.
INTERNAL = re.compile(
    r"\b(?:None|NoneType|Traceback|\w+Error\b(?!:)|\w+Exception|additionalProperties|oneOf|minLength"
    r"|pydantic|jsonschema|quickjs|httpx|errno|Errno|regex|kwargs|self|dataclass|instance of"
    r"|no such thing|whoever|nobody|somebody|mend|anew)\b|\^\(|\\d|<class|0x[0-9a-f]{6,}"
)


def in_yaml(old: str, new: str, document: dict[str, Any] = ACTION) -> str:
    """Return a manifest in block style with a part replaced."""
    lines = ["apiVersion: reconciler/v1", f"kind: {document['kind']}", "metadata:"]
    lines += [f"  {name}: {value}" for name, value in document["metadata"].items()]
    lines += ["spec:", '  script: "function greet() {}"', "  timeout: 5s", ""]
    text = "\n".join(lines)
    assert old in text
    return text.replace(old, new)


IN_MANIFESTS = [
    ("a timeout without a unit", in_yaml("5s", "5"), "Write 5s."),
    ("a timeout in milliseconds", in_yaml("5s", "5000ms"), "Write 5s."),
    ("a timeout of a minute", in_yaml("5s", "1m"), "timeout is too long: 1m is 60s"),
    ("a timeout in words", in_yaml("5s", "soon"), "from 0s to 20s: 5s or 1.5s"),
    ("a clock skew too large", with_spec(APPLICATION, clockSkew="30s"), "Write at most 5s."),
    ("a tab", in_yaml("  timeout", "\ttimeout"), "Indent with spaces."),
    ("an open quote", in_yaml('{}"', "{}"), "Close the quote that is opened here."),
    ("no blank after a colon", in_yaml("timeout: 5s", "timeout:5s"), "a colon"),
    ("a key twice", in_yaml("  timeout", "  timeout: 6s\n  timeout"), "Keep one of the two"),
    ("an anchor", in_yaml("5s", "&time 5s"), "write the value out"),
    ("a merge key", in_yaml("timeout: 5s", "<<: {timeout: 5s}"), "write the fields out"),
    ("no kind", without(ACTION, "kind"), "Write kind: Organization, Project,"),
    ("a kind of another tool", {**APPLICATION, "kind": "Application"}, "Did you mean OidcApp"),
    ("a kind in lower case", {**ACTION, "kind": "action"}, "Did you mean Action?"),
    ("another apiVersion", {**ACTION, "apiVersion": "v1"}, "Write reconciler/v1."),
    ("no name", without(ACTION, "metadata", "name"), "Write name."),
    ("an empty name", with_metadata(ACTION, name=""), "Write a value."),
    ("a number as a name", with_metadata(ACTION, name=7), 'Put it in quotes if text is meant: "7"'),
    ("a blank behind a name", with_metadata(ACTION, name="greet "), "Remove the space"),
    ("a name in spec", with_spec(APPLICATION, name="web"), "Move name to metadata."),
    ("a field of one letter less", with_spec(ACTION, timout="5s"), "Did you mean timeout?"),
    ("a field in snake case", with_spec(APPLICATION, app_type="x"), "Did you mean appType?"),
    ("a client secret", with_spec(APPLICATION, clientSecret="hunter2"), "docs/secrets.md"),
    ("a client id", with_spec(APPLICATION, clientId="4711"), "`reconciler outputs` lists them"),
    ("one URI, no list", with_spec(APPLICATION, redirectUris="https://a.b/"), "[https://a.b/]"),
    ("a type in lower case", with_spec(APPLICATION, appType="web"), "Did you mean WEB?"),
    ("a grant as OIDC spells it", with_spec(APPLICATION, grantTypes=["authorization_code"]),
     "Did you mean AUTHORIZATION_CODE? Write AUTHORIZATION_CODE, IMPLICIT,"),
    ("true in quotes", with_spec(APPLICATION, devMode="true"), "true or false, without quotes"),
    ("a wildcard", with_spec(APPLICATION, redirectUris=["https://*.a.com/"]), "list each one"),
    ("no scheme", with_spec(APPLICATION, redirectUris=["a.com/cb"]), "Write the whole URI"),
    ("a fragment", with_spec(APPLICATION, redirectUris=["https://a.com/#x"]), "Leave out #"),
    ("an origin with a path", with_spec(APPLICATION, additionalOrigins=["https://a.com/x"]),
     "An origin has no path, query or fragment: write https://a.com."),
    ("a response without its grant",
     with_spec(APPLICATION, responseTypes=["OIDC_RESPONSE_TYPE_ID_TOKEN"]), "grantTypes"),
    ("an endpoint without a scheme", with_spec(IDP, keysEndpoint="a.com"), "Write the whole URL"),
    ("a header with a blank", with_spec(IDP, headerName="my token"), "such as x-partner-token"),
    ("no script", with_spec(without(ACTION, "spec"), timeout="5s"), "or scriptFile"),
    ("two scripts", with_spec(ACTION, scriptFile="a.js"), "Keep one of them"),
    ("a script file that is not there",
     with_spec(without(ACTION, "spec"), scriptFile="a.js"), "starts from the folder"),
    ("a script file elsewhere",
     with_spec(without(ACTION, "spec"), scriptFile="../../a.js"), "Keep scripts beneath"),
    ("a script that does not compile", with_spec(ACTION, script="function greet("),
     "Correct the JavaScript"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of its own, in an environment that says nothing."""
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "RECONCILER_SERVICE", "RECONCILER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "manifests").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("written", "hint"), [row[1:] for row in IN_MANIFESTS], ids=[row[0] for row in IN_MANIFESTS]
)
def test_a_mistake_in_a_manifest_says_what_to_write(
    folder: Path, capsys: pytest.CaptureFixture[str], written: Any, hint: str
) -> None:
    text = written if isinstance(written, str) else text_of(written)
    (folder / "manifests" / "a.yaml").write_text(text, encoding="utf-8")

    assert run(["validate"]) == 1
    said = capsys.readouterr()
    assert hint in said.out
    assert "hunter2" not in said.out
    assert set(re.findall(r"(?:error|warning) ([A-Z][A-Z0-9-]+):", said.out)) <= CODES.keys()
    assert not INTERNAL.findall(in_words(said.out))
    assert said.err == ""


def in_words(out: str) -> str:
    """Return what the program says of its own: without the lines that it quotes."""
    return "\n".join(line for line in out.splitlines() if not re.match(r" +\d* \| ", line))


IN_SEVERAL = [
    ("a project that is misspelt",
     [PROJECT, ORGANIZATION, with_metadata(APPLICATION, project="shpo")],
     0, "Did you mean shop? Otherwise the service must hold it already"),
    ("a resource twice", [PROJECT, with_metadata(PROJECT, name="SHOP")], 1, "ignoring case"),
    ("an id twice", [with_metadata(ACTION, id="7"), with_metadata(IDP, id="7")], 1, "pins the id"),
    ("a function of another name", [with_spec(ACTION, script="function hello() {}")], 0,
     "Rename the action or the function"),
    ("plain http", [with_spec(APPLICATION, redirectUris=["http://a.com/"])], 0, "write https"),
    ("development mode", [with_spec(APPLICATION, devMode=True)], 0, "turn it off in production"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("documents", "code", "hint"),
    [row[1:] for row in IN_SEVERAL],
    ids=[row[0] for row in IN_SEVERAL],
)
def test_what_only_shows_between_manifests_or_may_be_meant_is_told_too(
    folder: Path, capsys: pytest.CaptureFixture[str], documents: list[Any], code: int, hint: str
) -> None:
    for number, document in enumerate(documents):
        (folder / "manifests" / f"{number}.yaml").write_text(text_of(document), encoding="utf-8")

    assert run(["validate"]) == code
    said = capsys.readouterr().out
    assert hint in said
    assert not INTERNAL.findall(in_words(said))


ON_THE_COMMAND_LINE = [
    ("plan --dry-run", "`reconciler plan` shows what `reconciler apply` would do"),
    ("apply --yes", "`reconciler apply` asks before it writes"),
    ("lint", "`reconciler validate` checks manifests."),
    ("plan nowhere", "Check the path"),
    ("plan manifests", "Give a folder with .yaml files."),
    ("plan --expires 1s", "--expires '1s' is not a duration from 1m to 99999d"),
    ("plan --format xml", "'text', 'json', 'markdown', 'html'"),
    ("plan --service ftp://x", "--service sqlite:PATH"),
    ("plan --service http://id.example.com", "would send the token unencrypted"),
    ("plan --service https://me:hunter2@id.example.com", "A token goes into RECONCILER_TOKEN"),
    ("plan --service https://id.example.com", "the service needs a token, and none was given"),
    ("plan --shard 5/4", "Write I/N, the first of four being 1/4."),
    ("plan --allow-updates many", "'many' is not a valid integer"),
    ("apply", "Give --auto-approve, or run apply in a terminal."),
    ("apply --digest abc", "sha256: and 64 hexadecimal digits"),
    ("show nowhere.json", "Make a new one: reconciler plan --out FILE."),
    ("explain OidcAplication", "Did you mean OidcApplication?"),
    ("explain Action.timout", "Did you mean timeout?"),
    ("outputs --format yaml", "'json'"),
    ("history greet", "Only apply, serve and token create make a new store."),
    ("token create --role root --name x", "'admin'"),
    ("serve --listen 8080", "Write --listen HOST:PORT, such as 127.0.0.1:8080."),
]


@pytest.mark.parametrize(("typed", "hint"), ON_THE_COMMAND_LINE)
def test_a_mistake_on_the_command_line_says_what_to_write(
    folder: Path, capsys: pytest.CaptureFixture[str], typed: str, hint: str
) -> None:
    if typed.split(maxsplit=1)[0] in {"plan", "apply"} and typed != "plan manifests":
        (folder / "manifests" / "a.yaml").write_text(text_of(ORGANIZATION), encoding="utf-8")

    assert run(typed.split()) != 0
    said = capsys.readouterr()
    assert hint in said.err, said
    assert "hunter2" not in said.out + said.err
    assert not INTERNAL.findall(said.err)
    assert not (folder / ".reconciler").exists()


def test_there_are_at_least_forty() -> None:
    """The table is for new users; each line is something that one of them does."""
    assert len([*IN_MANIFESTS, *IN_SEVERAL, *ON_THE_COMMAND_LINE]) >= 40
