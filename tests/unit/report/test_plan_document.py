"""Owed secrets and new ones in every form of a plan: whose, since when, and what delivers them."""

from __future__ import annotations

import pytest

from reconciler.cli import plan as plan_command
from reconciler.plan.model import Plan, Scope, Update
from reconciler.plan.planfile import PlanFile, plan_file_content, read_plan_file
from reconciler.report.place import Place, as_code, place_as_json, place_as_marker, place_as_text
from reconciler.report.visible import without_credentials
from reconciler.resources.ref import Shard
from tests.builders import WEB, a_plan, an_owed_secret, declared, held
from tests.drawings import (
    change_as_text,
    plan_as_html,
    plan_as_json,
    plan_as_markdown,
    plan_as_text,
)
from tests.rows import each_row

LINE = (
    "OidcApplication acme/shop/storefront  "
    "(client id oid-shop-storefront@shop, made by deployer at 2026-01-02T03:04:05Z)"
)
SENTENCE = (
    "1 client secret is owed: reconciler apply delivers it, as does reconciler secret deliver."
)
ELSEWHERE = "3 client secrets are owed to other trees: their own apply delivers what is theirs."
OWED = a_plan(owed=(an_owed_secret(),), owed_elsewhere=3)


def test_a_plan_in_words_says_what_is_owed_and_what_delivers_it() -> None:
    """No changes is not the whole truth there."""
    text = plan_as_text(OWED, "sqlite:x.db")

    assert f"Client secrets that are owed:\n  {LINE}\n" in text
    assert f"No changes. The service holds what the manifests declare.\n{SENTENCE}\n" in text
    assert f"\n{ELSEWHERE}\nDigest: sha256:" in text


def test_a_comment_and_a_page_say_so_too() -> None:
    """A reviewer reads one of them, and not the log."""
    comment, page = plan_as_markdown(OWED, "sqlite:x.db"), plan_as_html(OWED, "sqlite:x.db")

    assert f"- **{SENTENCE}**\n- **{ELSEWHERE}**\n" in comment
    assert LINE in comment
    assert all(words in page for words in (SENTENCE, ELSEWHERE, LINE))
    assert "Client secrets that are owed" not in plan_as_html(a_plan(), "sqlite:x.db")


def test_a_program_is_told_what_is_known_of_each_secret() -> None:
    """And never the secret: nothing here knows it."""
    told = plan_as_json(OWED, "sqlite:x.db", [])

    assert told["owed"] == [
        {
            "ref": {
                "kind": "OidcApplication",
                "organization": "acme",
                "project": "shop",
                "name": "storefront",
            },
            "id": "oid-shop-storefront",
            "client_id": "oid-shop-storefront@shop",
            "since": "2026-01-02T03:04:05Z",
            "by": "deployer",
            "tree": "default",
            "run": "run-1",
            "lost": False,
        }
    ]
    assert (told["summary"]["owed"], told["summary"]["owed_elsewhere"]) == (1, 3)


def test_a_lost_secret_is_listed_as_lost() -> None:
    """No apply can deliver it, so none is named."""
    text = plan_as_text(a_plan(owed=(an_owed_secret(lost=True, by=""),)), "sqlite:x.db")

    assert "lost: no longer kept, made at 2026-01-02T03:04:05Z)" in text
    assert "delivers" not in text


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        pytest.param(OWED, 2, id="owed"),
        pytest.param(a_plan(owed=(an_owed_secret(lost=True),)), 0, id="lost"),
        pytest.param(a_plan(owed_elsewhere=3), 0, id="owed to others"),
        pytest.param(a_plan(owed_left=1), 2, id="owed where nothing is declared any more"),
    ],
)
def test_what_this_tree_is_owed_counts_as_a_change(plan: Plan, code: int) -> None:
    """A nightly job notices."""
    assert plan_command.exit_code(plan) == code


@pytest.mark.parametrize(
    ("before", "words"),
    [(False, "(none) -> (new)"), (True, "(held) -> (new)")],
)
def test_a_new_secret_is_shown_as_a_field(before: object, words: str) -> None:
    """In every form, and in JSON as whether there is one."""
    change = Update(declared(WEB), held(WEB, has_secret=before), new_secret=bool(before))
    plan = a_plan(change)

    assert f"\n    clientSecret: {words}" in change_as_text(change)
    comment, page = plan_as_markdown(plan, "sqlite:x.db"), plan_as_html(plan, "sqlite:x.db")
    assert "    clientSecret:\n" in comment
    for word in words.split(" -> "):
        assert f"     {word}\n" in comment
        assert f">{word}</td>" in page
    (told,) = plan_as_json(plan, "sqlite:x.db", [])["changes"]
    (field,) = told["fields"]
    assert (field["name"], field["before"], field["after"]) == ("clientSecret", before, True)


