"""A plan for a person: expected text, whole, so that a reader of this file sees what users see."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import error
from reconciler.kinds.oidc_application.compliance import MESSAGES
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Adopt, Change, Create, Delete, Unmanaged, Update, ref_of
from reconciler.report.plan_document import PlanDocument
from reconciler.report.visible import Style
from reconciler.resources.ref import Kind
from tests.builders import (
    ACME,
    GREET,
    NONE,
    PARTNER,
    WEB,
    a_jwt_config,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.drawings import change_as_text, plan_as_text
from tests.effort import cases
from tests.rows import each_row

NO_URIS = "Application.OIDC.V1.NoRedirectUris"
ONE, TWO = "https://a.example.com/", "https://b.example.com/"


def scripts(before: str, after: str) -> Update:
    """Return the update of an action from one script to another."""
    return Update(declared(GREET, an_action(script=after)), held(GREET, an_action(script=before)))


def without_remarks(text: str) -> str:
    """Return a text without the remarks, problems and risks, which have tests of their own."""
    return "".join(f"{line}\n" for line in text.split("\n") if not line.startswith("    ! "))


@each_row(
    ("change", "text"),
    [
        pytest.param(
            Create(declared(WEB, {"redirectUris": [ONE, TWO], "devMode": True})),
            """\
+ OidcApplication acme/shop/storefront
    redirectUris:
      + "https://a.example.com/"
      + "https://b.example.com/"
    devMode: true
""",
            id="a create shows what its manifest says",
        ),
        pytest.param(
            Create(declared(ACME)),
            """\
+ Organization acme
""",
            id="a create without fields",
        ),
        pytest.param(
            Create(declared(GREET, {"script": "let a;\nlet b;\n", "timeout": "1s"})),
            """\
+ Action acme/greet
    script:
      + let a;
      + let b;
    timeout: "1s"
""",
            id="a new script line by line",
        ),
        pytest.param(
            Update(
                declared(WEB, {"redirectUris": [TWO], "authMethodType": NONE}),
                held(WEB, {"redirectUris": [ONE, TWO], "clockSkew": "1s"}),
            ),
            """\
~ OidcApplication acme/shop/storefront  (id oid-shop-storefront)
    redirectUris:
      - "https://a.example.com/"
    authMethodType: "OIDC_AUTH_METHOD_TYPE_BASIC" -> "OIDC_AUTH_METHOD_TYPE_NONE"
    clockSkew: "1s" -> "0s"  # not in the manifest: the update resets it
""",
            id="an update field by field, old and new, and what it resets",
        ),
        pytest.param(
            Update(declared(WEB, {"redirectUris": []}), held(WEB, {"redirectUris": [ONE]})),
            """\
~ OidcApplication acme/shop/storefront  (id oid-shop-storefront)
    redirectUris:
      - "https://a.example.com/"
""",
            id="a list that is emptied",
        ),
        pytest.param(
            Adopt(
                declared(PARTNER),
                held(PARTNER, a_jwt_config(headerName=""), object_id="7", trees=[]),
            ),
            """\
~ IdpJwtConfig acme/partner  (id 7, never applied by this tree before)
    headerName: "" -> "x-token"
""",
            id="an adoption says that it is one",
        ),
        pytest.param(
            Update(
                declared(a_ref(name="web"), pinned_id="7", prevent_delete=True),
                held(WEB, object_id="7"),
            ),
            """\
~ OidcApplication acme/shop/web  (id 7)
    metadata.name: "storefront" -> "web"
    metadata.preventDelete: false -> true
""",
            id="a rename and protection",
        ),
        pytest.param(
            Delete(held(WEB, object_id="7")),
            """\
- OidcApplication acme/shop/storefront  (id 7, declared nowhere)
    lost for good: client id 7@shop and any client secret
""",
            id="a delete says what is lost for good",
        ),
        pytest.param(
            Delete(held(GREET, object_id="7")),
            """\
- Action acme/greet  (id 7, declared nowhere)
""",
            id="a delete that loses nothing that cannot be made again",
        ),
        pytest.param(
            scripts("let a;\nlet b;\nlet c;\nlet d;\n", "let a;\nlet b;\nlet x;\nlet d;\n"),
            """\
~ Action acme/greet  (id act--greet)
    script:
      @@ -1,5 +1,5 @@
        let a;
        let b;
      - let c;
      + let x;
        let d;
        \n""",
            id="scripts by line",
        ),
        pytest.param(
            scripts("let a;", "let a;\n"),
            """\
