"""What a schema refuses, in words: code, place, and what to write instead."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reconciler.manifests.manifest import Manifest, Root, SourceFile
from reconciler.resources.ref import Kind
from reconciler.validation import explain
from reconciler.validation.schema import MAX_FAULTS, accepts
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    DOCUMENTS,
    IDP,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
    without,
)

ROWS = [
    pytest.param(
        with_spec(APPLICATION, redirectUrls=["https://a.example.com/"]),
        "SCHEMA-UNKNOWN-FIELD",
        "unknown field redirectUrls",
        "postLogoutRedirectUris",
        id="a misspelt field whose right spelling is taken",
        marks=(),
    ),
    pytest.param(
        without(with_spec(APPLICATION, redirect_uris=[]), "spec", "redirectUris"),
        "SCHEMA-UNKNOWN-FIELD",
        "unknown field redirect_uris",
        "Did you mean redirectUris?",
        id="a field in another case",
    ),
    pytest.param(
        with_spec(ACTION, timeOut="5s"),
        "SCHEMA-UNKNOWN-FIELD",
        "timeOut",
        "mean timeout?",
        id="one letter in another case",
    ),
    pytest.param(
        with_spec(ACTION, colour="red"),
        "SCHEMA-UNKNOWN-FIELD",
        "colour",
        "Known fields are",
        id="a field like no other",
    ),
    pytest.param(
        with_spec(ORGANIZATION, colour="red"),
        "SCHEMA-UNKNOWN-FIELD",
        "colour",
        "has no fields",
        id="a field of a kind without fields",
    ),
    pytest.param(
        {**ACTION, "timeout": "5s"},
        "SCHEMA-UNKNOWN-FIELD",
        "timeout",
        "Move timeout to spec.",
        id="a field of the spec beside it",
    ),
    pytest.param(
        with_metadata(ACTION, script="x"),
        "SCHEMA-UNKNOWN-FIELD",
        "script",
        "to spec.",
        id="a field of the spec in the metadata",
    ),
    pytest.param(
        with_spec(ACTION, name="greet"),
        "SCHEMA-UNKNOWN-FIELD",
        "name",
        "to metadata.",
        id="the name in the spec",
    ),
    pytest.param(
        with_spec(ACTION, kind="Action"),
        "SCHEMA-UNKNOWN-FIELD",
        "kind",
        "the top of the",
        id="the kind in the spec",
    ),
    pytest.param(
        without(ACTION, "metadata", "name"),
        "SCHEMA-MISSING-FIELD",
        "metadata has no name",
        "Write name. Name in the service",
        id="no name",
    ),
    pytest.param(
        without(APPLICATION, "metadata", "project"),
        "SCHEMA-MISSING-FIELD",
        "no project",
        "Write project.",
        id="no project",
    ),
    pytest.param(
        without(IDP, "spec", "headerName"),
        "SCHEMA-MISSING-FIELD",
        "spec has no headerName",
        "empty means",
        id="no header name",
    ),
    pytest.param(
        without(ACTION, "metadata"),
        "SCHEMA-MISSING-FIELD",
        "the manifest has no metadata",
        "Write metadata.",
        id="no metadata",
    ),
    pytest.param(
        without(IDP, "spec"),
        "SCHEMA-MISSING-FIELD",
        "the manifest has no spec",
        "Write spec.",
        id="no spec",
    ),
    pytest.param(
        without(ACTION, "apiVersion"),
        "SCHEMA-MISSING-FIELD",
        "no apiVersion",
        "Write apiVersion.",
        id="no apiVersion",
    ),
    pytest.param(
        {**ACTION, "apiVersion": "v1"},
        "MANIFEST-API-VERSION",
        "apiVersion cannot be v1",
        "Write reconciler/v1.",
        id="another apiVersion",
    ),
    pytest.param(
        {**ACTION, "metadata": None},
        "SCHEMA-TYPE",
        "metadata is empty, not a mapping",
        "Write a value",
        id="empty metadata",
    ),
    pytest.param(
        {**ACTION, "spec": []},
        "SCHEMA-TYPE",
        "spec is a list, not a mapping",
        "Write fields beneath it",
        id="a spec that is a list",
    ),
    pytest.param(
        with_metadata(ACTION, name=5),
        "SCHEMA-TYPE",
        "name is a number, not a text",
        'Put it in quotes if text is meant: "5".',
        id="a number as name",
    ),
    pytest.param(
        with_metadata(ACTION, name=True),
        "SCHEMA-TYPE",
        "name is true or false, not a text",
        'Put it in quotes if text is meant: "true".',
        id="true as name",
    ),
    pytest.param(
        with_spec(ACTION, allowedToFail="yes"),
        "SCHEMA-TYPE",
        "allowedToFail is a text",
        "Write true or false, without quotes.",
        id="a text as truth",
    ),
    pytest.param(
        with_spec(APPLICATION, redirectUris="https://a.example.com/"),
        "SCHEMA-TYPE",
        "redirectUris is a text, not a list",
        "also of one item: [https://a.example.com/].",
        id="a text as list",
    ),
    pytest.param(
        with_spec(APPLICATION, redirectUris=[["x"]]),
        "SCHEMA-TYPE",
        "item 1 of redirectUris is a list, not a text",
        "Write a single text.",
        id="a list in a list",
    ),
    pytest.param(
        with_spec(ACTION, timeout=5),
        "SCHEMA-DURATION",
        "timeout is not a duration: 5",
        "Write 5s.",
        id="a number as duration",
    ),
    pytest.param(
        with_spec(APPLICATION, appType="OIDC_APP_TYPE_SPA"),
        "SCHEMA-VALUE",
        "appType cannot be OIDC_APP_TYPE_SPA",
        "OIDC_APP_TYPE_WEB, OIDC_APP_TYPE_USER_AGENT or OIDC_APP_TYPE_NATIVE.",
        id="an unknown application type",
    ),
    pytest.param(
        with_spec(APPLICATION, grantTypes=["authorization_code"]),
        "SCHEMA-VALUE",
        "item 1 of grantTypes cannot be authorization_code",
        "Did you mean AUTHORIZATION_CODE? Write AUTHORIZATION_CODE, IMPLICIT,",
        id="a grant type as OIDC spells it",
    ),
    pytest.param(
        with_spec(APPLICATION, appType="oidc_app_type_web"),
        "SCHEMA-VALUE",
        "oidc_app_type_web",
        "Did you mean OIDC_APP_TYPE_WEB?",
        id="a value in lower case",
    ),
    pytest.param(
        with_spec(APPLICATION, appType="NATIV"),
        "SCHEMA-VALUE",
        "appType cannot be NATIV",
        "Did you mean NATIVE? Write WEB, USER_AGENT or NATIVE.",
        id="a misspelt value in short",
    ),
    pytest.param(
        with_spec(APPLICATION, version="1_0"),
        "SCHEMA-VALUE",
        "version cannot be 1_0",
        "Write OIDC_VERSION_1_0.",
        id="a version in short",
    ),
    pytest.param(
        with_spec(APPLICATION, version="1.0"),
        "SCHEMA-VALUE",
        "version cannot be 1.0",
        "Write OIDC_VERSION_1_0.",
        id="a version there is only one of",
    ),
    pytest.param(
        with_metadata(ACTION, name=""),
        "SCHEMA-EMPTY",
        "name is empty",
        "Write a value.",
        id="an empty name",
    ),
    pytest.param(
        with_metadata(ACTION, name="x" * 201),
        "SCHEMA-TOO-LONG",
        "name is longer than 200 characters",
        "It has 201; shorten it",
        id="a long name",
    ),
    pytest.param(
        with_spec(ACTION, script="x" * 40_001),
        "SCHEMA-TOO-LONG",
        "longer than 40000",
        "has 40001",
        id="a long script",
    ),
    pytest.param(
        with_spec(ACTION, timeout="5"),
        "SCHEMA-DURATION",
        "timeout is not a duration: 5",
        "Write 5s.",
        id="a duration without its unit",
    ),
    pytest.param(
        with_spec(ACTION, timeout="5000ms"),
        "SCHEMA-DURATION",
        "timeout is not a duration: 5000ms",
        "Write 5s.",
        id="a duration in milliseconds",
    ),
    pytest.param(
        with_spec(ACTION, timeout=5000),
        "SCHEMA-DURATION",
        "timeout is too long: 5000 is 5000s",
        "Write at most 20s.",
        id="a number of milliseconds, perhaps",
    ),
    pytest.param(
        with_spec(ACTION, timeout=" 1.50 seconds"),
        "SCHEMA-DURATION",
        "timeout is not a duration",
        "Write 1.5s.",
        id="a duration in words",
    ),
    pytest.param(
        with_spec(ACTION, timeout="soon"),
        "SCHEMA-DURATION",
        "timeout is not a duration: soon",
        "Write seconds followed by s, from 0s to 20s: 5s or 1.5s.",
        id="a word as duration",
    ),
    pytest.param(
        with_spec(APPLICATION, clientSecret="hunter2"),
        "SCHEMA-UNKNOWN-FIELD",
        "unknown field clientSecret",
        "no secret belongs in a file of the repository",
        id="a secret in a manifest",
    ),
    pytest.param(
        with_metadata(APPLICATION, client_id="4711"),
        "SCHEMA-UNKNOWN-FIELD",
        "unknown field client_id",
        "`reconciler outputs` lists them",
        id="a client id in a manifest",
    ),
    pytest.param(
        with_spec(ACTION, timeout="1m"),
        "SCHEMA-DURATION",
        "timeout is too long: 1m is 60s",
        "Write at most 20s.",
        id="a duration in minutes",
    ),
    pytest.param(
        with_spec(ACTION, timeout="21s"),
        "SCHEMA-DURATION",
        "timeout is too long: 21s",
        "Write at most 20s.",
        id="a timeout too long",
    ),
    pytest.param(
        with_spec(ACTION, timeout="5s\n"),
        "SCHEMA-DURATION",
        "timeout is not a duration",
        "Write 5s.",
        id="a duration and a line break",
    ),
    pytest.param(
        with_spec(APPLICATION, clockSkew="5.1s"),
        "SCHEMA-DURATION",
        "clockSkew is too long: 5.1s",
        "Write at most 5s.",
        id="a clock skew too large",
    ),
    pytest.param(
        with_metadata(ACTION, id="a b"),
        "SCHEMA-ID",
        "the id is not valid",
        "letters, digits",
        id="an id with a space",
    ),
    pytest.param(
        with_metadata(ACTION, name="a\0b"),
        "SCHEMA-NUL",
        "name contains NUL",
        "Remove the NUL",
        id="a NUL",
    ),
    pytest.param(
        with_spec(ACTION, scriptFile="x.js"),
        "SCHEMA-SCRIPT",
        "both script and scriptFile are given",
        "Keep one",
        id="script and its file",
    ),
    pytest.param(
        without(ACTION, "spec", "script"),
        "SCHEMA-SCRIPT",
        "the action has no script",
        "scriptFile with the path",
        id="neither script nor its file",
    ),
    pytest.param([ACTION], "MANIFEST-SHAPE", "not a mapping", "apiVersion, kind", id="a list"),
    pytest.param("text", "MANIFEST-SHAPE", "not a mapping", "apiVersion, kind", id="a text"),
    pytest.param(
        {**ACTION, "kind": "action"},
        "MANIFEST-KIND",
        "unknown kind action",
        "Did you mean Action? Write kind: Organization, Project,",
        id="a kind in lower case",
    ),
    pytest.param(
        {**ACTION, "kind": "OIDCApp"},
        "MANIFEST-KIND",
        "unknown kind OIDCApp",
        "Did you mean OidcApplication?",
        id="a kind cut short",
    ),
    pytest.param(
        {**ACTION, "kind": "Deployment"},
        "MANIFEST-KIND",
        "unknown kind Deployment",
        "Write kind: Organization",
        id="a kind of somebody else",
    ),
    pytest.param(
        {**ACTION, "kind": ["Action"]},
        "MANIFEST-KIND",
        "unknown kind ['Action']",
        "Write kind",
        id="a kind that is a list",
    ),
    pytest.param(
        without(ACTION, "kind"),
        "MANIFEST-KIND",
        "the manifest has no kind",
        "Write kind",
        id="no kind",
    ),
    pytest.param(
        {**ACTION, "kind": None},
        "MANIFEST-KIND",
        "the kind is empty",
        "Write kind",
        id="an empty kind",
    ),
]


@each_row(("document", "code", "summary", "remedy"), ROWS)
def test_a_mistake_is_told_once_and_says_what_to_write(
    judge_text: Judge, document: Any, code: str, summary: str, remedy: str
) -> None:
    judgement = judge_text(text_of(document))

    assert [finding.code for finding in judgement.diagnostics] == [code]
    [finding] = judgement.diagnostics
    assert finding.is_error
    assert summary in finding.summary
    assert remedy in finding.remedy
    assert not judgement.desired.resources


def test_findings_stand_at_the_value_or_at_the_key(judge_text: Judge) -> None:
    """At the value where it is wrong, at the key where that is."""
    text = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata:
  organization: 7
  name: x
spec:
  devMode: "yes"
  redirectUrl: []
  grantTypes:
    - x
"""
    found = [
        (finding.code, finding.location.line, finding.location.column)
        for finding in judge_text(text).diagnostics
        if finding.location is not None
    ]

    assert found == [
        ("SCHEMA-MISSING-FIELD", 3, 1),
        ("SCHEMA-TYPE", 4, 17),
        ("SCHEMA-TYPE", 7, 12),
        ("SCHEMA-UNKNOWN-FIELD", 8, 3),
        ("SCHEMA-VALUE", 10, 7),
    ]


