"""The scope options of a command as one value."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from reconciler.cli.options import scope_options
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope


def takes_scope(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the scope options, as the arguments ``scope`` and ``allowed``."""

    @wraps(command)
    def with_scope(
        *,
        tree: str,
        prune: bool,
        prune_unmanaged: bool,
        allow_updates: int | None,
        allow_deletes: int | None,
        **rest: Any,
    ) -> Any:
        scope = Scope(tree=tree, prune=prune, prune_unmanaged=prune_unmanaged)
        return command(scope=scope, allowed=Allowances(allow_updates, allow_deletes), **rest)

    return scope_options(with_scope)
