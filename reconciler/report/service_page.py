"""Pages of what the service knows, drawn from the answers of its operations: ``GET /ui``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import quote

from reconciler.report.page import (
    facts,
    link,
    name_of,
    navigation,
    onwards,
    page,
    panel,
    search,
    shown_text,
    table,
    time,
    words,
)
from reconciler.resources.call import JsonObject
from reconciler.state import COMMIT

ROOT = "/ui"
EYEBROW = "identity service"
_STATES = {"": "any state", "ACTIVE": "active", "INACTIVE": "inactive"}
_CONTEXT = {
    **{key: key for key in ("tree", "commit", "revision", "run", "reason")},
    "undo": "undo of run",
}
"""Keys of the context of a write that a reader is shown, and their words."""
SHORT = 12  # digits of a commit
_Shown: TypeAlias = Mapping[str, Any]


def draw(name: str, shown: JsonObject) -> str:
    """Return a page of a name; ``shown`` is what it shows, as the service answers it."""
    return _PAGES[name](shown)


def _refused(shown: _Shown) -> str:
    unknown = shown["status"] == 401
    title = "Sign in" if unknown else f"Refused ({shown['status']})"
    message = shown["message"]
    what = f"<p>{words(message[:1].upper() + message[1:])}.</p>"
    after = (
        "<p>Reload the page, and give any name and a valid token with the role viewer. "
        "An administrator makes one with <code>reconciler token create</code>.</p>"
        if unknown
        else f"<p>{link(ROOT, 'Back to the organizations')}</p>"
    )
    return page(title, EYEBROW, title, what + after)


def _overview(shown: _Shown) -> str:
    query = shown["query"]
    rows = [
        [
            link(_of(each["id"]), name_of(each["name"])),
            time(_moment(each["sequence"])),
            _applied(each["applied"]),
            _notices(each),
        ]
        for each in shown["organizations"]
    ]
    heads = ("Organization", "Last change", "Trees, and what was applied", "Look at")
    listed = table("Organizations", heads, rows, "No organization that this token sees fits.")
    body = search(query, {}) + listed + onwards(query, shown["next"])
    # During a search the page is not reloaded.
    return _framed(shown, "Organizations", "Organizations", body, refresh=not any(query.values()))


def _applied(records: Sequence[_Shown]) -> str:
    return _list(
        f"{name_of(each['tree'])} at {shown_text(each['commit'][:SHORT])}, "
        f"{time(each['recordedAt'])}"
        for each in records
    )


def _list(items: Iterable[str]) -> str:
    inside = "".join(f"<li>{item}</li>" for item in items)
    return f'<ul class="cells">{inside}</ul>' if inside else ""


def _notices(head: _Shown) -> str:
    """Return what may need an operator: pauses, and secrets that are owed."""
    found = [f'<span class="tag">paused</span> {name_of(each["tree"])}' for each in head["pauses"]]
    if int(head["owed"]):
        owed = f"{int(head['owed'])} owed"
        found.append(link(f"{_of(head['id'])}/owed", f'<span class="tag">{owed}</span>'))
    return _list(found)


def _objects(shown: _Shown) -> str:
    query, organization = shown["query"], shown["organization"]
    rows = [
        [
            link(f"{ROOT}/objects/{quote(each['id'], safe='')}", name_of(each["name"])),
            f'<span class="kind">{words(each["kind"])}</span>',
            "active" if each["state"] == "ACTIVE" else '<span class="tag">inactive</span>',
            name_of(each["owner"]) if each["owner"] else '<span class="plain">none</span>',
            f"{time(each['details']['changeDate'])} by {name_of(each['changedBy'])}",
        ]
        for each in shown["objects"]
    ]
    heads = ("Object", "Kind", "State", "Tree", "Last change")
    kinds = {"": "any kind", **{kind: kind for kind in shown["kinds"]}}
    none = "Nothing here fits." + (
        " There is more to search on the next page." if shown["next"] else ""
    )
    body = (
        _about(organization)
        + search(query, {"kind": kinds, "state": _STATES})
        + table("Objects, the oldest first", heads, rows, none)
        + onwards(query, shown["next"])
    )
    return _of_organization(shown, "Objects", body)


def _about(organization: _Shown) -> str:
    """Return what is to be known of an organization before its objects: trees and pauses."""
    pauses = "".join(
        f"<li>{name_of(each['tree'])} until {time(each['until'])}, by {name_of(each['writer'])} "
        f"since {time(each['since'])}: <bdi>{words(each['reason'])}</bdi></li>"
        for each in organization["pauses"]
    )
    trees = [
        [
            name_of(each["tree"]),
            shown_text(each["commit"]),
            words(each["outcome"]),
            f"{time(each['recordedAt'])} by {name_of(each['writer'])}",
        ]
        for each in organization["applied"]
    ]
    heads = ("Tree", "Commit", "Outcome", "Recorded")
    paused = panel("risky", "Paused", f"<ul>{pauses}</ul>") if pauses else ""
    applied = table("Commits that were applied last", heads, trees, "No commit is recorded.")
    return paused + applied


def _changes(shown: _Shown) -> str:
    rows = [
        [
            time(each["recordedAt"]),
            words(each["type"]),
            link(f"{ROOT}/objects/{quote(each['id'], safe='')}", name_of(each["name"])),
            f'<span class="kind">{words(each["kind"])}</span>',
            _writer(each),
            _context(each["context"]),
        ]
        for each in shown["changes"]
    ]
    heads = ("Time", "Event", "Object", "Kind", "Writer", "Context")
    body = table("Changes, the newest first", heads, rows, "Nothing happened here yet.")
    refresh = not any(shown["query"].values())
    body += onwards(shown["query"], shown["next"])
    return _of_organization(shown, "Changes", body, refresh=refresh)


def _writer(event: _Shown) -> str:
    """Return the writer of an event, and what the service verified of it before the write."""
    return name_of(event["writer"]) + _said(event["verified"], "verified ")


def _context(context: _Shown) -> str:
    """Return what a writer said of its write. Any writer can say it: it proves nothing."""
    return _said({said: context[key] for key, said in _CONTEXT.items() if key in context})


def _said(texts: _Shown, before: str = "") -> str:
    return _list(
        f"{before}{words(key)} <bdi>{words(_shortened(value))}</bdi>"
        for key, value in texts.items()
        if isinstance(value, str) and value
    )


def _shortened(text: str) -> str:
    """Return the first digits of a commit; any other text as it is."""
    return text[:SHORT] if COMMIT.fullmatch(text) else text


def _owed(shown: _Shown) -> str:
    rows = [
        [
            link(f"{ROOT}/objects/{quote(each['id'], safe='')}", name_of(each["name"])),
            shown_text(each["clientId"]),
            "waits" if each["state"] == "owed" else '<span class="tag severe">lost</span>',
            f"{time(each['since'])} by {name_of(each['madeBy'])}",
            name_of(each["tree"]) if each["tree"] else "",
            time(each["expires"]),
        ]
        for each in shown["owedSecrets"]
    ]
    heads = ("Application", "Client id", "State", "Made", "Tree", "Kept until")
    caption = "Client secrets that wait for their delivery"
    body = table(caption, heads, rows, "No client secret waits for its delivery.")
    return _of_organization(shown, "Owed secrets", body + onwards(shown["query"], shown["next"]))


def _tokens(shown: _Shown) -> str:
    rows = [
        [
            name_of(each["name"]),
            words(each["role"]),
            "all"
            if each["allOrganizations"]
            else _list(link(_of(one), shown_text(one)) for one in each["organizations"]),
            time(each["created"]),
            _end_of(each),
        ]
        for each in shown["tokens"]
    ]
    heads = ("Token", "Role", "Organizations", "Made", "Ends")
    body = table("Tokens", heads, rows, "There is no token that this one may see.")
    return _framed(shown, "Tokens", "Tokens", body + onwards(shown["query"], shown["next"]))


def _end_of(token: _Shown) -> str:
    if token["revoked"]:
        return f"revoked {time(token['revoked'])}"
    return time(token["expires"]) or "never"


def _history(shown: _Shown) -> str:
    rows = [
        [
            time(each["recordedAt"]),
            words(each["type"]),
            _writer(each),
            _context(each["context"]),
            _list(map(_field, each["fields"])),
        ]
        for each in shown["events"]
    ]
    heads = ("Time", "Event", "Writer", "Context", "Fields")
    body = table("Events, the newest first", heads, rows, "There are no events.")
    left = shown["count"] - len(rows)
    if left or not shown["is_all"]:
        more = f"{left} older events" if shown["is_all"] else "More events than this page reads"
        body += f'<p class="plain">{more}: <code>reconciler history</code> shows them.</p>'
    about = f'<p class="plain">Id {shown_text(shown["id"])}</p>'
    return _framed(
        shown, "History", f"History of {name_of(shown['name'] or shown['id'])}", about + body
    )


def _field(field: Sequence[Any]) -> str:
    name, before, after = field
    was = f' <del class="o">{words(before)}</del>' if before is not None else ""
    return f'<span class="kind">{words(name)}</span>{was} <ins class="n">{words(after)}</ins>'


def _of_organization(shown: _Shown, title: str, body: str, *, refresh: bool = False) -> str:
    organization = shown["organization"]
    here = _of(organization["id"])
    tabs = navigation(
        "Organization",
        [
            (here, "Objects", title == "Objects"),
            (f"{here}/changes", "Changes", title == "Changes"),
            (f"{here}/owed", f"Owed secrets ({int(organization['owed'])})", "Owed" in title),
        ],
    )
    return _framed(shown, title, name_of(organization["name"]), tabs + body, refresh=refresh)


def _of(organization: str) -> str:
    return f"{ROOT}/organizations/{quote(organization, safe='')}"


def _framed(shown: _Shown, title: str, heading: str, body: str, *, refresh: bool = False) -> str:
    info = shown["info"]
    entries = [(ROOT, "Organizations", title == "Organizations")]
    if info["role"] == "admin":
        entries.append((f"{ROOT}/tokens", "Tokens", title == "Tokens"))
    about = facts(
        {
            "Service": shown_text(info["instance"]),
            "Your token": f"{words(info['role'])}, for "
            f"{'all' if info['allOrganizations'] else 'some'} organizations",
            "It ends": time(info["expires"]),
        }
    )
    return page(
        title, EYEBROW, heading, navigation("Service", entries) + body + about, refresh=refresh
    )


def _moment(sequence: str) -> str:
    """Return the time that a sequence is; empty for that of no event."""
    try:
        found = datetime.fromtimestamp(int(sequence) / 1_000_000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return found.strftime("%Y-%m-%dT%H:%M:%SZ") if int(sequence) else ""


_PAGES: Mapping[str, Callable[[_Shown], str]] = {
    "refused": _refused,
    "overview": _overview,
    "objects": _objects,
    "changes": _changes,
    "owed": _owed,
    "tokens": _tokens,
    "history": _history,
}
