"""Findings as JUnit XML, which CI servers take."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

import pytest

from reconciler.report.junit import findings_as_junit
from reconciler.report.visible import visible
from tests.hostile import PAYLOADS, hostile_findings
from tests.unit.report.findings import FINDINGS, WRONG


@dataclass
class Element:
    """One element of a document."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self) -> list[Element]:
        return [self, *(found for element in self.inside for found in element.all())]


def xml_of(document: str) -> Element:
    """Return the outermost element; a document that is not well-formed is an error."""
    path = [Element("", {})]
    parser = expat.ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes)
        path[-1].inside.append(element)
        path.append(element)

    def text(data: str) -> None:
        path[-1].text += data

    def end(_: str) -> None:
        path.pop()

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    is_final = True  # a document that ends too soon is an error
    parser.Parse(document, is_final)
    return path[0].inside[0]


def test_every_file_is_a_test_that_its_errors_fail() -> None:
    """A file without findings is there too: a report of nothing looks like a run that broke."""
    files = ["manifests/x.yaml", "ok.yaml", "ok.yaml"]
    suites = xml_of(findings_as_junit([*FINDINGS, WRONG], files))

    assert suites.attributes == {
        "name": "reconciler validate", "tests": "4", "failures": "1", "errors": "0",
    }  # fmt: skip
    (suite,) = suites.inside
    assert {
        case.attributes["name"]: [part.tag for part in case.inside] for case in suite.inside
    } == {
        "manifests/x.yaml": ["system-out"],
        "ok.yaml": [],
        "manifests/a b,c:d.yaml": ["failure"],
        "(no file)": ["system-out"],
    }
    (failure,) = [found for found in suite.all() if found.tag == "failure"]
    assert failure.attributes == {
        "type": "OIDC-ORIGIN",
        "message": "origin has a path (and 1 more)",
    }
    assert failure.text.count("Write `https://a.test`. 100 %.") == 2


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_junit_is_xml_whatever_a_finding_says(payload: str) -> None:
    """XML cannot hold every character, not even escaped; made visible, it can."""
    suites = xml_of(findings_as_junit(hostile_findings(payload), [f"{payload}.yaml"]))

    assert {element.tag for element in suites.all()} == {
        "testsuites", "testsuite", "testcase", "failure", "system-out",
    }  # fmt: skip
    assert visible(payload) in "".join(element.text for element in suites.all())
