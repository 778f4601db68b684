"""Write what follows from the table of operations: ``python -m docs.api.make``.

Run it at the top of a checkout. Of the REST API, ``docs/openapi.json`` is for programs and
``docs/openapi.html`` for people. The wheel carries both, and a server shows them. ``docs/roles.md``
has the roles that may call each operation. Tests keep all three in step.
"""

from __future__ import annotations

from pathlib import Path

from docs.api.document import openapi_text
from docs.api.page import docs_page
from docs.pieces import with_piece
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.table import operations

FOLDER = Path(__file__).parents[1]
ROLES = FOLDER / "roles.md"


def with_operations(page: str) -> str:
    """Return the page of roles with the table of operations between its comments."""
    lines = [f"| Operation | {' | '.join(Role)} |", "|---|" + "---|" * len(Role)]
    for row in operations().values():
        may = ["yes" if Caller("x", role).may(row.permission) else "no" for role in Role]
        lines.append(f"| `{row.name}` | {' | '.join(may)} |")
    return with_piece(page, "operations", lines)


def main() -> None:
    """Write all three files."""
    (FOLDER / "openapi.json").write_text(openapi_text(), encoding="utf-8")
    (FOLDER / "openapi.html").write_text(docs_page(), encoding="utf-8")
    ROLES.write_text(with_operations(ROLES.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
