"""The scope options of a command as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from reconciler.cli.options import scope_options
from reconciler.cli.refs import Glass
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.resources.ref import ResourceRef, fold
from reconciler.resources.shard import Shard


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
        break_glass: tuple[Glass, ...],
        rotate_missing: tuple[ResourceRef, ...],
        take_over: tuple[ResourceRef, ...],
        other_tree: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        scope = Scope(
            tree=tree,
            prune=prune,
            prune_unmanaged=prune_unmanaged,
            shard=shard,
            rotate_missing=tuple(sorted({ref.key for ref in rotate_missing})),
            take_over=_taken_over(take_over, shard),
            other_tree=other_tree,
        )
        allowed = Allowances(
            allow_updates,
            allow_deletes,
            adopt=not no_adopt,
            glass={fold(one.ref.address): one.ref.address for one in break_glass},
            reasons={fold(one.ref.address): one.reason for one in break_glass},
        )
        return command(scope=scope, allowed=allowed, **rest)

    return scope_options(with_scope)


def _taken_over(refs: Sequence[ResourceRef], shard: Shard | None) -> tuple[ResourceRef, ...]:
    """Return the keys of objects to take over: those of a shard, where one is given."""
    ours = (ref for ref in refs if shard is None or shard.holds(ref.organization))
    return tuple(sorted({ref.key for ref in ours}))
