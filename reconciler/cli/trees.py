"""``reconciler pause`` and ``resume``; and the record that a commit was applied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from reconciler.cli.clients import open_client, require_store
from reconciler.cli.configured import Need
from reconciler.cli.connection import Connection
from reconciler.cli.options import command
from reconciler.cli.output import say, show_warnings
from reconciler.diagnostics import warning
from reconciler.errors import BlockedPlanError, LockHeldError, ServiceError, UsageError
from reconciler.report.visible import visible
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import fold
from reconciler.service_client.port import Context, ServiceClient, TreeControl
from reconciler.state import Heads

RECORD_SECONDS = 60  # of leadership, which a record needs for two calls


@command("pause", example='--reason "incident 7" --for 4h', need=Need.ONE)
def pause_command(
    connection: Connection,
    tree: str,
    organization: tuple[str, ...],
    reason: str,
    lasting: int,
) -> None:
    """Keep a tree from being applied for a while: by apply, and by every run.

    What was switched off by hand stays off until the pause ends.
    """
    with _opened(connection) as (client, control):
        names = _seen(client, organization) or _where_applied(client, tree)
        control.pause(tree, names, reason, lasting)
        for name, pause in _heads(client).pauses(tree, names):
            where = f"tree {visible(tree)} in {visible(name)}"
            say(f"paused  {where} until {visible(pause.until)}: {visible(pause.reason)}")


@command("resume", example="--tree shop", need=Need.ONE)
def resume_command(connection: Connection, tree: str, organization: tuple[str, ...]) -> None:
    """End the pause of a tree before its time."""
    with _opened(connection) as (client, control):
        asked, heads = _seen(client, organization), _heads(client)
        names = [name for name, _ in heads.pauses(tree, asked or heads.organizations)]
        control.resume(tree, names)
    for name in names:
        say(f"resumed  tree {visible(tree)} in {visible(name)}")
    if not names:
        say(f"Tree {visible(tree)} is not paused.")


@contextmanager
def _opened(connection: Connection) -> Iterator[tuple[ServiceClient, TreeControl]]:
    """Open a service that keeps pauses.

    Raises:
        ServiceError: it keeps none, there is no store, or it cannot be reached.
    """
    require_store(connection.service)
    with open_client(connection) as client:
        control = client.trees()
        if control is None:
            raise ServiceError(
                "the service keeps no pauses",
                remedy="Only the reconciler's own service does. Elsewhere, stop what applies the "
                "manifests.",
            )
        yield client, control


def _seen(client: ServiceClient, organizations: Sequence[str]) -> Sequence[str]:
    """Return organizations that were named, if this token sees all of them.

    Raises:
        UsageError: it does not see one. Nothing was written: half a pause is hard to notice.
    """
    seen = _heads(client).organizations if organizations else ()
    unseen = [visible(name) for name in organizations if fold(name) not in seen]
    if unseen:
        raise UsageError(
            f"there is no organization {', '.join(unseen)} that this token sees",
            remedy="Correct the name, or use a token for it. Nothing was written.",
        )
    return organizations


def _where_applied(client: ServiceClient, tree: str) -> Sequence[str]:
    """Return the organizations to which a tree applied something, by name.

    Raises:
        UsageError: there is none that this token sees.
    """
    applied = {name for name, trees in client.observe(()).elsewhere.items() if tree in trees}
    applied |= {
        head.name
        for head in _heads(client).organizations.values()
        if any(record.tree == tree for record in head.applied)
    }
    if not applied:
        raise UsageError(
            f"tree {visible(tree)} has applied nothing to an organization that this token sees",
            remedy="Give the name of the tree with --tree, or name each organization with "
            "--organization.",
        )
    return sorted(applied)


def paused_now(client: ServiceClient, tree: str, organizations: Collection[str]) -> Sequence[str]:
    """Return the organizations, of these, in which a tree is paused at this moment."""
    return [name for name, _ in _heads(client).pauses(tree, organizations)]


def refuse_paused(tree: str, names: Sequence[str], otherwise: str) -> None:
    """Refuse to write for a tree that is paused in these organizations, if there are any.

    ``otherwise`` is what ``--despite-pause`` does.
    """
    if names:
        raise BlockedPlanError(
            f"tree {visible(tree)} is paused in {', '.join(map(visible, names))}",
            remedy="`reconciler plan` says by whom and why. `reconciler resume` ends the pause; "
            f"--despite-pause {otherwise}. Nothing was written.",
        )


def _heads(client: ServiceClient) -> Heads:
    return client.heads() or Heads("", {})


def record(
    client: ServiceClient,
    tree: str,
    organizations: Sequence[str],
    commit: str,
    outcome: str,
    context: Context,
) -> None:
    """Record that all manifests of a commit were applied; warn where that is not possible.

    ``outcome`` is ``changed`` or ``unchanged``. A commit that is on record is not recorded again.
    The caller is the one writer of the organizations. So no run that leads the tree is writing, and
    its leadership may be taken for the record: it then looks again.
    """
    control = client.trees()
    if control is None:
        return
    try:
        on_record = [each.commit for each in _heads(client).records(tree, organizations)]
        if on_record == [commit] * len(organizations):
            return
        control.lead(tree, organizations, RECORD_SECONDS, take=True)
        crashpoint("C20")
        control.record_commit(commit, outcome, context)
    except (LockHeldError, ServiceError) as failure:
        show_warnings(
            [
                warning(
                    "APPLY-COMMIT-NOT-RECORDED",
                    f"the record of the commit was not written: {failure.problem}",
                    "Everything was applied. Run apply again, or a `run` of this tree goes on "
                    "with the commit before.",
                )
            ]
        )
    finally:
        control.resign()
