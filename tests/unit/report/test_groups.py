"""Equal items stand together where they are many; the others keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, error, note, warning
from reconciler.plan.model import Adopt, Cause, CauseKind, Change, Create, Delete, Update, ref_of
from reconciler.report.findings import findings_as_text
from reconciler.report.groups import grouped, in_short
from reconciler.report.layout import Layout
from reconciler.report.plan_document import PlanDocument, equal_together, members_in_words
from reconciler.resources.ref import Kind, ResourceRef
from tests.builders import NONE, a_plan, a_ref, an_action, an_application, declared, held
from tests.drawings import plan_as_text
from tests.rows import each_row


@each_row(
    ("items", "above", "groups"),
    [
        pytest.param("", 1, [], id="nothing"),
        pytest.param("ab", 1, ["a", "b"], id="no two alike"),
        pytest.param("abab", 2, ["a", "b", "a", "b"], id="no more than the limit"),
        pytest.param("abaca", 2, ["aaa", "b", "c"], id="at the place of the first"),
        pytest.param("baab", 1, ["bb", "aa"], id="several groups"),
    ],
)
def test_items_with_one_key_stand_together(items: str, above: int, groups: list[str]) -> None:
    """In an order that depends on nothing but the items."""
    assert grouped(items, str, above) == [tuple(group) for group in groups]


@each_row(
    ("names", "text"),
    [
        (["b"], "b"),
        (["c", "a", "b"], "a, b, c"),
        (["d", "c", "a", "b"], "a, b, c and 1 more"),
    ],
)
def test_three_names_stand_for_all(names: list[str], text: str) -> None:
    assert in_short(names) == text


OLD, NEW = "https://www.example.com/cb", "https://new.example.com/cb"


def app(number: int) -> ResourceRef:
    return a_ref(name=f"w{number:02}")


def moved(number: int, **spec: Any) -> Update:
    """Return the update of one application from the old to the new redirect URI."""
    ref = app(number)
    before = an_application(redirectUris=[OLD, f"https://w{number}.example.com/"])
    after = an_application(redirectUris=[NEW, f"https://w{number}.example.com/"], **spec)
    return Update(declared(ref, after), held(ref, before, object_id=f"{number}"))


def sizes(changes: Sequence[Change], **more: Any) -> list[int]:
    """Return how many changes each group of a plan has."""
    return [
        len(group) for group in equal_together(PlanDocument(a_plan(*changes, **more), "").changes)
    ]


MOVED = [moved(number) for number in range(12)]


@each_row(
    ("changes", "found"),
    [
        pytest.param(MOVED[:10], [1] * 10, id="a short plan is whole"),
        pytest.param(MOVED[:11], [11], id="a long one is not; other items of lists may differ"),
        pytest.param([*MOVED, moved(90, devMode=True)], [12, 1], id="another field"),
        pytest.param(
            [moved(at, clockSkew=f"{1 + at % 3}s") for at in range(12)],
            [4, 4, 4],
            id="other values",
        ),
        pytest.param(
            [*MOVED[:8], *(moved(at, clockSkew="1s") for at in range(20, 23))],
            [8, 1, 1, 1],
            id="three are named anyway",
        ),
        pytest.param(
            [*MOVED, *(Adopt(each.resource, each.held) for each in MOVED)],
            [12, 12],
            id="an adoption is no update",
        ),
        pytest.param(
            [Create(declared(a_ref(Kind.ACTION, f"a{at}"), an_action())) for at in range(12)],
            [12],
            id="creates",
        ),
        pytest.param(
            [Delete(held(a_ref(Kind.ACTION, f"a{at}"))) for at in range(12)],
            [1] * 12,
            id="a delete is equal to no other: what it ends is its own",
        ),
        pytest.param(
            [
                Update(
                    declared(a_ref(Kind.PROJECT, f"p{at}", project=""), {"hasProjectCheck": True}),
                    held(
                        a_ref(Kind.PROJECT, f"p{at}", project=""),
                        {"hasProjectCheck": False},
                        carried={"x": 1} if at % 2 else {},
                    ),
                )
                for at in range(12)
            ],
            [6, 6],
            id="fields that are kept and not known",
        ),
    ],
)
def test_equal_changes_are_one_group(changes: list[Change], found: list[int]) -> None:
    """Equal in all that a report tells, but for names and ids."""
    assert sizes(changes) == found


def test_a_block_sets_a_change_apart() -> None:
    """What must not be applied is never among what may be."""
    blocked = error("GUARD-CRITICAL", "a critical object", "Allow it.", ref=app(5))

    assert sizes(MOVED, blocks=(blocked,)) == [11, 1]


def test_causes_differ_by_who_and_not_by_when() -> None:
    """Two hundred objects that one token changed were changed at two hundred times."""

    def changed(number: int) -> Cause:
        by = "eve" if number == 7 else "ana"
        return Cause(CauseKind.SERVICE, by, f"2026-01-02T03:04:{number:02}Z", number + 1)

    causes = {ref_of(each): {"redirectUris": changed(at)} for at, each in enumerate(MOVED)}
    plan = a_plan(*MOVED, causes=causes)

    text = plan_as_text(plan, "sqlite:x.db", folded=True)

    assert "    # changed on the service since, by ana\n" in text
    assert "    # changed on the service since, by eve at 2026-01-02T03:04:07Z" in text
    assert "~ 11 applications: " in text


def test_names_are_sorted_and_made_visible() -> None:
    """Whatever the order of the plan."""
    names = ["b\x1b", "d", "c", "a"]
    (group,) = grouped([Create(declared(a_ref(name=name))) for name in names], type, 1)
    shown = PlanDocument(a_plan(*group), "").changes

    assert members_in_words(tuple(shown)) == (
        "acme/shop/a, acme/shop/b\\u{1b}, acme/shop/c and 1 more"
    )


SEVERE = [
    Update(declared(app(at), an_application(authMethodType=NONE, devMode=True)), held(app(at)))
    for at in range(20, 40)
]
LONG = a_plan(
    *MOVED,
    *SEVERE,
    blocks=(
        error("GUARD-MANY-UPDATES", "too many", "Give --allow-updates 32."),
        *(
            error("GUARD-CRITICAL", "weakened", f"Give --break-glass {each.resource.ref.address}.")
            for each in SEVERE
        ),
    ),
)


def test_a_group_names_its_risks_and_three_of_its_members() -> None:
    """The whole text of a long plan, folded: what decides stands last."""
    text = plan_as_text(LONG, "sqlite:x.db", folded=True)

    assert (
        text.partition("Digest: ")[0]
        == """\
