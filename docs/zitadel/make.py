"""Write the addresses that a ZITADEL is asked at: ``python -m docs.zitadel.make``.

Run it at the top of a checkout. A test keeps the table in ``docs/zitadel.md`` in step with the
table of calls, and runs commands through a proxy that lets nothing else through.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.pieces import with_piece
from reconciler.kinds.addresses import ADDRESSES

PAGE = Path(__file__).parents[1] / "zitadel.md"
_OF_OURS = "/reconciler/v1/"
_KIND = "GetServiceInfo"  # tells this project's own service from a ZITADEL
_NEVER = "Healthz"  # for load balancers


def addresses() -> dict[str, str]:
    """Return verb and path of each operation that a ZITADEL may be asked for."""
    return {
        operation: known[0]
        for operation, known in ADDRESSES.items()
        if operation == _KIND or not (_OF_OURS in known[0] or operation == _NEVER)
    }


def with_addresses(page: str) -> str:
    """Return the page with the table between its comments."""
    return with_piece(page, "addresses", _table())


def _table() -> Iterator[str]:
    yield from ("| To | Address | Operation |", "|---|---|---|")
    for is_read in (True, False):
        for operation, address in addresses().items():
            if is_read == (address.startswith("GET ") or address.endswith("/_search")):
                yield f"| {'read' if is_read else 'write'} | `{address}` | `{operation}` |"


if __name__ == "__main__":
    PAGE.write_text(with_addresses(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
