"""Places of values, or of the nearest value above one that is not there."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.manifests.trace import NOWHERE, Mark, Trace

INNER = [1]
TOP = {"a": INNER}


@pytest.fixture
def trace() -> Trace:
    """Return the trace of a file with one document: a mapping with a list in it."""
    trace = Trace("a.yaml", documents=[TOP])
    trace.values = {
        (id(trace.documents), 0): Mark(1, 1),
        (id(TOP), "a"): Mark(2, 4),
        (id(INNER), 0): Mark(2, 5, "'"),
    }
    trace.keys = {(id(TOP), "a"): Mark(2, 1)}
    return trace


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ((), (1, 1), (1, 1)),
        (("a",), (2, 4), (2, 1)),
        (("a", 0), (2, 5), (2, 5)),
        (("a", 7), (2, 4), (2, 1)),
        (("a", -1), (2, 4), (2, 1)),
        (("a", "x", "y"), (2, 4), (2, 1)),
        (("missing",), (1, 1), (1, 1)),
    ],
)
def test_a_path_leads_to_its_value_or_to_what_is_above(
    trace: Trace, path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    assert trace.value_mark(0, path)[:2] == value
    assert trace.key_mark(0, path)[:2] == key


def test_what_has_no_place_is_nowhere() -> None:
    assert Trace("a.yaml", documents=[None]).value_mark(0, ()) == NOWHERE


def test_a_finding_stops_the_run_at_its_place(trace: Trace) -> None:
    trace.refuse("YAML-X", "summary", "Remedy.", Mark(3, 4))
    trace.refuse("YAML-Y", "summary", "Remedy.")

    assert trace.findings == [
        error("YAML-X", "summary", "Remedy.", SourceLocation("a.yaml", 3, 4)),
        error("YAML-Y", "summary", "Remedy.", SourceLocation("a.yaml")),
    ]