~ Action acme/greet  (id act--greet)
    script:
      @@ -1 +1,2 @@
        let a;
      + \n""",
            id="a script that differs in its last line break alone",
        ),
        pytest.param(
            scripts("let a;\r\nlet b;", "let a;\nlet b;"),
            """\
~ Action acme/greet  (id act--greet)
    script:
      @@ -1,2 +1,2 @@
      - let a;\\u{d}
      + let a;
        let b;
""",
            id="a script that differs in its line ends alone",
        ),
        pytest.param(
            scripts("let a;\u2028let b;", "let a;\nlet b;"),
            """\
~ Action acme/greet  (id act--greet)
    script:
      @@ -1 +1,2 @@
      - let a;\\u{2028}let b;
      + let a;
      + let b;
""",
            id="a line break that few see",
        ),
        pytest.param(
            Create(
                declared(a_ref(name="::error::\x1b[31m"), {"redirectUris": ["https://a/##[x]"]})
            ),
            """\
+ OidcApplication acme/shop/::error::\\u{1b}[31m
    redirectUris:
      + "https://a/##\\u{5b}x]"
""",
            id="what commands a runner or a terminal is broken",
        ),
    ],
)
def test_a_change_is_shown_field_by_field(change: Change, text: str) -> None:
    """What is shown is what a reviewer approves."""
    assert without_remarks(change_as_text(change)) == text


def test_what_the_service_will_complain_of_stands_beside_the_change() -> None:
    """It is no surprise after the merge."""
    text = change_as_text(Create(declared(WEB, {})))

    lines = [line.strip() for line in text.split("\n") if "! Application" in line]
    assert lines == [
        "! Application.OIDC.V1.NotCompliant: This configuration breaks rules of OIDC 1.0.",
        f"! {NO_URIS}: {MESSAGES[NO_URIS]}",
    ]


def test_a_plan_is_its_changes_what_is_left_alone_and_the_counts() -> None:
    """The sentence at the end is the one people know from the field."""
    plan = a_plan(
        Create(declared(GREET, {"script": "let a;"})),
        Delete(held(PARTNER, object_id="7")),
        unmanaged=(Unmanaged(WEB, "7"), Unmanaged(a_ref(name="a\nb"), "8")),
    )

    assert without_remarks(plan_as_text(plan, "sqlite:x.db")).endswith(
        "+ Action acme/greet\n"
        "    script:\n"
        "      + let a;\n"
        "\n"
        "- IdpJwtConfig acme/partner  (id 7, declared nowhere)\n"
        "\n"
        "Held, but declared nowhere (left alone):\n"
        "  OidcApplication acme/shop/storefront  (id 7, never deleted)\n"
        "  OidcApplication acme/shop/a\\nb  (id 8, never deleted)\n"
        "\n"
        "Plan: 1 to create, 0 to update, 1 to delete.\n"
        f"Digest: {plan_digest(plan)}\n"
    )


def creates(count: int) -> list[Change]:
    """Return creates of actions that nothing is to be said about, no two alike."""
    return [
        Create(declared(a_ref(Kind.ACTION, f"a{each}"), an_action(script=f"let a{each};")))
        for each in range(count)
    ]


def updates(count: int, **spec: Any) -> list[Change]:
    """Return updates of applications without a risk: equal ones, but for what is given."""
    refs = [a_ref(name=f"w{each}") for each in range(count)]
    return [
        Update(
            declared(ref, an_application(clockSkew=f"0.{at + 1:03}s", **spec)),
            held(ref, an_application(**spec)),
        )
        for at, ref in enumerate(refs)
    ]


RISKY = Create(declared(a_ref(name="risky"), {"redirectUris": [ONE], "devMode": True}))
PROBLEM = Create(declared(a_ref(name="problem"), {}))
BLOCKED = Create(declared(a_ref(Kind.ACTION, "blocked"), an_action()))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(creates(50), "", id="fifty are whole"),
        pytest.param(
            creates(51),
            "+ 1 more create without a risk (1 Action). Show them with --full.",
            id="the first one above fifty is folded",
        ),
        pytest.param(
            [*creates(60), Create(declared(PARTNER, a_jwt_config(audience="us")))],
            "+ 11 more creates without a risk (1 IdpJwtConfig, 10 Action). Show them with --full.",
            id="folded creates are counted by kind",
        ),
        pytest.param(
            updates(51),
            "~ 1 more update without a risk (1 OidcApplication). Show them with --full.",
            id="updates are folded as creates are",
        ),
    ],
)
def test_a_folded_plan_counts_what_has_no_risk_above_fifty(
    changes: list[Change], line: str
) -> None:
    """A first plan of a large tree does not push what matters off the screen."""
    text = plan_as_text(a_plan(*changes), "sqlite:x.db", folded=True)
    whole = plan_as_text(a_plan(*changes), "sqlite:x.db")

    assert len(re.findall(r"^[+~] (?:Action|Oidc)", text, re.MULTILINE)) == 50
    hidden = len(changes) - 50
    short = f"Shown in short: {hidden} of {len(changes)} changes. Give --full to see each."
    said = [line, short] if line else []
    assert [found for found in text.splitlines() if "--full" in found] == said
    assert "--full" not in whole


@each_row(
    "change",
    [
        Update(declared(GREET, an_action(script="b")), held(GREET, an_action(script="a"))),
        Adopt(declared(PARTNER), held(PARTNER, a_jwt_config(headerName=""), trees=[])),
        Delete(held(WEB)),
        RISKY,
        PROBLEM,
        BLOCKED,
    ],
)
def test_what_needs_a_look_is_never_folded(change: Change) -> None:
    """However many creates stand before it."""
    block = error("GUARD-X", "blocked", "Allow it.", ref=ref_of(BLOCKED))
    plan = a_plan(*creates(80), change, blocks=(block,))

    text = plan_as_text(plan, "sqlite:x.db", folded=True)

    assert change_as_text(change) in text
    assert "+ 30 more creates without a risk (30 Action)." in text


def test_an_empty_plan_says_of_what_and_that_it_is_empty() -> None:
    """The most frequent output of all."""
    assert plan_as_text(a_plan(), "sqlite:x.db") == (
        "Service sqlite:x.db (instance instance-1), tree default\n"
        "\n"
        "No changes. The service holds what the manifests declare."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ("ccu", "Plan: 2 to create, 1 to update, 0 to delete."),
        ("aaa", "Plan: 0 to create, 0 to update, 3 to adopt, 0 to delete."),
        ("d", "Plan: 0 to create, 0 to update, 1 to delete."),
        ("", "No changes. The service holds what the manifests declare."),
    ],
)
def test_the_counts_are_one_sentence(changes: str, sentence: str) -> None:
    """Adoptions are named where there are some; the other three always."""
    new, there = declared(), held()
    made = {"c": Create(new), "u": Update(new, there), "a": Adopt(new, there), "d": Delete(there)}
    plan = a_plan(*(made[each] for each in changes))

    assert str(PlanDocument(plan, "sqlite:x.db").headline) == sentence


HOSTILE = st.text(st.sampled_from("a\n\r\t ::##[]\x1b\u202e\u200b\u2028\x85é\\u{}"), max_size=12)


@st.composite
def hostile_changes(draw: st.DrawFn) -> Change:
    """Draw a change in which every text is somebody's attempt."""
    name = draw(HOSTILE.filter(bool))
    uris = st.lists(HOSTILE, max_size=3)
    app = a_ref(name=name, organization=draw(HOSTILE), project=draw(HOSTILE))
    action = a_ref(Kind.ACTION, name)
    found = held(app, an_application(redirectUris=draw(uris)), object_id=draw(HOSTILE))
    resource = declared(app, an_application(redirectUris=draw(uris), devMode=True))
    script: dict[str, Any] = an_action(script=draw(HOSTILE))
    before = held(action, an_action(script=draw(HOSTILE)))
    changes: list[Change] = [
        Create(resource),
        Update(resource, found),
        Adopt(resource, found),
        Delete(found),
        Create(declared(action, script)),
        Update(declared(action, script), before),
    ]
    return draw(st.sampled_from(changes))


@settings(max_examples=cases(25), deadline=None)
@given(change=hostile_changes())
def test_no_line_of_a_plan_is_a_command_or_hides_anything(change: Change) -> None:
    """Plans are printed in CI logs and read by who approves them."""
    left = (Unmanaged(a_ref(name="##[x")),)
    text = plan_as_text(a_plan(change, unmanaged=left), "sqlite:x.db")

    assert "##[" not in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert not [line for line in text.splitlines() if line.strip().startswith("::")]


@settings(max_examples=cases(20), deadline=None)
@given(change=hostile_changes())
def test_colour_changes_nothing_but_the_colour(change: Change) -> None:
    """What is piped into a file is what was on the screen."""
    plan = a_plan(change)

    coloured = plan_as_text(plan, "sqlite:x.db", style=Style(colour=True))

    assert re.sub(r"\x1b\[[0-9;]+m", "", coloured) == plan_as_text(plan, "sqlite:x.db")
    assert "\x1b[" in coloured
