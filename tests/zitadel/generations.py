"""The call by which the generations of a ZITADEL are told apart.

The actions of version 2 are at ``/v2/actions`` from 4.0 on; a server of 3.x has them at
``/v2beta/actions`` alone (zitadel#10772). The package of protos has only the messages of the
latter, which are the same: the method is taken from there, with the address of the former.
"""

from __future__ import annotations

from tests.zitadel.held import Item
from tests.zitadel.protos import Method, method

FUNCTIONS = ["preuserinfo", "preaccesstoken", "presamlresponse"]


def only_from_4() -> Method:
    """Return the method that lists the functions that an execution can be bound to."""
    beta = method("zitadel.action.v2beta.ActionService", "ListExecutionFunctions")
    return beta._replace(path=beta.path.replace("/v2beta/", "/v2/"))


def list_functions(asked: Item, organization: str) -> Item:
    """Answer that method."""
    return {"functions": FUNCTIONS}
