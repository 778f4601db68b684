"""A call of an operation, as every transport hands it over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.service.operations.caller import Caller


@dataclass(frozen=True, slots=True)
class Request:
    """One call of one operation.

    Attributes:
        operation: Its name in the table.
        fields: Path parameters and body together, JSON-shaped.
        organization: Id of the organization it is made for (``x-service-orgid``), or empty.
        expected_sequence: What the object must still be at (``If-Match``), or None.
        idempotency_key: Makes a repeated write give the first answer again, or empty.
        lease: Token of the lease of the organization written to. Empty where the write is made
            under none.
        context: Why it is made (``x-reconciler-context``), text of a JSON object, or empty.
        custody: Run that asks to keep a secret this call makes until its delivery is
            acknowledged (``x-reconciler-custody``), or empty.
        as_text: Whether lists are answered as JSON text (``Encoded``), for a caller that wants
            no more than that.
    """

    operation: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    caller: Caller = field(kw_only=True)
    organization: str = ""
    expected_sequence: int | None = None
    idempotency_key: str = ""
    lease: str = ""
    context: str = ""
    custody: str = ""
    as_text: bool = False
