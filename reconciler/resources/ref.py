"""The identity that a declared resource and a held object share, and how texts name it.

An address is ``Kind/organization[/project]/name``. A name in it has ``%``, ``/``, ``=`` and ``*``
written as ``%25``, ``%2F``, ``%3D`` and ``%2A``: an address has one meaning, a flag of the form
REF=TEXT ends its REF at the first equals sign, and ``*`` can stand for any part of a name where
several objects may be meant. What is printed as an address is read back as the same ref.

The organization of a resource decides to which shard of a very large tree it belongs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, islice, pairwise
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of resources, spelt as manifests spell them."""

    ORGANIZATION = "Organization"
    PROJECT = "Project"
    IDP_JWT_CONFIG = "IdpJwtConfig"
    OIDC_APPLICATION = "OidcApplication"
    ACTION = "Action"
    ACTION_FLOW = "ActionFlow"
    PROJECT_ROLE = "ProjectRole"


# Before Python 3.12 an enum answers for a member ten times as slowly as a module for a name.
ORGANIZATION, PROJECT = Kind.ORGANIZATION, Kind.PROJECT
APPLICATION, ACTION, ACTION_FLOW = Kind.OIDC_APPLICATION, Kind.ACTION, Kind.ACTION_FLOW
PROJECT_ROLE = Kind.PROJECT_ROLE
KIND_NAMED = {kind.value: kind for kind in Kind}


IN_PROJECT = frozenset({APPLICATION, PROJECT_ROLE})
"""The kinds whose owner is a project."""

EXACT = frozenset({PROJECT_ROLE})
"""The kinds whose names differ by case."""


def fold(name: str) -> str:
    """Return the form in which two names are compared: most are unique ignoring case."""
    return name.casefold()


def fold_name(kind: Kind, name: str) -> str:
    """Return the form in which two names of objects of a kind are compared."""
    return name if kind in EXACT else fold(name)


class ResourceRef(NamedTuple):
    """Kind and names of one resource, as they were written.

    ``organization`` is always the organization that owns it; an organization owns itself.
    ``project`` is empty for every kind but those ``IN_PROJECT``.
    """

    kind: Kind
    organization: str
    project: str
    name: str

    @property
    def key(self) -> ResourceRef:
        """Return the ref to look up by: its names in folded case, but for an exact one."""
        kind, organization, project, name = self
        return ResourceRef(kind, fold(organization), fold(project), fold_name(kind, name))

    @property
    def path(self) -> str:
        """Return the names alone, owner first: ``acme/shop/storefront``."""
        if self.kind is Kind.ORGANIZATION:
            return _escaped(self.name)
        return "/".join(_escaped(part) for part in self[1:] if part)

    @property
    def address(self) -> str:
        """Return how a command line names it: ``OidcApplication/acme/shop/storefront``."""
        return f"{self.kind.value}/{self.path}"

    @property
    def folded(self) -> str:
        """Return the address to look up by: in folded case, but for an exact name."""
        return f"{fold(self.kind.value)}/{self.key.path}"

    def __str__(self) -> str:
        """Return kind and names: ``OidcApplication acme/shop/storefront``."""
        return f"{self.kind.value} {self.path}"


