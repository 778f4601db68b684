"""The scope options of a command as one value."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from reconciler.cli.options import scope_options
from reconciler.errors import UsageError
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind, fold
from reconciler.resources.shard import Shard

_KIND = re.compile(r"^(\w+) ")


def takes_scope(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the scope options, as the arguments ``scope`` and ``allowed``."""

    @wraps(command)
    def with_scope(
        *,
        tree: str,
        shard: Shard | None,
        prune: bool,
        prune_unmanaged: bool,
        allow_updates: int | None,
        allow_deletes: int | None,
        no_adopt: bool,
        break_glass: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        scope = Scope(tree=tree, prune=prune, prune_unmanaged=prune_unmanaged, shard=shard)
        glass = {fold(_address(ref)): ref for ref in break_glass}
        allowed = Allowances(allow_updates, allow_deletes, adopt=not no_adopt, glass=glass)
        return command(scope=scope, allowed=allowed, **rest)

    return scope_options(with_scope)


def _address(ref: str) -> str:
    """Return the address of an object; plans write a blank after the kind, so that will do.

    Raises:
        UsageError: the text cannot be one.
    """
    kind, separator, path = _KIND.sub(r"\1/", ref).partition("/")
    kinds = {fold(known.value): known for known in Kind}
    if not separator or not path or fold(kind) not in kinds:
        raise UsageError(
            f"--break-glass {ref!r} names no object",
            remedy="Write Kind/organization[/project]/name, such as "
            "OidcApplication/acme/shop/storefront.",
        )
    return f"{kinds[fold(kind)].value}/{path}"
