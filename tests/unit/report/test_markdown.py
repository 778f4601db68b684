"""The comment under a pull request, as a Markdown parser reads it: nothing in it is not ours."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reconciler.diagnostics import error
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Delete, Plan, Unmanaged, Update
from reconciler.plan.risk import MEANINGS
from reconciler.report.plan_document import About
from reconciler.report.visible import LEAST, LIMIT
from reconciler.resources.ref import Kind
from tests.builders import (
    GREET,
    NONE,
    SHOP,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.drawings import plan_as_markdown
from tests.effort import cases
from tests.hostile import FENCES, MARK, PAYLOADS, hostile_findings, hostile_plan, marked, payloads
from tests.rows import each_row

COUNTS = r"\d+ to create, \d+ to update, (?:\d+ to adopt, )?\d+ to delete"
NAMES = "|".join(MEANINGS)
MARKER = "<!-- reconciler-plan service=sqlite:x.db tree=default -->"
COMMAND = r"reconciler apply(?: --digest sha256:[0-9a-f]{64})?\n"
# Of each severity that there is, in this order.
COUNTED = r"(?=\d)(?:\d+ errors?)?(?:, )?(?:\d+ warnings?)?(?:, )?(?:\d+ notes?)?"
SAID = "|".join(map(re.escape, MEANINGS.values()))
NEXT = (
    r"Change the manifests, or allow what each guard names, and plan again\.|"
    r"Review the changes\. After approval, this command with the options of this plan applies "
    r"exactly this plan, or nothing\.|Nothing to do\.|Deliver the client secrets that are owed\."
)
BLOCKED = "apply refuses this plan.** Each guard says how to allow just that."
CODE = "function greet(ctx, api) { " + "const a = 1; " * 60
HIDDEN = "a comment has a limit. `reconciler plan --full` shows them all."
PLACE = "`Service sqlite:x.db (instance instance-1), tree default`"
OURS = (
    rf"(?:Plan: {COUNTS}|No changes\. The service holds what the manifests declare)",
    r"Blocked",
    r"Risks",
    r"Details",
    rf"\*\*Blocked by \d+ guards?: {re.escape(BLOCKED)}",
    rf"Risks: (?:\d+ `(?:{NAMES})`(?:, )?)+(?: and \d+ more classes)?",
    COUNTED,
    r"\d+ in step, \d+ held but declared nowhere",
    rf"\*\*\d+ of \d+ changes are (?:not shown|cut short) below\*\*: {re.escape(HIDDEN)}",
    r"\*\*\d+ of \d+ changes are not shown below\*\* and \*\*\d+ are cut short\*\*: "
    + re.escape(HIDDEN),
    r"Digest: `sha256:[0-9a-f]{64}`",
    r"\d+ more (?:is|are) not shown here\.",
    rf"`(?:{NAMES})` \(\d+\): (?:{SAID})",
    rf"\*\*Next:\*\* (?:{NEXT})",
    r"Equal changes stand together: `reconciler plan --full` shows each\.",
)
TITLES = (
    "to delete|to update|to create|held but declared nowhere: left alone|"
    "to adopt: updates of what this tree never applied"
)
RISK = rf"<code>(?:{NAMES})</code>"
PAGE = r"https://docs\.example\.com/guards\.md#[a-z-]+"
SAFE = r"(?:(?!--)\S)*"
FOLDS = (
    rf"<!-- reconciler-plan service={SAFE} tree={SAFE}(?: (?:target|exclude)={SAFE})* -->",
    rf"<details>\n<summary>(?:\d+ (?:{TITLES})|{COUNTED})</summary>",
    rf'<details>\n<summary>(?:{RISK}|<a href="{PAGE}">{RISK}</a>) \(\d+\): (?:{SAID})</summary>',
    r"</details>",
)
PLAIN = {
    "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
    "paragraph_open", "paragraph_close", "heading_open", "heading_close",
}  # fmt: skip


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").parse(text)


def check_only_ours(text: str) -> None:
    """Assert that whatever is not in a fence is a sentence of ours."""
    tokens = parsed(text)
    for token in tokens:
        if token.type == "fence":
            assert token.info in {"text", "diff", "sh"}
            assert token.info != "sh" or re.fullmatch(COMMAND, token.content)
        elif token.type == "inline":
            ours = any(re.fullmatch(ours, token.content) for ours in OURS)
            assert ours or is_the_place(token) or is_the_part(token), token.content
        elif token.type == "html_block":
            assert any(re.fullmatch(fold, token.content.rstrip()) for fold in FOLDS), token.content
        else:
            assert token.type in PLAIN, token
            assert token.tag in {"", "ul", "li", "p", "h2", "h3"}
    opened = sum(token.content.startswith("<details>") for token in tokens)
    assert opened == sum(token.content.rstrip() == "</details>" for token in tokens)


def is_the_place(token: Token) -> bool:
    """Tell the line of service and tree, which is code and nothing else."""
    children = token.children or []
    return [child.type for child in children] == ["code_inline"] and children[0].content.startswith(
        "Service "
    )


def is_the_part(token: Token) -> bool:
    """Tell the line of the options that select a part of the tree, with our words around them."""
    children = [(child.type, child.content) for child in token.children or []]
    kinds, texts = [kind for kind, _ in children], [text for _, text in children]
    return (
        kinds == ["text", "code_inline", "text"]
        and texts[0] == "Part of the tree: "
        and texts[1].startswith("--")
        and re.fullmatch(r"(, \+\d+ that it needs)?\. Left out: [a-z0-9, ]+\.", texts[2])
        is not None
    )


def fences(text: str) -> list[str]:
    return [token.content for token in parsed(text) if token.type == "fence"]


def outside_of_fences(text: str) -> str:
    lines = text.split("\n")
    for token in parsed(text):
        if token.type == "fence" and token.map:
            lines[slice(*token.map)] = [""] * (token.map[1] - token.map[0])
    return "\n".join(lines)


RISKY = a_plan(
    Create(declared(a_ref(name="new"), an_application(clockSkew="1s"))),
    Update(
        declared(WEB, an_application(authMethodType=NONE)),
        held(WEB, an_application(postLogoutRedirectUris=["https://shop.example.com/"])),
    ),
    Delete(held(GREET)),
    unmanaged=(Unmanaged(SHOP, "7"),),
    blocks=(error("GUARD-CRITICAL", "a critical object would be weakened", "Do this.", ref=WEB),),
)


def test_summary_and_digest_come_first_then_what_is_blocked_and_what_is_risky() -> None:
    """A reviewer who reads ten lines has read the ten that matter."""
    about = About("2026-11-22T00:31:07Z", "c" * 40)
    assert plan_as_markdown(RISKY, "sqlite:x.db", about=about).split("\n")[:26] == [
        MARKER,
        "## Plan: 1 to create, 1 to update, 1 to delete",
        "",
        f"- {PLACE}",
        f"- Made `2026-11-22T00:31:07Z`, commit `{'c' * 40}`",
        f"- **Blocked by 1 guard: {BLOCKED}",
        "- Risks: 1 `action-removed`, 1 `credential-weaker`, 1 `logout-removed`",
        "- 2 in step, 1 held but declared nowhere",
        f"- Digest: `{plan_digest(RISKY)}`",
        "",
        "### Blocked",
        "",
        "```text",
        "error GUARD-CRITICAL: a critical object would be weakened",
        "    Do this.",
        "```",
        "",
        "### Risks",
        "",
        "- `action-removed` (1): what it enforced is no longer enforced",
        f"- `credential-weaker` (1): {MEANINGS['credential-weaker']}",
        "- `logout-removed` (1): sign-outs that come back there fail",
        "",
        "```text",
        "action-removed: Action acme/greet",
        "credential-weaker, logout-removed: OidcApplication acme/shop/storefront",
    ]


@pytest.mark.parametrize(
    ("docs", "link"),
    [
        ("", "- `action-removed` (1): "),
        (
            "https://docs.example.com/v1/",
            "- [`action-removed`](https://docs.example.com/v1/guards.md#action-removed) (1): ",
        ),
        ("javascript:alert(1)", "- `action-removed` (1): "),
        ("https://a.example.com/)[x](y", "- `action-removed` (1): "),
    ],
    ids=["none", "an address", "no address", "an address that would leave its link"],
)
def test_a_risk_links_to_its_page(docs: str, link: str) -> None:
    """Where the documents are is known to who runs the job."""
    text = plan_as_markdown(RISKY, "sqlite:x.db", about=About(docs=docs))

    assert f"\n{link}{MEANINGS['action-removed']}\n" in text
    assert docs in {"", "https://docs.example.com/v1/"} or docs not in text


def test_what_is_no_commit_is_not_shown() -> None:
    """A job can set its variables to anything."""
    assert "[x]" not in plan_as_markdown(RISKY, "sqlite:x.db", about=About(commit="[x](y)"))


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (a_plan(), "**Next:** Nothing to do.\n"),
        (
            RISKY,
            "**Next:** Change the manifests, or allow what each guard names, and plan again.\n",
        ),
        (
            a_plan(Create(declared(WEB))),
            f"```sh\nreconciler apply --digest {plan_digest(a_plan(Create(declared(WEB))))}\n```\n",
        ),
    ],
    ids=["nothing", "blocked", "changes"],
)
def test_the_comment_ends_with_what_to_do_next(plan: Plan, said: str) -> None:
    """A newcomer reads it to the end."""
    assert plan_as_markdown(plan, "sqlite:x.db").endswith(said)


def test_a_change_is_shown_as_a_difference_with_its_marks_in_the_first_column() -> None:
    """That is where GitHub looks for what to colour."""
    update = next(
        fence for fence in fences(plan_as_markdown(RISKY, "sqlite:x.db")) if fence.startswith("!")
    )

    assert update.split("\n") == [
        "! OidcApplication acme/shop/storefront  (id oid-shop-storefront)",
        "# GUARD-CRITICAL: a critical object would be weakened",
        f"# credential-weaker: {MEANINGS['credential-weaker']}",
        "# logout-removed: sign-outs that come back there fail",
        "    authMethodType:",
        '-     "OIDC_AUTH_METHOD_TYPE_BASIC"',
        '+     "OIDC_AUTH_METHOD_TYPE_NONE"',
        "    postLogoutRedirectUris:  # not in the manifest: the update resets it",
        '-     "https://shop.example.com/"',
        "",
    ]


def risky(count: int) -> Plan:
    """Return a plan in which this many applications move to a new host, and a few do more."""
    changes = []
    for at in range(count):
        ref = a_ref(name=f"w{at:03}")
        before = {"redirectUris": ["https://www.example.com/cb", f"https://w{at}.example.com/"]}
        after = {"redirectUris": ["https://new.example.com/cb", f"https://w{at}.example.com/"]}
        more = {"authMethodType": NONE} if at % 50 == 0 else {}
        changes.append(
            Update(
                declared(ref, an_application(**after, **more)), held(ref, an_application(**before))
            )
        )
    return a_plan(*changes)


def test_many_risks_stand_folded_by_class_and_equal_changes_together() -> None:
    """Two hundred risks are three lines and their names, and not two hundred lines."""
    docs = About(docs="https://docs.example.com")
    text = plan_as_markdown(risky(200), "sqlite:x.db", about=docs)

    check_only_ours(text)
    page = "https://docs.example.com/guards.md#"
    titles = [
        f'<a href="{page}{name}"><code>{name}</code></a> ({count}): {MEANINGS[name]}'
        for name, count in (
            ("credential-weaker", 4),
            ("redirect-host-added", 200),
            ("redirect-removed", 200),
        )
    ]
    assert re.findall("<summary>(.*)</summary>", text) == [*titles, "200 to update"]
    weaker, added, removed, changes, _ = fences(text)
    assert weaker.splitlines() == [
        f"OidcApplication acme/shop/w{at}" for at in ("000", "050", "100", "150")
    ]
    assert added == removed
    assert added.splitlines() == [f"OidcApplication acme/shop/w{at:03}" for at in range(200)]
    assert (
        "! 4 applications\n# acme/shop/w000, acme/shop/w050, acme/shop/w100 and 1 more\n" in changes
    )
    assert changes.endswith(
        "! 196 applications\n"
        "# acme/shop/w001, acme/shop/w002, acme/shop/w003 and 193 more\n"
        f"# redirect-host-added: {MEANINGS['redirect-host-added']}\n"
        f"# redirect-removed: {MEANINGS['redirect-removed']}\n"
        "    redirectUris[0]:\n"
        '-     "https://www.example.com/cb"\n'
        '+     "https://new.example.com/cb"\n'
    )
    assert "- Equal changes stand together: `reconciler plan --full` shows each.\n" in text
    assert "not shown" not in text


@pytest.mark.parametrize("count", [10, 11])
def test_ten_risks_are_a_list_and_ten_changes_are_whole(count: int) -> None:
    """Nobody has to open a fold for what fits on a screen."""
    text = plan_as_markdown(risky(count), "sqlite:x.db")

    assert ("(10): " in text, "<code>" in text) == (count == 10, count == 11)
    assert text.count("\n! ") == (10 if count == 10 else 2)


@pytest.mark.parametrize("limit", [LEAST, 3000, 6000])
def test_many_risks_stay_within_the_limit(limit: int) -> None:
    """A class without room is in the counts at the top, with all others."""
    text = plan_as_markdown(risky(200), "sqlite:x.db", limit=limit)

    check_only_ours(text)
    assert len(text) <= limit
    assert (
        "- Risks: 4 `credential-weaker`, 200 `redirect-host-added`, 200 `redirect-removed`\n"
        in text
    )


def test_many_findings_of_one_code_are_counted_in_a_comment() -> None:
    """What is told a thousand times leaves no room for what is told once."""
    found = [error("URI-HTTP", f"not encrypted {at}", "Write https.") for at in range(40)]
    fence = fences(plan_as_markdown(a_plan(), "sqlite:x.db", found))[0]

    assert fence.splitlines()[-3:] == [
        "error URI-HTTP: not encrypted 2",
        "    Write https.",
        "and 37 more of URI-HTTP",
    ]


def test_what_a_guard_asks_for_is_broken_to_be_seen_whole() -> None:
    """A fence is not wrapped: the flag was beyond the edge of the page."""
    asked = (
        "The limit is 30% where there are 10 or more. If that is meant, allow just that, for once:"
    )
    block = error("GUARD-MANY-UPDATES", "too many", f"{asked} --allow-updates 200.")

    text = plan_as_markdown(a_plan(Create(declared(a_ref())), blocks=(block,)), "sqlite:x.db")

    assert f"    {asked}\n    --allow-updates 200.\n" in text


def test_nothing_to_do_is_said_in_one_heading() -> None:
    """A comment without news is short."""
    text = plan_as_markdown(a_plan(), "sqlite:x.db")

    assert text.count("\n") == 8
    assert text.endswith("\n\n**Next:** Nothing to do.\n")
    assert "## No changes. The service holds what the manifests declare\n" in text
    check_only_ours(text)


@pytest.mark.parametrize("payload", payloads(*FENCES))
def test_what_others_wrote_stands_in_fences_alone(payload: str) -> None:
    """A pull request must not speak in the voice of the one who comments on it."""
    text = plan_as_markdown(
        hostile_plan([payload]), "sqlite:x.db", hostile_findings(marked(payload))
    )

    check_only_ours(text)
    assert MARK in text
    assert MARK not in outside_of_fences(text)


def test_every_fence_is_longer_than_what_is_in_it() -> None:
    """The one rule on which all the rest hangs, on a name that is nothing but back-ticks."""
    text = plan_as_markdown(a_plan(Create(declared(a_ref(name="`" * 150)))), "sqlite:x.db")

    assert f"\n{'`' * 151}diff\n" in text
    check_only_ours(text)


CHARACTERS = st.one_of(
    st.characters(),
    st.sampled_from("`~\n\r<>@#-*_[]()!&|:\\ \t\u202e\u2028"),
    st.sampled_from(PAYLOADS),
)
TEXTS = st.lists(CHARACTERS, max_size=12).map("".join)


@each_row("letter", ["`", "<", "\u202e", "&"])
@each_row("length", [12, 100, 300])
def test_long_names_leave_the_comment_within_the_least_limit(letter: str, length: int) -> None:
    """The head grows with the names of service and tree, and takes its room from the rest."""
    text = plan_as_markdown(hostile_plan([letter * length]), "sqlite:x.db", [], LEAST)

    assert len(text) <= LEAST


@pytest.mark.slow
@settings(max_examples=cases(133), deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), limit=st.sampled_from([LEAST, 5000, LIMIT]))
def test_no_text_at_all_gets_out_of_its_fence(texts: list[str], limit: int) -> None:
    """What nobody thought of is drawn by chance; and the limit holds whatever is drawn."""
    text = plan_as_markdown(hostile_plan(texts), "sqlite:x.db", [], limit)

    check_only_ours(text)
    assert len(text) <= limit
    assert text.isprintable() or not (set(text) - {"\n"} & {chr(at) for at in range(32)})


@cache
def many(count: int) -> Plan:
    """Return a plan of updates and creates, no two of them alike."""
    return a_plan(
        *(
            Update(declared(ref, an_action(script=f"x{at}")), held(ref))
            for at, ref in enumerate(a_ref(Kind.ACTION, f"n{at}") for at in range(count // 2))
        ),
        *(
            Create(declared(a_ref(name=f"n{at}"), an_application(clockSkew=f"0.{at:05}s")))
            for at in range(count - count // 2)
        ),
    )


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        (LEAST, 400),
        (10_000, 400),
        pytest.param(LIMIT, 20_000, marks=pytest.mark.slow),
    ],
)
def test_what_has_no_room_is_counted_and_the_summary_stays(limit: int, count: int) -> None:
    """A plan of 20,000 changes is still a comment, and it does not look complete."""
    plan, half = many(count), count // 2

    text = plan_as_markdown(plan, "sqlite:x.db", (), limit)

    check_only_ours(text)
    assert len(text) <= limit
    assert text.startswith(
        f"{MARKER}\n## Plan: {half} to create, {half} to update, 0 to delete\n\n- {PLACE}\n"
    )
    assert plan_digest(plan) in text
    (hidden,) = re.findall(rf"\*\*(\d+) of {count} changes are not shown below\*\*", text)
    shown = [
        line for fence in fences(text) for line in fence.split("\n") if line[:2] in {"! ", "+ "}
    ]
    assert int(hidden) + sum(" Action " in line or " Oidc" in line for line in shown) == count


def test_one_change_that_is_too_long_does_not_hide_the_others() -> None:
    """A script of a thousand lines is cut, and says by how much."""
    long = Update(declared(GREET, an_action(script="x\n" * 990)), held(GREET))
    text = plan_as_markdown(a_plan(long, Create(declared(WEB))), "sqlite:x.db")

    assert re.search(r"# \d+ more lines of this change\n", text)
    assert "+ OidcApplication acme/shop/storefront\n" in text
    assert "not shown" not in text
    assert f"- **1 of 2 changes are cut short below**: {HIDDEN}\n" in text


def test_a_long_line_is_cut_with_its_length() -> None:
    """Nobody reads four thousand characters on one line, and nobody may hide behind them."""
    uri = "https://a.example.com/" + "x" * 4000
    text = plan_as_markdown(
        a_plan(Create(declared(WEB, an_application(redirectUris=[uri])))), "sqlite:x.db"
    )

    assert re.search(r"x \[\d+ more characters\]\n", text)
    assert max(map(len, text.split("\n"))) < 500
    assert f"- **1 of 1 changes are cut short below**: {HIDDEN}\n" in text


@each_row(
    ("was", "becomes"),
    [
        (f"{CODE} claim('a'); }}", f"{CODE} claim('admin'); }}"),
        (f"claim('a'); {CODE} }}", f"claim('admin'); {CODE} }}"),
        (f"{CODE} claim('a'); {CODE} }}", f"{CODE} claim('admin'); {CODE} }}"),
        (f"{CODE} }}", f"{CODE} claim('admin'); }}"),
        (f"{CODE}\u200b claim('a'); }}", f"{CODE}\u200b claim('admin'); }}"),
    ],
)
def test_two_long_lines_are_shown_where_they_differ(was: str, becomes: str) -> None:
    """Cut at the same place, both sides of a changed script could look the same."""
    change = Update(declared(GREET, an_action(script=becomes)), held(GREET, an_action(script=was)))

    text = plan_as_markdown(a_plan(change), "sqlite:x.db")

    (gained,) = [line for line in text.split("\n") if line.startswith("+ ")]
    (lost,) = [line for line in text.split("\n") if line.startswith("-     ")]
    assert "claim('admin');" in gained
    assert gained[1:] != lost[1:]
    assert re.search(r"\[\d+ equal characters\]", gained)
    assert "cut short" not in text
    assert "more characters" not in text


def test_lines_that_differ_at_both_ends_are_cut_and_counted() -> None:
    """A difference that is shown must not hide another one behind it."""
    was, becomes = (f"{name}(); {CODE} claim('{name}'); }}" for name in ("a", "b"))
    change = Update(declared(GREET, an_action(script=becomes)), held(GREET, an_action(script=was)))

    text = plan_as_markdown(a_plan(change), "sqlite:x.db")

    assert re.search(r"\n\+     b\(\); .* \[\d+ more characters\]\n", text)
    assert f"- **1 of 1 changes are cut short below**: {HIDDEN}\n" in text


def test_a_long_line_that_stays_is_no_change_that_is_cut() -> None:
    was, becomes = (f"{CODE}\nclaim('{name}');" for name in ("a", "admin"))
    change = Update(declared(GREET, an_action(script=becomes)), held(GREET, an_action(script=was)))

    text = plan_as_markdown(a_plan(change), "sqlite:x.db")

    assert "+     claim('admin');\n" in text
    assert "cut short" not in text


def test_the_same_plan_gives_the_same_comment() -> None:
    """An unchanged comment need not be edited."""
    assert plan_as_markdown(RISKY, "sqlite:x.db") == plan_as_markdown(RISKY, "sqlite:x.db")