def test_no_api_version_is_told_beside_an_unknown_kind(judge_text: Judge) -> None:
    found = judge_text("kind: Deployment\n").diagnostics

    assert [finding.summary for finding in found] == [
        "the manifest has no apiVersion",
        "unknown kind Deployment",
    ]


def test_both_mistakes_of_an_envelope_are_told(judge_text: Judge) -> None:
    found = judge_text("apiVersion: v1\nkind: Deployment\nmetadata: {}\n").diagnostics

    assert [finding.code for finding in found] == ["MANIFEST-API-VERSION", "MANIFEST-KIND"]


def test_long_values_are_cut(judge_text: Judge) -> None:
    """A log is no place for a whole document."""
    secret = "x" * 5000
    document = with_spec(APPLICATION, appType=secret, colour={secret: secret})

    for finding in judge_text(text_of(document)).diagnostics:
        assert len(finding.summary) < 150
        assert len(finding.remedy) < 400


@pytest.mark.slow
@pytest.mark.untraced
def test_thousands_of_mistakes_take_no_time(judge_text: Judge) -> None:
    document = {**ACTION, "spec": {f"field{number}": 1 for number in range(20_000)}}
    before = time.process_time()

    found = judge_text(text_of(document)).diagnostics

    assert time.process_time() - before < 2
    assert len(found) == MAX_FAULTS + 1
    [more] = [each for each in found if each.code == "MANIFEST-MORE"]
    assert more.is_error
    assert more.summary == f"{20_001 - MAX_FAULTS} more findings in this document"


