"""Write the description of the REST API: ``python -m docs.api.make``, at the top of a checkout.

``docs/openapi.json`` is for programs and ``docs/openapi.html`` for people. The wheel carries both,
and a server shows them. A test keeps them in step with the table of operations.
"""

from __future__ import annotations

from pathlib import Path

from docs.api.document import openapi_text
from docs.api.page import docs_page

FOLDER = Path(__file__).parents[1]


def main() -> None:
    """Write both files."""
    (FOLDER / "openapi.json").write_text(openapi_text(), encoding="utf-8")
    (FOLDER / "openapi.html").write_text(docs_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