class RefError(ValueError):
    """A text names no object, or could name several; ``remedy`` is what to write instead."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def organization_ref(name: str) -> ResourceRef:
    """Return the ref of an organization."""
    return ResourceRef(ORGANIZATION, name, "", name)


def project_ref(organization: str, name: str) -> ResourceRef:
    """Return the ref of a project."""
    return ResourceRef(PROJECT, organization, "", name)


def owner_of(ref: ResourceRef) -> ResourceRef | None:
    """Return the resource that must be held before this one can be: its project or organization."""
    if ref.kind is ORGANIZATION:
        return None
    if ref.project:
        return project_ref(ref.organization, ref.project)
    return organization_ref(ref.organization)


_ESCAPES = {"%": "%25", "/": "%2F", "=": "%3D", "*": "%2A"}
ESCAPES_IN_WORDS = (
    "inside a name, / is written %2F, = is written %3D, * is written %2A and % is written %25"
)
_CHARACTERS = {code: character for character, code in _ESCAPES.items()}
_TABLE = str.maketrans(_ESCAPES)
_CODE = re.compile("%(?:25|2F|3D|2A)", re.ASCII | re.IGNORECASE)
_KIND = re.compile(r"(\w+)[ /](.*)", re.ASCII | re.DOTALL)
_KIND_WITH_STAR = re.compile(r"(\w*\*[\w*]*)[ /](.*)", re.ASCII | re.DOTALL)
_KINDS = {fold(kind.value): kind for kind in Kind}
_NAMES = {**dict.fromkeys(Kind, 2), ORGANIZATION: 1, **dict.fromkeys(IN_PROJECT, 3)}
CANDIDATES = 8  # readings that an error lists at most


def parse_ref(text: str, kind: Kind | None = None) -> ResourceRef:
    """Return the ref that an address names; a blank may stand after its kind instead of a slash.

    ``kind`` is the only kind that the caller takes: the text may then leave it out. More slashes
    than the kind has names are an error, unless there is one way to read them.

    Raises:
        RefError: the text names no object, one of another kind, or could name several.
    """
    return _ref(*_names_in(text, kind, lambda *names: _ref(*names).address))


def parse_pattern(text: str) -> str:
    """Return the address that a text names, in which ``*`` stands for any part of one name.

    Names are folded, so that one meaning has one form. A ``*`` in the kind stands for each kind
    that it fits and that has as many names. ``RefSet`` holds the refs that an address names.

    Raises:
        RefError: the text names no object, or could name those of several owners.
    """
    written = _KIND_WITH_STAR.fullmatch(text)
    if written is None:
        kind, names = _names_in(text, None, _pattern)
        return _pattern(kind, names)
    head, names = fold(written[1]), written[2].split("/")
    kinds = _kinds_like(head, len(names))
    if not kinds or not all(names):
        raise _no_object(text, None)
    return "/".join([head, *_plain_names(names, is_exact=not EXACT.isdisjoint(kinds))])


class RefSet:
    """The refs that addresses of ``parse_pattern`` name."""

    def __init__(self, patterns: Iterable[str]) -> None:
        wanted = frozenset(patterns)
        self._globs = {each: re.compile(_expression(each)) for each in wanted if "*" in each}
        self._exact = wanted - self._globs.keys()

    def __contains__(self, ref: ResourceRef) -> bool:
        address = ref.key.address
        return address in self._exact or any(
            glob.fullmatch(address) for glob in self._globs.values()
        )

    def without(self, refs: Iterable[ResourceRef]) -> list[str]:
        """Return the addresses that name none of these refs, in order."""
        known = {ref.key.address for ref in refs}
        globs = self._globs.items()
        unmet = [each for each, glob in globs if not any(map(glob.fullmatch, known))]
        return sorted([*unmet, *(self._exact - known)])


def _kinds_like(head: str, count: int) -> list[Kind]:
    """Return the kinds with so many names that a folded kind with ``*`` in it fits."""
    fits = re.compile(_glob(head)).fullmatch
    return [kind for name, kind in _KINDS.items() if _NAMES[kind] == count and fits(name)]


def _expression(pattern: str) -> str:
    """Return the regular expression for the folded addresses of an address with ``*``."""
    head, *names = pattern.split("/")
    return "|".join(_glob(_pattern(kind, names)) for kind in _kinds_like(fold(head), len(names)))


def _glob(text: str) -> str:
    """Return a regular expression in which each ``*`` of a text stands for a part of one name.

    It takes the code of a letter whole: ``*5`` is not ``50%25``, the name ``50%``. All but the last
    are atomic. The first place that fits is as good as a later one, so many of them do not make a
    match slow.
    """
    first, *rest = map(re.escape, text.split("*"))
    if not rest:
        return first
    some = "(?:[^/%]|%..)*"
    return first + "".join(f"(?>{some}?{part})" for part in rest[:-1]) + f"{some}{rest[-1]}"


def _pattern(kind: Kind, names: Sequence[str]) -> str:
    """Return the folded address of escaped names with ``*`` in them."""
    return "/".join([kind.value, *_plain_names(names, is_exact=kind in EXACT)])


def _plain_names(names: Sequence[str], *, is_exact: bool) -> Iterator[str]:
    """Yield names in the one way to write them; the last one is not folded if it is exact."""
    for left, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
        parts = map(_unescaped, name.split("*"))
        yield "*".join(_escaped(part if is_exact and not left else fold(part)) for part in parts)


def _names_in(
    text: str, kind: Kind | None, address: Callable[[Kind, Sequence[str]], str]
) -> tuple[Kind, Sequence[str]]:
    """Return the kind that a text is about, and the escaped names in it.

    ``address`` is how an error lists what could be meant.
    """
    texts = list(_without_kind(text, kind))
    exact = [(found, names) for found, names in texts if len(names) == _NAMES[found]]
    if exact:
        readings = exact[:1] if all(exact[0][1]) else []
    else:
        long = [each for each in texts if len(each[1]) > _NAMES[each[0]]]
        readings = list(islice(_readings(*long[0]), CANDIDATES)) if long else []
    if not readings:
        raise _no_object(text, kind)
    if len(readings) > 1:
        raise _ambiguous(text, [address(*reading) for reading in readings])
    return readings[0]


def _without_kind(text: str, kind: Kind | None) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield each kind that a text can be about, with what stands between its slashes."""
    written = _KIND.fullmatch(text)
    said = _KINDS.get(fold(written[1])) if written else None
    if written and said is not None and kind in {None, said}:
        yield said, written[2].split("/")
    if kind is not None:
        yield kind, text.split("/")