@pytest.mark.parametrize("number", [MAX_FAULTS, MAX_FAULTS + 1])
def test_findings_that_are_not_shown_are_counted(judge_text: Judge, number: int) -> None:
    """Exactly as many as are shown at most is none too many."""
    document = with_spec(APPLICATION, redirectUris=[1] * number)

    found = judge_text(text_of(document)).diagnostics

    more = [each.summary for each in found if each.code == "MANIFEST-MORE"]
    assert more == ["1 more finding in this document"] * (number - MAX_FAULTS)
    assert len(found) == number


@each_row("kind", Kind)
def test_a_schema_takes_what_is_right(kind: Kind) -> None:
    assert accepts(kind, DOCUMENTS[kind])
    assert not accepts(kind, {**DOCUMENTS[kind], "extra": 1})


@pytest.mark.parametrize("value", [{1: 2}, {"a": "\ud800"}, object(), 10**400])
def test_what_is_not_json_is_refused_and_not_a_failure(value: Any) -> None:
    assert not accepts(Kind.ACTION, {**ACTION, "spec": value})


def test_a_verdict_the_libraries_do_not_share_is_our_mistake() -> None:
    """Never an accept: who wrote the manifest is told, and we are."""
    file = SourceFile("a.yaml", text_of(PROJECT), Root(""), ())

    [finding] = explain.schema_findings(Kind.PROJECT, Manifest(PROJECT, file), ())

    assert finding.code == "SCHEMA-INTERNAL"
    assert finding.is_error
