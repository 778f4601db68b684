"""The generation of a ZITADEL, which decides what an update does to lists and which fields it has.

No call tells the version. The calls of its second kind of actions tell the generation: every
server from 4.0 on has them at this address, and no older one. The one that is asked here is open
to every user, changes nothing and has a small answer.
"""

from __future__ import annotations

from reconciler.resources.call import Call
from reconciler.service_client.wire import Answer, Wire, error_id
from reconciler.service_client.zitadel.providers import is_unknown_address

BEFORE_4, FROM_4, UNKNOWN = 3, 4, 0
_ONLY_FROM_4 = Call("ListExecutionFunctions")


def ask_generation(wire: Wire) -> int:
    """Return 4 for a server from 4.0 on, 3 for an older one, 0 where it cannot be told.

    An unknown address is asked for twice: the first refusal may come from a proxy.
    """
    for _ in range(2):
        (reply,) = wire.send([_ONLY_FROM_4])
        # A refusal with an error id comes from the operation: the server has it.
        if isinstance(reply, Answer) or (error_id(reply) and not reply.unsure):
            return FROM_4
        if not is_unknown_address(reply):
            return UNKNOWN
    return BEFORE_4