Service sqlite:x.db (instance instance-1), tree default

Risks, the most dangerous first:
  credential-weaker, dev-mode-on  20 applications: acme/shop/w20, acme/shop/w21, acme/shop/w22 \
and 17 more
  redirect-host-added, redirect-removed  12 applications: acme/shop/w00, acme/shop/w01, \
acme/shop/w02 and 9 more

~ 12 applications: redirectUris[0]: "https://www.example.com/cb" -> "https://new.example.com/cb"
    ! redirect-host-added (redirectUris): codes and tokens may go to a host they did not go to \
before
    ! redirect-removed (redirectUris): sign-ins that come back there fail
    acme/shop/w00, acme/shop/w01, acme/shop/w02 and 9 more

~ 20 applications:
    authMethodType: "OIDC_AUTH_METHOD_TYPE_BASIC" -> "OIDC_AUTH_METHOD_TYPE_NONE"
    devMode: false -> true
    ! credential-weaker (authMethodType): the application proves its identity by a weaker method, \
or not at all
    ! dev-mode-on (devMode): checks of the OIDC specification are not performed
    acme/shop/w20, acme/shop/w21, acme/shop/w22 and 17 more

Plan: 0 to create, 32 to update, 0 to delete.
Guards:
  error GUARD-MANY-UPDATES: too many
    Give --allow-updates 32.
  error GUARD-CRITICAL: weakened
    Give --break-glass OidcApplication/acme/shop/w20.
  error GUARD-CRITICAL: weakened
    Give --break-glass OidcApplication/acme/shop/w21.
  error GUARD-CRITICAL: weakened
    Give --break-glass OidcApplication/acme/shop/w22.
  and 17 more of GUARD-CRITICAL.
