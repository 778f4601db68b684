"""Addresses of every operation, by its name: verb and path. A client uses the first."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import OF_A_SERVICE, OF_OUR_SERVICE
from reconciler.resources.ref import ORGANIZATION, PROJECT, PROJECT_ROLE

# Roles are documented after the projects that they are of.
_KINDS = dict.fromkeys((ORGANIZATION, PROJECT, PROJECT_ROLE, *KINDS))

ADDRESSES: Mapping[str, tuple[str, ...]] = {
    **OF_A_SERVICE,
    **{name: at for kind in _KINDS for name, at in KINDS[kind].addresses.items()},
    **OF_OUR_SERVICE,
}

REST = frozenset[str]().union(*(row.rest for row in KINDS.values()))
"""The parameters that stand last in an address and take all that is left of it, any text."""
