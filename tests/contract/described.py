"""Answers of operations, as the OpenAPI document describes them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs

from docs.api.document import openapi


def check_answer(operation: str, answer: Any) -> None:
    """Accept an answer that has every member that is described, and no other."""
    assert [error.message for error in _validator(operation).iter_errors(answer)] == [], operation


@cache
def _validator(operation: str) -> Any:
    document = openapi()
    described = next(
        one
        for verbs in document["paths"].values()
        for one in verbs.values()
        if one["operationId"] == operation
    )
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    return jsonschema_rs.validator_for({**schema, "components": document["components"]})
