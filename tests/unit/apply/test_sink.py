"""What a file of a secret is called, and what it says: its application, and nothing else."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.apply.folder_sinks import FileSink, file_name
from reconciler.apply.sink import Application, Delivery, Kept, SecretSink, plain_name
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret
from tests.builders import WEB, a_ref
from tests.effort import cases
from tests.rows import each_row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return where secrets go; it is made by the sink."""
    return tmp_path / "state" / "secrets"


def delivery(ref: ResourceRef = WEB, client_id: str = "7@shop", value: str = "geheim") -> Delivery:
    return Delivery(ref, client_id, Secret(value))


def places_of(sink: SecretSink, *deliveries: Delivery) -> list[str]:
    """Deliver, and return where each secret is."""
    results = sink.deliver(deliveries)
    return [result.at for result in results if isinstance(result, Kept)]


def test_a_secret_is_kept_with_what_it_belongs_to_and_nothing_else(folder: Path) -> None:
    """Scripts read these files; every further key would be one more that leaks."""
    sink = FileSink(folder)
    sink.prove()

    places = places_of(sink, delivery(), delivery(a_ref(name="日本"), "8@shop", "zwei"))

    assert places == [str(folder / "acme.shop.storefront.json"), str(folder / places[1])]
    assert Path(places[0]).read_text(encoding="utf-8") == (
        '{\n  "ref": {\n    "kind": "OidcApplication",\n    "organization": "acme",\n'
        '    "project": "shop",\n    "name": "storefront"\n  },\n'
        '  "client_id": "7@shop",\n  "client_secret": "geheim"\n}\n'
    )
    assert json.loads(Path(places[1]).read_bytes()) == {
        "ref": {
            "kind": "OidcApplication", "organization": "acme", "project": "shop", "name": "日本",
        },
        "client_id": "8@shop",
        "client_secret": "zwei",
    }  # fmt: skip
    assert {stat.S_IMODE(Path(place).stat().st_mode) for place in places} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@each_row(
    ("ref", "name"),
    [
        pytest.param(WEB, "acme.shop.storefront.json", id="plain names"),
        pytest.param(a_ref(name="StoreFront"), "acme.shop.storefront.json", id="in any case"),
        pytest.param(a_ref(name="a-b_1"), "acme.shop.a-b_1.json", id="with dash and underscore"),
        pytest.param(
            a_ref(name="x" * 60), f"acme.shop.{'x' * 60}.json", id="as long as a plain name may be"
        ),
        pytest.param(
            a_ref(name="../../etc/passwd"),
            "acme-shop--etc-passwd-592af5f73005e68a.json",
            id="a way out of the folder",
        ),
        pytest.param(
            a_ref(name="Mein Laden"),
            "acme-shop-mein-laden-e7f10e31fbc52cb4.json",
            id="with a blank",
        ),
        pytest.param(a_ref(name="日本"), "acme-shop-0c5becf711c04fc5.json", id="in another script"),
    ],
)
def test_a_file_is_named_so_that_a_person_finds_it(ref: ResourceRef, name: str) -> None:
    """These names are in people's scripts; they do not change."""
    assert file_name(ref) == name


def test_names_that_mean_one_application_have_one_file() -> None:
    """Names are unique ignoring case, as Unicode folds it."""
    assert file_name(a_ref(name="Straße")) == file_name(a_ref(name="STRASSE"))


NAMES = st.text(min_size=1, max_size=200).filter(lambda name: "\0" not in name) | st.sampled_from(
    ["a", "b", "a.b", "a-b", ".", "..", "-", "a/b", "../a", "\\", "~", "con", "a b", "é", "e\u0301"]
)
REFS = st.builds(
    lambda organization, project, name: a_ref(
        name=name, organization=organization, project=project
    ),
    NAMES,
    NAMES,
    NAMES,
)


@pytest.mark.slow
@settings(max_examples=cases(166), deadline=None)
@given(one=REFS, other=REFS)
@example(one=a_ref(name="a.b"), other=a_ref(name="b", project="shop.a"))
@example(
    one=a_ref(name="b", project="a"), other=a_ref(name="x", project="", organization="acme.a.b")
)
def test_no_two_applications_share_a_file_and_none_leaves_the_folder(
    one: ResourceRef, other: ResourceRef
) -> None:
    """A shared file would lose one of two secrets."""
    names = [file_name(one), file_name(other)]

    assert (names[0] == names[1]) == (one.key == other.key)
    for name in names:
        assert Path(name).name == name
        assert name.isascii()
        assert name.isprintable()
        assert name[0].isalnum(), "no hidden file, and nothing that looks like an option"
        assert len(f".{name}.tmp") <= 255


def check_what_a_file_says(folder: Path, ref: ResourceRef, secret: str) -> None:
    sink = FileSink(folder)

    (place,) = places_of(sink, Delivery(ref, "id", Secret(secret)))

    kind, organization, project, name = ref
    assert json.loads(Path(place).read_bytes()) == {
        "ref": {"kind": kind, "organization": organization, "project": project, "name": name},
        "client_id": "id",
        "client_secret": secret,
    }
    assert sink.held([Application(ref, "id")])[0] is True


@pytest.mark.parametrize("text", ["geheim", '%s "q" {', "日本\\\u2028", "a\n\t\x1b/../b", "😀\x7f"])
def test_a_file_says_exactly_what_was_delivered(text: str, tmp_path: Path) -> None:
    """Whatever characters a name or a secret has."""
    check_what_a_file_says(tmp_path, a_ref(name=text), text)


@pytest.mark.slow
@settings(max_examples=cases(100), deadline=None)
@given(ref=REFS, secret=st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_file_says_what_was_delivered_of_any_text(
    ref: ResourceRef, secret: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        json.dumps(ref, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # no manifest holds an incomplete character
    check_what_a_file_says(tmp_path_factory.mktemp("sink"), ref, secret)


def test_one_name_never_looks_like_three() -> None:
    """Journals of trees are named the same way, beside nothing of the sink's."""
    assert plain_name(["default"]) == "default"
    assert plain_name(["My tree"]).startswith("my-tree-")
