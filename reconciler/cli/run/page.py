"""The page of a run: its state for people, drawn as plans are, with nothing that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from reconciler.cli.output import time_in_words
from reconciler.cli.run.status import COMMIT, Status
from reconciler.continuous.decision import HELD, Condition
from reconciler.continuous.heal import CONTESTED
from reconciler.continuous.notices import WORDS
from reconciler.plan.drift import DriftedObject
from reconciler.report.html import changed, drawn_field, named_ref, plan_head
from reconciler.report.page import (
    facts,
    link,
    name_of,
    onwards,
    page,
    panel,
    search,
    shown_text,
    time,
    words,
)
from reconciler.report.plan_document import PlanDocument
from reconciler.report.visible import shown_address, without_credentials
from reconciler.resources.ref import ResourceRef, fold

ROWS = 100
_SHORT = 12
_SEVERE = {each.value for each in (*HELD, Condition.CONTESTED, Condition.FAILING)}
_STATES = ("pending", "blocked", "drifted", "contested", "unmanaged", "in step")
_Draw: TypeAlias = Callable[[int], str]


class _Row(NamedTuple):
    """One object on the page, with the states that it is in."""

    states: frozenset[str]
    ref: ResourceRef
    draw: _Draw


class _Prepared(NamedTuple):
    """The parts of the page that show a plan and drift, and what they were made of."""

    of: tuple[object, object, object]
    head: str
    rows: Sequence[_Row]
    choices: Mapping[str, Mapping[str, str]]


class StatusPage:
    """Draws the state of a run. What a plan costs to prepare is spent once for each plan."""

    def __init__(self, commit_url: str = "") -> None:
        """``commit_url`` is the address of a commit, with ``{commit}`` in it; empty for none."""
        self._commit_url = commit_url
        self._known: _Prepared | None = None

    def draw(self, status: Status, query: Mapping[str, str]) -> str:
        """Return the page, with the objects that fit a query."""
        environment = status.purpose.environment or "one service"
        at_rest = "in step" if status.rounds else "starting"
        states = [each.value for each in status.conditions] or [at_rest]
        prepared = self._prepared(status)
        body = "".join(
            (
                f'<p class="states">{"".join(map(_tag, states))}</p>',
                *_panels(status),
                prepared.head,
                self._facts(status),
                search(query, prepared.choices),
                _page_of(prepared.rows, query),
                _timeline(status),
            )
        )
        title = f"{environment}: {', '.join(states)}"
        refresh = not any(query.values())  # no reload during a search
        return page(title, "reconciler run", name_of(environment), body, refresh=refresh)

    def _prepared(self, status: Status) -> _Prepared:
        known = self._known
        now = (status.plan, status.drift, status.left)
        if known is None or any(a is not b for a, b in zip(known.of, now, strict=True)):
            document = PlanDocument(status.plan, status.purpose.service) if status.plan else None
            rows = [*_rows_of(status, document)]
            head = plan_head(document) if document else ""
            known = self._known = _Prepared(now, head, rows, _choices(rows))
        return known

    def _facts(self, status: Status) -> str:
        purpose = status.purpose
        record = status.record
        since = f" since {_moment(status.seen_at)}" if status.seen_at else ""
        applied = self._commit(status.applied)
        if record is not None:
            applied += f" recorded {time(record.at)} by {name_of(record.writer)}"
        return facts(
            {
                "Repository": shown_text(without_credentials(purpose.repository)),
                "Ref": shown_text(purpose.ref),
                "Commit seen": self._commit(status.seen) + since,
                "Commit applied": applied,
                "Service": shown_text(shown_address(purpose.service)),
                "Tree": shown_text(status.tree) if status.tree else "",
                "Mode": words(status.mode.value),
                "Last round": _moment(status.round_at),
                "Everything observed": _moment(status.looked_at),
            }
        )

    def _commit(self, commit: str) -> str:
        if not commit:
            return '<span class="plain">none</span>'
        shown = shown_text(commit[:_SHORT])
        return link(self._commit_url.replace(COMMIT, commit), shown) if self._commit_url else shown


def _tag(state: str) -> str:
    look = "tag stop" if state in _SEVERE else "tag"
    return f'<span class="{"tag fine" if state == "in step" else look}">{state}</span> '


def _moment(seconds: int) -> str:
    return time(time_in_words(seconds)) if seconds else ""


def _panels(status: Status) -> Iterator[str]:
    """Yield what may need an operator, the worst first."""
    if status.failures:
        yield panel("blocked", "The last round failed", _items(map(words, status.failures)))
    is_shown = bool(status.plan and status.plan.blocks)  # with the plan, each in full
    left = [hold for hold in status.holds if not (is_shown and hold.why is Condition.BLOCKED)]
    if left:
        holds = (
            f'<span class="code">{hold.why.value}</span> <bdi>{words(hold.problem)}</bdi>'
            f'<p class="remedy"><bdi>{words(hold.remedy)}</bdi></p>'
            for hold in left
        )
        yield panel("blocked", "The commit seen is not applied", _items(holds))
    if (pause := status.pause) is not None:
        said = (
            f"<p>Until {time(pause.until)}, by {name_of(pause.writer)} since {time(pause.since)}: "
            f"<bdi>{words(pause.reason)}</bdi></p>"
        )
        yield panel("risky", "Paused: nothing is written", said)
    if Condition.DIFFERING in status.conditions:
        means, remedy = WORDS[Condition.DIFFERING]
        said = f'<p>{means}</p><p class="remedy">{remedy}</p>'
        yield panel("risky", "Differing without drift", said)
    if status.left:
        items = (
            f"{named_ref(left.ref)}: <bdi>{words(left.why)}</bdi>" for left in status.left[:ROWS]
        )
        yield panel("risky", f"Left to a person ({len(status.left)})", _items(items))
    if Condition.WATCHING in status.conditions:
        yield panel("", "Watching", "<p>Another run leads this tree; this one watches.</p>")


def _items(items: Iterator[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _rows_of(status: Status, document: PlanDocument | None) -> Iterator[_Row]:
    """Yield every object, those first that may need an operator."""
    contested = {each.ref for each in status.left if each.why == CONTESTED}
    drift, plan = status.drift, status.plan
    for drifted in drift.objects if drift else ():
        states = {"drifted", "contested"} if drifted.ref in contested else {"drifted"}
        yield _Row(frozenset(states), drifted.ref, partial(_drifted, drifted))
    for ref in drift.untold if drift else ():
        yield _Row(
            frozenset({"drifted"}), ref, partial(_plain, ref, "changed by an unknown writer")
        )
    for shown in document.for_review if document else ():
        states = {"pending", "blocked"} if shown.blocks else {"pending"}
        yield _Row(frozenset(states), shown.ref, partial(changed, shown, is_open=False))
    for ref in drift.unmanaged if drift else ():
        yield _Row(frozenset({"unmanaged"}), ref, partial(_plain, ref, "declared nowhere"))
    differs = {*drift.refs} if drift else set()
    for ref in plan.in_step if plan else ():
        if ref not in differs:
            yield _Row(frozenset({"in step"}), ref, partial(_plain, ref, "in step"))


def _plain(ref: ResourceRef, state: str, place: int) -> str:
    return f'<p class="c row" id="c{place}">{named_ref(ref)} <span class="plain">{state}</span></p>'


def _drifted(drifted: DriftedObject, place: int) -> str:
    """Return what was changed on an object by hand: which fields, by whom, since when."""
    cause = drifted.cause
    what = "removed" if drifted.removed else "made again" if drifted.removed_id else "changed"
    fields = "".join(drawn_field(each, is_new=each.before is None) for each in drifted.fields)
    tree = f" for tree {name_of(cause.tree)}" if cause.tree else ""
    return (
        f'<details class="c risk" id="c{place}" open><summary>{named_ref(drifted.ref)}'
        f'<span class="tag">{what} on the service</span></summary><div class="body">'
        f"<p>By {name_of(cause.by)}{tree} since {time(cause.at)}</p>{fields}</div></details>"
    )


def _choices(rows: Sequence[_Row]) -> Mapping[str, Mapping[str, str]]:
    kinds = sorted({row.ref.kind.value for row in rows})
    organizations = sorted({row.ref.organization for row in rows})
    return {
        "state": {"": "any state", **{each: each for each in _STATES}},
        "kind": {"": "any kind", **{each: each for each in kinds}},
        "organization": {"": "any organization", **{each: each for each in organizations}},
    }


def _page_of(rows: Sequence[_Row], query: Mapping[str, str]) -> str:
    found = [row for row in rows if _fits(row, query)]
    cursor = query.get("cursor", "")
    first = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 9 else 0
    part = found[first : first + ROWS]
    drawn = "".join(row.draw(first + place) for place, row in enumerate(part))
    last = first + len(part)
    nothing = "Nothing fits." if rows else "No object was looked at yet."
    counted = f"{first + 1} to {last} of {len(found)}" if part else nothing
    following = str(last) if last < len(found) else ""
    return (
        f'<section id="objects" aria-label="Objects"><p class="plain">{counted}</p>{drawn}'
        f"</section>{onwards(query, following)}"
    )


def _fits(row: _Row, query: Mapping[str, str]) -> bool:
    text, kind, organization, state = (
        query.get(name, "") for name in ("text", "kind", "organization", "state")
    )
    return (
        fold(text) in fold(str(row.ref))
        and kind in {"", row.ref.kind.value}
        and organization in {"", row.ref.organization}
        and (not state or state in row.states)
    )


def _timeline(status: Status) -> str:
    if not status.timeline:
        return ""
    items = (
        f"{_moment(each.at)} <bdi>{words(each.text)}</bdi>" for each in reversed(status.timeline)
    )
    return panel("", "Since this run was started", _items(items))