def test_a_saved_plan_keeps_what_was_owed_and_what_is_replaced() -> None:
    """``show`` tells what the plan told."""
    change = Update(declared(WEB), held(WEB, has_secret=True, owner="default"), new_secret=True)
    plan = a_plan(change, owed=OWED.owed, owed_elsewhere=3, owed_left=4)
    content = plan_file_content(PlanFile(plan, "1", "s", ("m",), "sha256:1", 1, 2))

    again = read_plan_file(content).plan

    assert (again.owed, again.owed_elsewhere, again.owed_left) == (plan.owed, 3, 4)
    (kept,) = again.changes
    assert isinstance(kept, Update)
    assert (kept.new_secret, kept.held) == (True, change.held)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (
            Place("https://id.example.com", "12", "web"),
            "Service https://id.example.com (instance 12), tree web",
        ),
        (
            Place("sqlite:new.db", "", "default"),
            "Service sqlite:new.db (new: there is no store yet), tree default",
        ),
        (
            Place("https://id.example.com", "12", "web", "staging"),
            "Environment staging: service https://id.example.com (instance 12), tree web",
        ),
        (
            Place("sqlite:a\x1b[2J.db", "12", "##[error]"),
            "Service sqlite:a\\u{1b}[2J.db (instance 12), tree ##\\u{5b}error]",
        ),
    ],
)
def test_a_place_is_one_line(place: Place, text: str) -> None:
    """Nothing in it is obeyed by a terminal or a runner."""
    assert place_as_text(place) == text


@each_row(
    ("address", "shown"),
    [
        ("https://id.example.com/x", "https://id.example.com/x"),
        ("sqlite:a@b:c.db", "sqlite:a@b:c.db"),
        ("https://ana:s3cret@id.example.com", "https://ana:***@id.example.com"),
        ("postgresql://ana:s3@cret@db/x", "postgresql://ana:***@db/x"),
        ("postgresql://ana:s3#cret@db/x", "postgresql://ana:***@db/x"),
        ("postgres://ana:s3?cret@db:5432/x", "postgres://ana:***@db:5432/x"),
        ("postgresql://ana:s3/cret@db/x", "postgresql://ana:***@db/x"),
        ("postgresql://db:5432/x?user=ana@server", "postgresql://db:5432/x?user=ana@server"),
        ("https://id.example.com:8443/x@y", "https://id.example.com:8443/x@y"),
        ("postgresql://ana@db/x", "postgresql://ana@db/x"),
        (
            "postgresql://db/x?user=ana&password=s3cret&sslmode=require",
            "postgresql://db/x?user=ana&password=***&sslmode=require",
        ),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    """Reports are kept by CI for a long time."""
    assert without_credentials(address) == shown
    assert place_as_json(Place(address, "1", "t"))["service"] == shown


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ("web", "`Service s (instance 1), tree web`"),
        ("a`b``c", "``` Service s (instance 1), tree a`b``c ```"),
    ],
)
def test_a_place_in_markdown_stays_code(tree: str, code: str) -> None:
    """Back-ticks in a name do not end it."""
    assert as_code(place_as_text(Place("s", "1", tree))) == code


def test_a_long_place_is_cut_in_markdown() -> None:
    """The head of a comment has a limit."""
    assert len(as_code(place_as_text(Place("s", "1", "`x" * 5_000)))) < 500


def test_a_service_that_is_not_there_yet_has_no_instance_in_json() -> None:
    """Null, and not an empty text."""
    assert place_as_json(Place("sqlite:x.db", "", "t")) == {
        "service": "sqlite:x.db",
        "instance": None,
        "tree": "t",
    }
    assert place_as_json(Place("s", "1", "t", "staging"))["environment"] == "staging"


@pytest.mark.parametrize(
    ("place", "shard", "marker"),
    [
        (
            Place("https://id.example.com", "12", "web"),
            None,
            "<!-- reconciler-plan service=https://id.example.com tree=web -->",
        ),
        (
            Place("https://id.example.com", "12", "web"),
            Shard(2, 4),
            "<!-- reconciler-plan service=https://id.example.com tree=web shard=2/4 -->",
        ),
        (
            Place("https://me:pw@h", "12", "--> <b>`\n"),
            None,
            "<!-- reconciler-plan service=https://me:%2A%2A%2A@h tree=-%2D%3E%20%3Cb%3E%60%0A -->",
        ),
        (Place("s", "", "a---b"), None, "<!-- reconciler-plan service=s tree=a-%2D-b -->"),
        (
            Place("s", "1", "web", "staging"),
            None,
            "<!-- reconciler-plan environment=staging service=s tree=web -->",
        ),
    ],
)
def test_a_comment_is_found_again_by_its_service_and_tree(
    place: Place, shard: Shard | None, marker: str
) -> None:
    """No name ends the HTML comment, and two services never share one."""
    assert place_as_marker(place, Scope(shard=shard)) == marker


def test_a_part_of_a_tree_has_a_comment_of_its_own() -> None:
    """The comment of the whole stays, and two parts never share one."""
    place, app, all_apps = Place("s", "", "web"), "Project/acme/shop", "Project/acme/*"
    scopes = [
        Scope(),
        Scope(target=(app,)),
        Scope(exclude=(app,)),
        Scope(target=(all_apps,)),
        Scope(target=(all_apps, app)),
        Scope(target=(all_apps,), exclude=(app,)),
    ]

    markers = [place_as_marker(place, scope) for scope in scopes]

    assert len({*markers}) == len(scopes)
    assert markers[1] == "<!-- reconciler-plan service=s tree=web target=Project/acme/shop -->"


def test_a_long_name_is_cut_and_still_its_own() -> None:
    """A comment has a limit."""
    first, second = (place_as_marker(Place("s", "", "x" * 900 + end), Scope()) for end in "ab")

    assert first != second
    assert len(first) < 250
