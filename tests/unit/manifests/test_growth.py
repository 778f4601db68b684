"""The limit to what is put into manifests."""

from __future__ import annotations

from reconciler.manifests.growth import Growth
from reconciler.manifests.manifest import Manifest, Root, SourceFile

MANIFEST = Manifest({"spec": {"a": "b"}}, SourceFile("a.yaml", "spec: {a: b}\n", Root(""), ()))


def test_the_first_value_without_room_is_told_at_its_place() -> None:
    """One finding is enough: every later value has no room either."""
    growth = Growth(10)

    assert [growth.has_room(size, MANIFEST, ("spec", "a")) for size in (4, 6, 1, 1)] == [
        True,
        True,
        False,
        False,
    ]

    [found] = growth.findings
    assert (found.code, str(found.location)) == ("VARIABLE-SIZE", "a.yaml:1:11")
    assert found.is_error
