"""A call of an operation, as every transport hands it over."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.resources.call import Call
from reconciler.service.operations.caller import Caller


@dataclass(frozen=True, slots=True)
class Request(Call):
    """A call and its caller.

    Attributes:
        as_text: Whether lists are answered as JSON text (``Encoded``), for a caller that needs
            nothing else.
    """

    caller: Caller = field(kw_only=True)
    as_text: bool = False


def request_of(call: Call, caller: Caller, *, as_text: bool = False) -> Request:
    """Return a call as a caller makes it."""
    values = {name: getattr(call, name) for name in Call.__slots__}
    return Request(**values, caller=caller, as_text=as_text)
