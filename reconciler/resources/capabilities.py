"""What each kind of service takes beyond the source document.

This project's own service keeps to the source. A ZITADEL of today takes more: longer scripts, and
fields and values that are newer than the source. Each has a row here, so that manifests are judged
by the service that they are for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.kinds.action.fields import MAX_SCRIPT, MAX_SCRIPT_BYTES
from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Field, Spec, SpecValue
from reconciler.resources.nearest import one_of
from reconciler.resources.normal import wire_spelling
from reconciler.resources.ref import Kind

SOURCE = "source"
"""Name of the capabilities of this project's own service."""


class Extra(NamedTuple):
    """A field that the source does not have, or a value of one of its fields.

    Attributes:
        word: The value; empty for the field as a whole.
        since: When ZITADEL took it in; every release from 3.0 has it.
    """

    kind: Kind
    field: str
    word: str
    since: str


EXTRAS: tuple[Extra, ...] = (
    # zitadel/zitadel#7516
    Extra(
        Kind.OIDC_APPLICATION, "grantTypes", "OIDC_GRANT_TYPE_TOKEN_EXCHANGE", "2.49, March 2024"
    ),
    # zitadel/zitadel#8837 and #9071
    Extra(Kind.OIDC_APPLICATION, "backChannelLogoutUri", "", "2.65, October 2024"),
    Extra(Kind.OIDC_APPLICATION, "loginVersion", "", "2.68, December 2024"),
)
"""Every field and value beyond the source."""


class ScriptLimit(NamedTuple):
    """The most that a script may have: so many characters (code points), or bytes in UTF-8."""

    most: int
    unit: str

    def size_of(self, script: str) -> int:
        """Return the size of a script in the unit of the limit."""
        return len(script) if self.unit == "characters" else len(script.encode())


class Capabilities(NamedTuple):
    """What one kind of service takes.

    Attributes:
        title: The service, for sentences.
        extras: The fields and values that it takes beyond the source.
        refuses_empty: Whether it refuses texts that may be empty by the source.
    """

    name: str
    title: str
    script: ScriptLimit
    extras: frozenset[Extra]
    refuses_empty: bool = False

    def takes(self, use: Use) -> bool:
        """Return whether the service takes what a manifest uses."""
        if use.empty:
            return not self.refuses_empty
        if use.extra is None:
            return self.script.size_of(use.script) <= self.script.most
        return use.extra in self.extras


class Use(NamedTuple):
    """A use in a manifest that not every service takes: a field, a value, or a long script.

    Attributes:
        path: Where it stands in the manifest.
        extra: None for a script, and for an empty text.
        empty: The field that is written empty, which the source allows.
    """

    path: tuple[str | int, ...]
    extra: Extra | None = None
    script: str = ""
    empty: str = ""


# The releases 3 and 4 differ in how they behave (docs/zitadel.md), not in what they take.
_OF_ZITADEL = (ScriptLimit(MAX_SCRIPT_BYTES, "bytes"), frozenset(EXTRAS), True)
CAPABILITIES: Mapping[str, Capabilities] = {
    each.name: each
    for each in (
        Capabilities(
            SOURCE,
            "this project's own service",
            ScriptLimit(MAX_SCRIPT, "characters"),
            frozenset(),
        ),
        Capabilities("zitadel-3", "ZITADEL 3", *_OF_ZITADEL),
        Capabilities("zitadel-4", "ZITADEL 4", *_OF_ZITADEL),
    )
}
"""The capabilities of each kind of service, by the name that a configuration gives them."""


def capabilities_of(generation: int | None, present: str) -> str:
    """Return the name of what a ZITADEL of a generation takes.

    ``present`` stays where the generation cannot be told, and for one too old for any extra.
    """
    name = f"zitadel-{generation}"
    return name if present != SOURCE and name in CAPABILITIES else present


_OF_KIND = {kind: [each for each in EXTRAS if each.kind is kind] for kind in KINDS}


def uses(kind: Kind, spec: Spec) -> Iterator[Use]:
    """Yield what a spec uses and not every service takes, as it is written: words may be short."""
    if kind is Kind.ACTION:
        script = spec.get("script") or ""
        # A shorter one has fewer bytes than any service takes, too.
        if len(script) > MAX_SCRIPT:
            yield Use(("spec", "script"), script=script)
    if kind is Kind.IDP_JWT_CONFIG and spec.get("headerName") == "":
        yield Use(("spec", "headerName"), empty="headerName")
    for extra in _OF_KIND[kind]:
        if extra.field in spec:
            yield from _uses(extra, spec[extra.field])


def _uses(extra: Extra, value: SpecValue) -> Iterator[Use]:
    if not extra.word:
        yield Use(("spec", extra.field), extra)
        return
    words = wire_spelling(extra.kind, extra.field, value)
    for position, word in enumerate(words):
        if word == extra.word:
            yield Use(("spec", extra.field, position), extra)


class Refusal(NamedTuple):
    """The code, summary and remedy of the finding that a service does not take something."""

    code: str
    summary: str
    remedy: str


def refusal(use: Use, service: Capabilities, *, is_chosen: bool) -> Refusal:
    """Return why a service does not take what a manifest uses, and which would.

    ``is_chosen`` says that the capabilities were chosen, and are not those of a service at hand.
    """
    limit = service.script
    if use.empty:
        summary = f"{service.title} does not take an empty {use.empty}"
        return Refusal("CAPABILITY-VALUE", summary, "Write authorization: empty means the same.")
    if use.extra is None:
        code = "SCHEMA-TOO-LONG"
        summary = f"script is longer than {limit.most} {limit.unit}"
        instead = f"It has {limit.size_of(use.script)}; shorten it to at most {limit.most}."
    elif use.extra.word:
        code = "CAPABILITY-VALUE"
        summary = f"{service.title} does not take {use.extra.word}"
        instead = "Remove it."
    else:
        code = "CAPABILITY-FIELD"
        summary = f"{service.title} has no {use.extra.field}"
        instead = "Remove it."
    return Refusal(code, summary, f"{instead}{_takers(use, is_chosen=is_chosen)}")


def _takers(use: Use, *, is_chosen: bool) -> str:
    names = [name for name, each in CAPABILITIES.items() if each.takes(use)]
    if not names:
        return ""
    how = ": choose them with --capabilities, or with `capabilities` of the environment"
    return f" A service with the capabilities {one_of(names)} takes it{how if is_chosen else ''}."


BEYOND: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(each.field for each in EXTRAS if each.kind is kind and not each.word)
    for kind in KINDS
}
"""The names of the fields of each kind that the source does not have."""


def fields_taken(kind: Kind, service: Capabilities) -> tuple[Field, ...]:
    """Return the fields of a kind as a service takes them."""
    missing = set(EXTRAS) - service.extras
    words = {each.word for each in missing if each.kind is kind and each.word}
    fields = {each.field for each in missing if each.kind is kind and not each.word}
    return tuple(
        _taken(each, words, service) for each in KINDS[kind].fields if each.name not in fields
    )


def _taken(field: Field, missing: Iterable[str], service: Capabilities) -> Field:
    if field.words:
        return field._replace(words=tuple(each for each in field.words if each not in missing))
    if field.longest == MAX_SCRIPT_BYTES and service.script.unit == "characters":
        return field._replace(longest=service.script.most)
    return field
