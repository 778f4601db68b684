"""Resolved documents against their JSON Schema. The only module that imports jsonschema.

One library accepts fast, another explains, both from the same schema. Where the first refuses
and the second finds nothing, that is a bug of this program and reported as one: never an accept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.resources.schemas import Judged, Schema, Stage, schema_for

MAX_FAULTS = 100  # of one document: more are not useful at a time


class SchemaFault(NamedTuple):
    """A place where a document breaks its schema.

    Attributes:
        keyword: Keyword of JSON Schema that is broken.
        path: Way to the value.
        value: The value itself; it may be large, and is cut before it is shown.
        expected: What the keyword says.
        schema: The schema around the keyword.
    """

    keyword: str
    path: tuple[str | int, ...]
    value: Any
    expected: Any
    schema: Schema

    @property
    def names(self) -> list[str]:
        """Return the fields that it is about: unknown, missing, or two that exclude each other."""
        if self.keyword == "additionalProperties":
            return [name for name in self.value if name not in self.schema["properties"]]
        if self.keyword == "required":
            return [name for name in self.expected if name not in self.value]
        if self.keyword not in {"oneOf", "not"}:
            return []
        wanted = self.expected if self.keyword == "oneOf" else [self.expected]
        return [name for each in wanted for name in each["required"]]


def unshown(number: int, *, is_error: bool) -> Diagnostic:
    """Return the finding that stands for so many further ones of a document."""
    noun = "finding" if number == 1 else "findings"
    return (error if is_error else warning)(
        "MANIFEST-MORE",
        f"{number} more {noun} in this document",
        "Fix those that are shown, then run again.",
    )


@cache
def schema_of(judged: Judged) -> Schema:
    """Return the schema that judges documents after resolution."""
    return schema_for(judged, Stage.RESOLVED)


def accepts(judged: Judged, document: Any) -> bool:
    """Return whether a resolved document fits its schema."""
    try:
        return bool(_accepting(judged).is_valid(document))
    except (ValueError, TypeError, OverflowError):
        return False  # a value that is not JSON; the explaining validator finds words for it


def faults(judged: Judged, document: Any) -> tuple[SchemaFault, ...]:
    """Return everything that keeps a resolved document from fitting its schema."""
    return tuple(map(_as_fault, _explaining(judged).iter_errors(document)))


def faults_in(schema: Schema, document: Any) -> tuple[SchemaFault, ...]:
    """Return what keeps a document from fitting a schema; no explainer is loaded where it fits."""
    from jsonschema_rs import Draft202012Validator

    if Draft202012Validator(schema).is_valid(document):
        return ()
    return tuple(map(_as_fault, islice(_explainer(schema).iter_errors(document), MAX_FAULTS)))


def _as_fault(fault: Any) -> SchemaFault:
    path = tuple(fault.absolute_path)
    return SchemaFault(
        str(fault.validator), path, fault.instance, fault.validator_value, fault.schema
    )


class PatternError(ValueError):
    """A regular expression cannot be used."""


@cache
def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that returns whether a text matches a pattern of an author.

    The engine takes time linear in the text, whatever the pattern: it has no look-around and no
    references back.

    Raises:
        PatternError: it is not a regular expression of that engine.
    """
    from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError

    try:
        validator = Draft202012Validator(
            {"pattern": pattern}, pattern_options=RegexOptions(size_limit=1 << 20)
        )
    except (ValidationError, ValueError) as fault:
        raise PatternError(pattern) from fault
    return lambda text: bool(validator.is_valid(text))


@cache
def _accepting(judged: Judged) -> Any:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(schema_of(judged))


@cache
def _explaining(judged: Judged) -> Any:
    return _explainer(schema_of(judged))


def _explainer(schema: Schema) -> Any:
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_: Any, expected: str, value: Any, __: Any) -> Iterator[ValidationError]:
        if isinstance(value, str) and not _compiled(expected).search(value):
            yield ValidationError(f"does not match {expected}")

    extended: Any = extend  # it has no types
    validator = extended(Draft202012Validator, {"pattern": pattern})
    return validator(schema)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern in which ``$`` means the end, as it does to every other reader of it."""
    return re.compile(re.sub(r"\$\Z", r"\\Z", pattern), re.ASCII)