def _readings(kind: Kind, parts: Sequence[str]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield the names of every ref that more parts than a kind has names can mean."""
    for cuts in combinations(range(1, len(parts)), _NAMES[kind] - 1):
        ends = [0, *cuts, len(parts)]
        names = ["/".join(parts[start:end]) for start, end in pairwise(ends)]
        if all(names):
            yield kind, names


def _ref(kind: Kind, names: Sequence[str]) -> ResourceRef:
    plain = [_unescaped(name) for name in names]
    project = plain[1] if kind in IN_PROJECT else ""
    return ResourceRef(kind, plain[0], project, plain[-1])


def _escaped(name: str) -> str:
    return name.translate(_TABLE)


def _unescaped(name: str) -> str:
    return _CODE.sub(lambda code: _CHARACTERS[code[0].upper()], name)


def _no_object(text: str, kind: Kind | None) -> RefError:
    if kind is None:
        form = "Kind/organization[/project]/name, such as OidcApplication/acme/shop/storefront"
    else:
        names = "organization/project/name" if kind in IN_PROJECT else "organization/name"
        form = f"[{kind.value}/]{names}"
    found = kind.value if kind else "object"
    return RefError(f"{text!r} names no {found}", remedy=f"Write {form}; {ESCAPES_IN_WORDS}.")


def _ambiguous(text: str, addresses: Sequence[str]) -> RefError:
    return RefError(
        f"{text!r} could name several objects",
        remedy=f"Write a slash inside a name as %2F. It could be {' or '.join(addresses)}.",
    )


DEFAULT_TREE = "default"
"""Name of a tree that is given none."""

MAX_SHARDS = 10_000
_FORM = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the shards of a tree, counted from 1. One job manages one shard.

    An organization belongs to a shard with everything in it, so a shard is complete in itself.
    """

    index: int
    count: int

    def holds(self, organization: str) -> bool:
        """Return whether an organization, in any case, belongs to this shard."""
        return shard_of(organization, self.count) == self.index

    def __str__(self) -> str:
        """Return how a command line names it: ``2/4``."""
        return f"{self.index}/{self.count}"


def shard_of(organization: str, count: int) -> int:
    """Return the shard, from 1, out of ``count``, that an organization belongs to.

    That is the SHA-256 of the folded name in UTF-8, as one number, modulo the count, plus 1. It
    depends on nothing else: not on files, on other organizations, or on the machine.
    """
    import hashlib

    name = fold(organization).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest(), "big") % count + 1


def read_shard(text: str) -> Shard:
    """Return the shard that a text such as ``2/4`` names.

    Raises:
        ValueError: it names none; the message is a sentence about the text.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("is not of the form I/N")
    index, count = map(int, found.groups())
    if not 1 <= count <= MAX_SHARDS:
        raise ValueError(f"has a number of shards that is not from 1 to {MAX_SHARDS}")
    if not 1 <= index <= count:
        raise ValueError(f"names a shard that is not from 1 to {count}")
    return Shard(index, count)
