"""Owed client secrets, in the words and keys of every form of a plan.

An owed secret was made, and its delivery was not acknowledged. The secret itself is never known
here: a plan says whose it is, since when, and which command delivers it.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.report.visible import visible
from reconciler.state import OwedSecret

TITLE = "Client secrets that are owed"


def owed_sentences(owed: int, elsewhere: int, left: int = 0) -> Iterator[str]:
    """Yield how many secrets are owed to the tree and to others, and what delivers them.

    ``left`` is how many are owed to the tree where it declares nothing any more. Nothing is
    yielded where none is owed.
    """
    if owed:
        yield (
            f"{_count(owed)} owed: reconciler apply delivers {'it' if owed == 1 else 'them'}, "
            "as does reconciler secret deliver."
        )
    if left:
        yield (
            f"{_count(left)} owed in organizations that the manifests no longer name: "
            "reconciler secret deliver delivers what is owed there."
        )
    if elsewhere:
        yield f"{_count(elsewhere)} owed to other trees: their own apply delivers what is theirs."


def owed_line(secret: OwedSecret) -> str:
    """Return whose secret is owed, since when and made by which token; made visible."""
    lost = "lost: no longer kept, " if secret.lost else ""
    made = f"made by {secret.by} at {secret.since}" if secret.by else f"made at {secret.since}"
    return visible(f"{secret.ref}  (client id {secret.client_id}, {lost}{made})")


def _count(number: int) -> str:
    return "1 client secret is" if number == 1 else f"{number} client secrets are"