Risks: 20 credential-weaker, 12 redirect-host-added, 20 dev-mode-on, 12 redirect-removed.
"""
    )
    assert text.splitlines()[-3:] == [
        "Shown in short: 32 of 32 changes. Give --full to see each.",
        "Next: Change the manifests, or allow what each guard names, and plan again.",
        "Blocked by 21 guards: apply refuses this plan.",
    ]


def test_of_many_deletes_of_one_kind_fifty_are_shown() -> None:
    """Those of another kind, with another risk or a block are always shown."""
    actions = [Delete(held(a_ref(Kind.ACTION, f"a{at:02}"))) for at in range(60)]
    apps = [Delete(held(app(at))) for at in range(3)]
    blocked = error("GUARD-CRITICAL", "a critical object", "Allow it.", ref=ref_of(actions[59]))
    plan = a_plan(*actions, *apps, blocks=(blocked,))

    text = plan_as_text(plan, "sqlite:x.db", folded=True)

    assert text.count("\n- Action ") == 51
    assert "\n- Action acme/a59 " in text
    assert text.count("\n- OidcApplication ") == 3
    assert "\n- 9 more deletes (9 Action). Show them with --full.\n" in text
    assert "Shown in short: 9 of 63 changes. Give --full to see each." in text
    assert plan_as_text(plan, "sqlite:x.db").count("\n- Action ") == 60


def test_a_guard_at_the_end_is_broken_once() -> None:
    """Its first line is indented, which left one word of it on a line of its own."""
    summary = "too many applications would be changed or removed"
    block = error("GUARD-MANY-UPDATES", summary, "Look again.")

    lines = plan_as_text(
        a_plan(*MOVED, blocks=(block,)), "sqlite:x.db", folded=True, width=64
    ).splitlines()

    at = lines.index("Guards:")
    assert lines[at + 1 : at + 3] == [
        "  error GUARD-MANY-UPDATES: too many applications would be",
        "    changed or removed",
    ]


def test_a_narrow_terminal_breaks_lines_between_words_only() -> None:
    """And never between a flag and its value."""
    lines = plan_as_text(LONG, "sqlite:x.db", folded=True, width=60).splitlines()

    assert '    redirectUris[0]: "https://www.example.com/cb"' in lines
    assert '      -> "https://new.example.com/cb"' in lines
    assert [line for line in lines if len(line) > 60 and "sha256:" not in line] == []


def findings(count: int, code: str = "URI-HTTP") -> list[Diagnostic]:
    return [warning(code, f"not encrypted {at}", "Write https.") for at in range(count)]


ONE = "warning URI-HTTP: not encrypted {}\n    Write https.\n"


@each_row(
    ("found", "text"),
    [
        pytest.param(
            findings(10),
            "".join(ONE.format(at) for at in range(10)) + "10 warnings",
            id="ten are whole",
        ),
        pytest.param(
            findings(11),
            "".join(ONE.format(at) for at in range(3))
            + "and 8 more of URI-HTTP. Show them with --full.\n11 warnings",
            id="of eleven there are three",
        ),
        pytest.param(
            [*findings(6), note("N", "n", "Do."), *findings(6), error("E", "e", "Do.")],
            "".join(ONE.format(at) for at in range(3))
            + "and 9 more of URI-HTTP. Show them with --full.\n"
            "note N: n\n    Do.\nerror E: e\n    Do.\n1 error, 12 warnings, 1 note",
            id="others are shown, and the counts are of all",
        ),
    ],
)
def test_many_findings_of_one_code_are_counted(found: list[Diagnostic], text: str) -> None:
    """A tree with a thousand equal warnings does not bury what the plan says."""
    assert findings_as_text(found, Layout(folded=True)) == text
    assert "more of" not in findings_as_text(found)
