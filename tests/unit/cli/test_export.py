"""What becomes manifests, and what is said to be left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.cli import export
from reconciler.errors import ObjectNotFoundError, ServiceError
from tests.builders import ACME, GREET, HOUSE, SHOP, WEB, held, observed


def test_everything_that_is_held_becomes_a_manifest() -> None:
    found = export.export_of(observed(*HOUSE, held(WEB), held(GREET)))

    assert {written.ref for written in found.manifests} == {ACME, SHOP, WEB, GREET}
    assert found.left_out == ()


def test_what_a_manifest_cannot_mean_is_left_out() -> None:
    clash = replace(observed(*HOUSE, held(WEB)), name_clashes=(held(WEB, object_id="8"),))

    found = export.export_of(clash)

    assert WEB not in {written.ref for written in found.manifests}
    assert [line for line in found.left_out if line.startswith(f"{WEB}: another object has")]


def test_a_text_that_looks_like_a_placeholder_is_left_out() -> None:
    """A manifest with it is refused when it is read. In a script it is only warned of."""
    web = replace(held(WEB), spec={**held(WEB).spec, "redirectUris": ["https://@@HOST@@/"]})
    script = replace(held(GREET), spec={**held(GREET).spec, "script": "// {{ it }}\n"})

    found = export.export_of(observed(*HOUSE, web, script))

    assert {written.ref for written in found.manifests} == {ACME, SHOP, GREET}
    (line,) = found.left_out
    assert line == f"{WEB}: @@HOST@@ looks like a placeholder of another tool (PLACEHOLDER-LEFT)"


def test_an_object_goes_with_its_project() -> None:
    clash = replace(observed(*HOUSE, held(WEB)), name_clashes=(held(SHOP, object_id="8"),))

    lines = export.export_of(clash).left_out

    assert f"{WEB}: {SHOP} is not exported" in lines


def test_only_what_is_named_is_exported() -> None:
    whole = export.export_of(observed(*HOUSE, held(WEB)))

    assert [each.ref for each in export._of_refs(whole, [WEB, WEB]).manifests] == [WEB]
    with pytest.raises(ObjectNotFoundError, match="the service holds no"):
        export._of_refs(whole, [GREET])


def test_a_named_object_that_no_manifest_can_express_is_an_error() -> None:
    nothing = export.Export((), (f"{GREET}: it cannot be said",))

    with pytest.raises(ServiceError, match="it cannot be said"):
        export._of_refs(nothing, [GREET])


def test_the_project_of_the_console_is_left_out() -> None:
    shop = held(SHOP, object_id="7")
    state = replace(observed(held(ACME), shop), own_project="7")

    found = export._without_console(state)

    assert {each.ref for each in found.objects.values()} == {ACME}
    assert "--with-console" in found.unexpressed[-1]
    assert export._without_console(replace(state, own_project="")).objects == state.objects
