"""Reports of what was changed on the service: drift, and the events of one object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from reconciler.plan.causes import writer_in_words
from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.plan.history import Step
from reconciler.plan.risk import Risk, by_danger, removal_risk, risks_of_fields
from reconciler.report.differences import field_lines, fields_as_json
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.layout import BARE, Forms, Layout, fitted, in_json
from reconciler.report.place import Place, place_as_json, place_as_text
from reconciler.report.plan_document import (
    LEFT_INACTIVE,
    PART,
    Part,
    ignored_as_text,
    owed_sentences,
    part_of,
    refs_as_text,
)
from reconciler.report.plan_json import ignored_as_json, ref_as_json, scope_as_json
from reconciler.report.plan_text import ignored_section, section
from reconciler.report.visible import Sentence, Style, longest_ticks, visible
from reconciler.resources.call import JsonObject
from reconciler.state import Event, FeedEvent

NO_HISTORY = (
    "This service keeps no history and no record of trees, so these questions are left open here:"
)
QUESTIONS = {
    "owners": "which tree or tool an object belongs to: what is declared nowhere may be of "
    "another one",
    "origins": "whether a difference was made on the service or in the manifests, and by whom",
    "removals": "what was removed: it is missing, as is what was never applied",
    "replacements": "whether an object was deleted and made again, with a new client id",
    "undone": "what was changed and changed back since the last apply",
}
LISTS = 5
"""Number of lists below the objects."""

LISTS_SHARE = 16
"""A list may take this part of a report that is too long, and what the objects leave."""

_CUT = "[cut: {} more; `reconciler drift` shows them]"

REASONS = {
    True: ("never_applied", "never applied by this tree"),
    False: ("no_history", "not held: never applied, or removed"),
}
"""Why objects cannot be judged, as a key and in words, by whether the service keeps a history."""


@dataclass(frozen=True)
class DriftDocument:
    """The drift of a tree and where it was looked for, as all forms show it."""

    drift: Drift
    place: Place

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Return how much there is of each."""
        drift = self.drift
        removed = sum(drifted.removed for drifted in drift.objects)
        return {
            "changed": len(drift.objects) - removed,
            "removed": removed,
            "untold": len(drift.untold),
            "unmanaged": len(drift.unmanaged),
            "unjudged": len(drift.unjudged),
            "ignored": len(drift.ignored),
            "owed": drift.owed,
            "owed_elsewhere": drift.owed_elsewhere,
            "left_out": drift.left_out,
        }

    @property
    def part(self) -> Part | None:
        """Return which part of the tree was looked at, if it was not the whole."""
        differ = self.drift.left_out
        left = f"{differ} of the objects that differ" if differ else "nothing that differs"
        return part_of(self.drift.scope, f". Left out: {left}.")

    @property
    def sentence(self) -> Sentence:
        """Return how much drifted."""
        drift, counts = self.drift, self.counts
        left = f"; {counts['unjudged']} cannot be judged" if drift.unjudged else ""
        if drift.ignored:
            fields = "field is" if counts["ignored"] == 1 else "fields are"
            left += f"; {counts['ignored']} ignored {fields} not judged"
        if not drift.refs:
            if not left and drift.keeps_history:
                is_part = drift.scope.is_partial
                nothing = (
                    f" Nothing{' of this part' if is_part else ''} was changed on the service."
                )
                return Sentence("No drift.", nothing, ("bold", "green"))
            return Sentence("No drift found", f"{left}.", ("bold", "green"))
        untold = f", {counts['untold']} by an unknown writer" if drift.untold else ""
        changed = f"{counts['changed']} changed on the service, {counts['removed']} removed"
        return Sentence("Drift:", f" {changed}{untold}{left}.")


def drift_as_text(document: DriftDocument, layout: Layout = BARE) -> str:
    """Return what drifted, below its place: as applied, then as held; the count last."""
    drift, style = document.drift, layout.style
    objects = ["\n".join(_drifted(drifted, style)) for drifted in drift.objects]
    blocks = [place_as_text(document.place), *objects, *_beside(document, layout)]
    return fitted("\n\n".join(blocks), layout.width)


def _beside(document: DriftDocument, layout: Layout, longest_list: int = 0) -> Iterator[str]:
    """Yield what stands below the objects that drifted.

    ``longest_list`` is how many characters a list may take; 0 for any number.
    """
    drift, style = document.drift, layout.style
    _, reason = REASONS[drift.keeps_history]
    unjudged = [f"{visible(str(ref))}  ({reason})" for ref in drift.unjudged]
    for title, lines in (
        ("Held, but declared nowhere:", refs_as_text(drift.unmanaged)),
        ("Differs, and the service does not report who changed it:", refs_as_text(drift.untold)),
        ("Cannot be judged:", unjudged),
        (f"{LEFT_INACTIVE}:", refs_as_text(drift.inactive)),
    ):
        yield from section(title, _that_fit(lines, longest_list), style)
    ignored = ignored_as_text(drift.ignored)
    yield from ignored_section(_that_fit(ignored, longest_list), layout)
    if not drift.keeps_history:
        yield "\n".join([NO_HISTORY, *(f"  - {each}" for each in QUESTIONS.values())])
    yield from owed_sentences(drift.owed, drift.owed_elsewhere)
    if part := document.part:
        yield f"{PART} {part.selected}{part.counts}"
    yield document.sentence.drawn(style)


