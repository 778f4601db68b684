"""Addresses of every operation, by its name: verb and path, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import OF_A_SERVICE, OF_OUR_SERVICE

ADDRESSES: Mapping[str, tuple[str, ...]] = {
    **OF_A_SERVICE,
    **{name: paths for row in KINDS.values() for name, paths in row.addresses.items()},
    **OF_OUR_SERVICE,
}

REST = frozenset(name for row in KINDS.values() for name in row.rest)
"""The parameters that stand last in an address and take all that is left of it, any text."""
