"""States of objects, as a ZITADEL keeps them.

Only the old calls know a state of identity providers. What the present list of providers shows
does not follow them: there each provider is active (``idpTemplateProjection`` reads no such event).
"""

from __future__ import annotations

from tests.zitadel.held import STATES, Held, Item
from tests.zitadel.refusals import FakeError

# By kind and the state that is asked for: the ids of the refusals of a missing object, and of one
# that is in that state already. A missing provider is refused as one in another state is.
ERRORS = {
    ("apps", "INACTIVE"): ("COMMAND-ov9d3", "COMMAND-dsh35"),
    ("apps", "ACTIVE"): ("COMMAND-ov9d3", "COMMAND-1n8cM"),
    ("actions", "INACTIVE"): ("COMMAND-NRmhu", "COMMAND-Dgj92"),
    ("actions", "ACTIVE"): ("COMMAND-NRmhu", "COMMAND-J53zh"),
    ("projects", "INACTIVE"): ("COMMAND-112M9", "COMMAND-mki55"),
    ("projects", "ACTIVE"): ("COMMAND-112M9", "COMMAND-5M9bs"),
    ("oldIdps", "INACTIVE"): ("Org-BBmd0", "Org-BBmd0"),
    ("oldIdps", "ACTIVE"): ("Org-5Mo0d", "Org-5Mo0d"),
}


def switched(things: Held, kind: str, item: Item, state: str, refused: str) -> Item:
    """Give an object a state; return its details. One that has it already is refused."""
    word = f"{STATES[kind]}_{state}"
    if item["state"] == word:
        raise FakeError(9, refused, "Errors.NotChanged")
    item["state"] = word
    return things.touch(kind, item)
