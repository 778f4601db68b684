"""Whole lists from a ZITADEL: page by page, many lists side by side, held against their totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service_client.observation import id_of, unsound
from reconciler.service_client.refusals import service_error
from reconciler.service_client.wire import Answer, Wire, WireRefusal

PAGE = 500
_NAME_QUERIES: Mapping[Kind, tuple[str, str]] = {
    Kind.ORGANIZATION: ("ListOrgs", "nameQuery"),
    Kind.PROJECT: ("ListProjects", "nameQuery"),
    Kind.IDP_JWT_CONFIG: ("ListOrgIDPs", "idpNameQuery"),
    Kind.OIDC_APPLICATION: ("ListApps", "nameQuery"),
    Kind.ACTION: ("ListActions", "actionNameQuery"),
}
OWN_PROVIDERS = {"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_ORG"}}


@dataclass(slots=True)
class Listing:
    """One list as it is being read.

    Attributes:
        items: What it has so far.
        total: How many it must have, once that was told.
        is_sound: No item came twice, and the total did not change on the way.
    """

    operation: str
    organization: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    items: list[Mapping[str, Any]] = field(default_factory=list)
    total: int = -1
    is_sound: bool = True
    is_done: bool = False

    def next_page(self) -> Call:
        """Return the call for what comes next."""
        query = {"offset": len(self.items), "limit": PAGE, "asc": True}
        return Call(self.operation, {**self.fields, "query": query}, self.organization)

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take in a page.

        Raises:
            ServiceError: it is not as the interface has it.
        """
        page, total = items_of(answer), _total(answer)
        if self.total < 0:
            self.total = total
        known = {id_of(item) for item in self.items}
        fresh = {id_of(item) for item in page}
        if len(fresh) != len(page) or known & fresh or (page and total != self.total):
            self.is_sound = False
        self.items += page
        self.is_done = not page or len(self.items) >= self.total or not self.is_sound
        if self.is_done and len(self.items) != self.total:
            self.is_sound = False


def read_lists(wire: Wire, listings: Sequence[Listing]) -> None:
    """Read lists to their ends, a page of each at a time.

    Raises:
        ServiceError: one of them cannot be read.
    """
    while waiting := [listing for listing in listings if not listing.is_done]:
        replies = wire.send([listing.next_page() for listing in waiting])
        for listing, reply in zip(waiting, replies, strict=True):
            if isinstance(reply, WireRefusal):
                raise service_error(reply)
            listing.take(reply.fields)


def named(kind: Kind, name: str, organization: str, project: str = "") -> Call:
    """Return the call that looks for objects by their name, in upper or lower case."""
    operation, query = _NAME_QUERIES[kind]
    by_name = {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    queries: list[Mapping[str, Any]] = [{query: by_name}]
    if kind is Kind.IDP_JWT_CONFIG:
        queries.append(OWN_PROVIDERS)
    fields: dict[str, Any] = {"queries": queries}
    if kind is Kind.OIDC_APPLICATION:
        fields["projectId"] = project
    return Call(operation, fields, organization)


def items_of(answer: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the items of a page; an empty list is left out of the JSON.

    Raises:
        ServiceError: they are no objects.
    """
    value = answer.get("result", [])
    if not isinstance(value, list) or not all(type(each) is dict for each in value):
        raise unsound("?", "result is not a list of objects")
    return value


def _total(answer: Mapping[str, Any]) -> int:
    details = answer.get("details", {})
    total = details.get("totalResult", "0") if isinstance(details, dict) else None
    if isinstance(total, str) and total.isascii() and total.isdecimal() and len(total) <= 9:
        return int(total)
    raise unsound("?", "details.totalResult is not a number")


def asked(wire: Wire, call: Call) -> Mapping[str, Any] | WireRefusal:
    """Return what one call answers, or why it does not."""
    (reply,) = wire.send([call])
    return reply.fields if isinstance(reply, Answer) else reply
