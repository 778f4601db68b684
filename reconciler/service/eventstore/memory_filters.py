"""Queries of objects, for the store in memory."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.service.eventstore.rows import NameFilter, ObjectQuery, ObjectRow

_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "equals": str.__eq__,
    "starts": str.startswith,
    "contains": str.__contains__,
    "ends": str.endswith,
}


def is_found(row: ObjectRow, query: ObjectQuery) -> bool:
    """Return whether a query finds an object."""
    return (
        (row.kind, row.parent) == (query.kind, query.parent)
        and (query.ids is None or row.id in query.ids)
        and all(_matches(row, name) for name in query.names)
    )


def _matches(row: ObjectRow, name: NameFilter) -> bool:
    return _MATCHES[name.match](row.folded if name.folded else row.name, name.text)