def drift_as_markdown(document: DriftDocument, layout: Layout = BARE) -> str:
    """Return drift for an issue: everything that others wrote stands in one fence.

    The most dangerous changes come first. Of what does not fit the rest of each list is counted.
    """
    found = sorted(document.drift.objects, key=lambda each: by_danger(_risks(each)))
    objects = ["\n".join(_drifted(each, BARE.style)) for each in found]
    place = place_as_text(document.place)
    text = "\n\n".join([place, *objects, *_beside(document, BARE)])
    if len(text) > layout.limit:
        text = _within(document, objects, layout.limit)
    fence = "`" * max(3, 1 + longest_ticks(text))
    return f"### {document.sentence}\n\n{fence}text\n{text}\n{fence}\n"


def _within(document: DriftDocument, objects: Sequence[str], limit: int) -> str:
    """Return the report in about so many characters: of objects and of each list what fits."""
    place, longest_list = place_as_text(document.place), limit // LISTS_SHARE
    beside = list(_beside(document, BARE, longest_list))
    room = limit - sum(len(block) + len("\n\n") for block in (place, *beside))
    fitting = _that_fit([_shortened(each, room // 4) for each in objects], max(1, room))
    # What the objects leave is for the lists.
    left = room - sum(len(block) + len("\n\n") for block in fitting)
    longest_list += max(0, left) // LISTS
    return "\n\n".join([place, *fitting, *_beside(document, BARE, longest_list)])


def _shortened(text: str, longest: int) -> str:
    """Return a text without its end if it is too long, to leave room for other objects."""
    over = len(text) - longest
    return f"{text[:longest]}\n    {_CUT.format(f'{over} characters')}" if over > 0 else text


def _that_fit(items: Sequence[str], room: int) -> list[str]:
    """Return the items that fit in so many characters, then how many do not; 0 is no limit."""
    if not room or sum(len(item) + len("\n\n") for item in items) <= room:
        return list(items)
    room -= len(_CUT.format(len(items)))
    fitting: list[str] = []
    for item in items:
        room -= len(item) + len("\n\n")
        if room < 0:
            break
        fitting.append(item)
    return [*fitting, _CUT.format(len(items) - len(fitting))]


def _risks(drifted: DriftedObject) -> tuple[Risk, ...]:
    """Return the risks of what was done on the service; what was made again was lost before."""
    kind = drifted.ref.kind
    lost = removal_risk(kind) if drifted.removed or drifted.removed_id else ()
    return (*lost, *risks_of_fields(kind, drifted.fields))


def drift_as_json(document: DriftDocument) -> JsonObject:
    """Return drift in stable keys."""
    drift = document.drift
    reason, _ = REASONS[drift.keeps_history]
    return {
        "format_version": FORMAT_VERSION,
        **place_as_json(document.place),
        "summary": document.counts,
        "selection": scope_as_json(drift.scope),
        "history": drift.keeps_history,
        "unknown": [] if drift.keeps_history else [*QUESTIONS],
        "drift": [_drifted_as_json(drifted) for drifted in drift.objects],
        "untold": [ref_as_json(ref) for ref in drift.untold],
        "unmanaged": [ref_as_json(ref) for ref in drift.unmanaged],
        "ignored": [ignored_as_json(field) for field in drift.ignored],
        "inactive": [ref_as_json(ref) for ref in drift.inactive],
        "unjudged": [{"ref": ref_as_json(ref), "reason": reason} for ref in drift.unjudged],
    }


def _drifted(drifted: DriftedObject, style: Style) -> Iterator[str]:
    symbol, look = ("-", "red") if drifted.removed else ("~", "yellow")
    name = visible(str(drifted.ref))
    yield f"{style(symbol, look, 'bold')} {style(name, 'bold')}  (id {visible(drifted.id)})"
    done = "removed" if drifted.removed else "changed"
    if drifted.removed_id:
        yield f"    what this tree applied was deleted (id {visible(drifted.removed_id)})"
        done = "made again"
    yield f"    {done} {visible(writer_in_words(drifted.cause))}"
    yield from _fields(drifted.fields, style)


def _fields(fields: Sequence[FieldChange], style: Style) -> Iterator[str]:
    for field in fields:
        shown = field_lines(field, style, is_new=field.before is None)
        yield from (f"    {line}" for line in shown)


def _drifted_as_json(drifted: DriftedObject) -> JsonObject:
    return {
        "ref": ref_as_json(drifted.ref),
        "drift": "removed" if drifted.removed else "changed",
        "id": drifted.id,
        "removed_id": drifted.removed_id or None,
        "by": drifted.cause.by,
        "at": drifted.cause.at,
        "sequence": str(drifted.cause.sequence),
        "tree": drifted.cause.tree or None,
        "fields": [
            {**each, "declared": drifted.declared.get(str(each["name"]), each["before"])}
            for each in fields_as_json(drifted.fields, after="held")
        ],
    }


_CONTEXT = {
    **{key: key for key in ("tree", "commit", "revision", "plan", "run")},
    "undo": "undo of run",
}
"""Keys of a context, and their words."""

_SENTENCES = ("reason", "waived")
"""The reason of --break-glass or of a pause, and policies with their waivers."""


class HistoryDocument(NamedTuple):
    """The events of one object, the oldest first, and its name and id."""

    name: str
    id: str
    steps: Sequence[Step]


def history_as_text(document: HistoryDocument, layout: Layout = BARE) -> str:
    """Return the events of an object, the oldest first."""
    blocks = ["\n".join(_step(step, layout.style)) for step in document.steps]
    return _happened(document.name, blocks, layout)


def _happened(name: str, blocks: Sequence[str], layout: Layout) -> str:
    head = layout.style(visible(name), "bold")
    return fitted("\n\n".join([head, *(blocks or ["Nothing happened."])]), layout.width)


def history_as_json(document: HistoryDocument) -> JsonObject:
    """Return the events of an object in stable keys."""
    return {
        "format_version": FORMAT_VERSION,
        "id": document.id,
        "events": [
            {
                **_event_as_json(step.event, _said(step)),
                "fields": fields_as_json(step.fields),
                "secret_changed": step.secret,
                "removed": step.removed,
            }
            for step in document.steps
        ],
    }


class LogDocument(NamedTuple):
    """What happened in organizations, the oldest first.

    Attributes:
        events: Each with the name of what it is about, in words, and with that of its organization.
    """

    organizations: Sequence[str]
    events: Sequence[tuple[str, str, FeedEvent]]


def log_as_text(document: LogDocument, layout: Layout = BARE) -> str:
    """Return what happened in organizations, an event to a paragraph."""
    style = layout.style
    blocks = [
        "\n".join(_event(event, event.context, style, name)) for _, name, event in document.events
    ]
    return _happened(", ".join(document.organizations), blocks, layout)


def log_as_json(document: LogDocument) -> JsonObject:
    """Return what happened in organizations in stable keys."""
    return {
        "format_version": FORMAT_VERSION,
        "organizations": [*document.organizations],
        "events": [
            {
                "kind": event.kind,
                "organization": organization,
                "object": name,
                "id": event.id,
                **_event_as_json(event, event.context),
            }
            for organization, name, event in document.events
        ],
    }


def _event_as_json(event: Event, said: JsonObject) -> JsonObject:
    return {
        "type": event.type,
        "sequence": str(event.sequence),
        "at": event.at,
        "by": event.writer,
        "verified": dict(event.verified),
        **{key: _text(said, key) or None for key in (*_CONTEXT, *_SENTENCES)},
    }


def _event(event: Event, said: JsonObject, style: Style, *about: str) -> Iterator[str]:
    """Yield an event, what its writer said, what the service verified of the writer, and why."""
    head = f"{event.at}  {style(visible(event.type), 'cyan')}  by {visible(event.writer)}"
    yield f"{head}  {style(f'(sequence {event.sequence})', 'dim')}"
    yield from (f"    {visible(name)}" for name in about)
    parts = [
        f"{words} {visible(text)}" for key, words in _CONTEXT.items() if (text := _text(said, key))
    ]
    if parts:
        yield f"    {style(', '.join(parts), 'dim')}"
    if event.verified:
        facts = ", ".join(f"{name} {visible(str(text))}" for name, text in event.verified.items())
        yield f"    {style(f'verified: {facts}', 'dim')}"
    for key in _SENTENCES:
        if text := _text(said, key):
            yield f"    {key}: {visible(text)}"


def _step(step: Step, style: Style) -> Iterator[str]:
    yield from _event(step.event, _said(step), style)
    yield from _fields(step.fields, style)
    if step.secret:
        yield "    a new client secret; the one before has ended"
    if step.removed:
        yield f"    {style('removed', 'red')}"


def _said(step: Step) -> JsonObject:
    """Return what an event itself says, as those of a tree do, and the context of its write."""
    return {**step.event.context, **step.event.payload}


def _text(said: JsonObject, key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


DRIFT: Forms[DriftDocument] = {
    "text": drift_as_text,
    "json": in_json(drift_as_json),
    "markdown": drift_as_markdown,
}

HISTORY: Forms[HistoryDocument] = {"text": history_as_text, "json": in_json(history_as_json)}
LOG: Forms[LogDocument] = {"text": log_as_text, "json": in_json(log_as_json)}
