"""The rights table of docs/zitadel.md, held to the permissions of the calls and of the roles."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.program import ROOT
from tests.zitadel.protos import method
from tests.zitadel.roles import ROLES
from tests.zitadel.stand_in import MANAGEMENT


def rows() -> Iterator[tuple[str, str]]:
    """Yield the needed role of each row of the table, and the cell of its calls."""
    page = (ROOT / "docs" / "zitadel.md").read_text(encoding="utf-8")
    table = page.partition("| To | It needs | Because of |\n|---|---|---|\n")[2].partition("\n\n")[
        0
    ]
    for line in table.splitlines():
        _, role, calls = line.strip("| ").split(" | ")
        yield role, calls


@pytest.mark.parametrize(("needs", "calls"), list(rows()))
def test_each_role_may_make_the_calls_of_its_row(needs: str, calls: str) -> None:
    """A call needs the permission that is written behind it, and the role has that."""
    role = re.findall(r"`([A-Z_]+)`", needs)[0]
    for names, permission in re.findall(r"((?:`\w+`[ ,and]*)+) \(`([a-z.]+)`\)", calls):
        for name in re.findall(r"`(\w+)`", names):
            assert method(MANAGEMENT, name).permission == permission, name
        assert permission in ROLES[role]


def test_what_is_said_of_single_roles_is_so() -> None:
    """An owner of an organization may not delete applications; one of a project does not see it."""
    said = sum(len(re.findall(r"\(`[a-z.]+`\)", calls)) for _, calls in rows())
    assert said == 19, "permissions in the table: write the number that it is meant to have"
    assert "project.app.delete" not in ROLES["ORG_OWNER"]
    assert "org.read" not in ROLES["PROJECT_OWNER"]
    assert "org.create" in ROLES["IAM_OWNER"] & ROLES["IAM_ORG_MANAGER"]
