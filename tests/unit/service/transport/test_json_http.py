"""Every address of the table is found, and nothing else."""

from __future__ import annotations

import re

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.operation import Operation
from reconciler.service.operations.table import operations
from reconciler.service.transport.json_http import Addresses, Found
from tests.rows import each_row

ADDRESSES = Addresses(operations().values())
ROWS = [(row, address) for row in operations().values() for address in row.http]


@each_row(("operation", "address"), ROWS)
def test_each_address_means_its_operation(operation: Operation, address: str) -> None:
    """Parts that vary become fields of their names."""
    verb, _, template = address.partition(" ")
    names = re.findall(r"{(\w+)}", template)
    path = re.sub(r"{(\w+)}", r"of-\1", template)

    found = ADDRESSES.find(verb, path)

    assert found == Found(operation, {name: f"of-{name}" for name in names})


@each_row(
    ("verb", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/management/v1", 404),
        ("GET", "/management/v1/actions/", 404),
        ("GET", "//management/v1/actions/1", 404),
        ("POST", "/Management/v1/actions", 404),
        ("GET", "/management/v1/actions/1/2", 404),
        ("GET", "/management/v1/orgs/me/", 404),
        ("POST", "/management/v1/%61ctions", 404),
        ("GET", "/management/v1/actions/_search", 405),
        ("get", "/management/v1/actions/1", 405),
        ("GET", "/management/v1/actions/%2e%2e", 400),
        ("GET", "/management/v1/actions/a%2fb", 400),
        ("GET", "/management/v1/actions/%c3%28", 400),
        ("GET", "/management/v1/actions/a;b", 400),
    ],
)
def test_what_only_resembles_an_address_means_nothing(verb: str, path: str, status: int) -> None:
    """Case, slashes and escapes are not repaired."""
    found = ADDRESSES.find(verb, path)

    assert isinstance(found, Refusal)
    assert found.http_status == status


def test_escapes_in_an_id_are_read_once() -> None:
    """An id in another script is the text it stands for."""
    found = ADDRESSES.find("GET", "/management/v1/actions/%C3%A9%25")

    assert isinstance(found, Found)
    assert found.fields == {"id": "é%"}
