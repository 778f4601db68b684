"""Listing what organizations hold: one call to find each, one for each page, several at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from reconciler.resources.call import Call
from reconciler.resources.ref import fold
from reconciler.service_client.observation import id_of, text_of, unsound
from reconciler.service_client.refusals import service_error
from reconciler.service_client.wire import Wire, WireRefusal

PAGE = 1000
MOST_PAGES = 1000
TOGETHER = 32  # organizations: while one page is read, the service makes the next ones
Owner: TypeAlias = tuple[str, str]
"""Id and name of an organization, as the service spells it."""


class Listing:
    """Every page of what an organization holds.

    Attributes:
        owner: Whose objects they are.
        objects: What was listed so far.
        doubt: Why it cannot be all, or empty.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.objects: list[Mapping[str, Any]] = []
        self.doubt = ""
        self.is_done = False
        self._cursor = ""
        self._cursors = {""}
        self._ids: set[str] = set()

    def next_call(self) -> Call:
        """Return the call for the next page."""
        owner, _ = self.owner
        fields = {"organizationId": owner, "cursor": self._cursor, "limit": PAGE}
        return Call("ListObjects", fields, organization=owner)

    def take(self, page: Mapping[str, Any]) -> None:
        """Take in a page, and see whether another follows.

        Raises:
            ServiceError: it is no page.
        """
        found = objects_of(page, "objects")
        self.objects += found
        self._cursor, known = text_of(page, "next"), len(self._ids)
        if not self._cursor:
            self.is_done = True
            return
        self._ids.update(id_of(each) for each in found)
        if self._cursor in self._cursors or len(self._ids) == known:
            self._end(f"The listing of {self.owner[1]} repeats itself.")
        self._cursors.add(self._cursor)
        if len(self._cursors) > MOST_PAGES:
            self._end(f"The listing of {self.owner[1]} does not end.")

    def _end(self, doubt: str) -> None:
        self.doubt = self.doubt or doubt
        self.is_done = True


def listings(
    wire: Wire, organizations: Collection[str], known: Mapping[str, Owner]
) -> Iterator[Listing]:
    """Yield a listing of each organization that is there.

    Those that are not known by their folded name are looked for, one by one.

    Raises:
        ServiceError: a call was refused, or the service answers what it cannot mean.
    """
    names = iter(organizations)
    while some := list(islice(names, TOGETHER)):
        found = {**known, **_found(wire, [name for name in some if fold(name) not in known])}
        owners = [found.get(fold(name)) for name in some]
        together = [Listing(owner) for owner in owners if owner is not None]
        while unfinished := [listing for listing in together if not listing.is_done]:
            pages = _answers(wire, [listing.next_call() for listing in unfinished])
            for listing, page in zip(unfinished, pages, strict=True):
                listing.take(page)
        yield from together


def objects_of(page: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects in an answer.

    Raises:
        ServiceError: it is none.
    """
    value = page.get(name)
    if not isinstance(value, list) or not all(type(each) is dict for each in value):
        raise unsound("?", f"{name} is not a list of objects")
    return value


def _found(wire: Wire, names: Sequence[str]) -> Mapping[str, Owner]:
    """Return the organizations of these names that are there, by their folded names."""
    answers = zip(names, _answers(wire, [_find(name) for name in names]), strict=True)
    owners = ((name, _organization(name, answer)) for name, answer in answers)
    return {fold(name): owner for name, owner in owners if owner is not None}


def _find(name: str) -> Call:
    """Return the call that finds the organization of a name, in upper or lower case."""
    query = {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    return Call("ListOrgs", {"queries": [{"nameQuery": query}]})


def _organization(name: str, answer: Mapping[str, Any]) -> Owner | None:
    for found in objects_of(answer, "result"):
        if fold(text_of(found, "name")) == fold(name):
            return id_of(found), text_of(found, "name")
    return None


def _answers(wire: Wire, calls: Sequence[Call]) -> Sequence[Mapping[str, Any]]:
    answers = []
    for reply in wire.send(calls) if calls else ():
        if isinstance(reply, WireRefusal):
            raise service_error(reply)
        answers.append(reply.fields)
    return answers
