"""Values of variables: their types and patterns, and which source wins.

In rising order a value comes from the default of the variable, from the environment, from
``RECONCILER_VAR_`` and the name, and from ``--var``. A value is never resolved itself, so that
variables cannot name each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, NamedTuple

from reconciler.configuration.model import Configuration, Environment, Variable, VariableType
from reconciler.diagnostics import Diagnostic, SourceLocation, cut, error
from reconciler.manifests.placeholders import VariableValue
from reconciler.manifests.yaml_source import MAX_SCALAR
from reconciler.resources.nearest import nearest
from reconciler.resources.strict_json import HALF
from reconciler.validation.schema import PatternError, matcher

_HINTS = {
    VariableType.STRING: "Write a text; a number or true in quotes.",
    VariableType.BOOLEAN: "Write true or false, without quotes.",
    VariableType.NUMBER: "Write a number, without quotes.",
    VariableType.LIST: 'Write a list of texts, numbers, true or false: ["a", "b"].',
}


class Given(NamedTuple):
    """A value from outside of the file, as it was typed.

    Attributes:
        place: The option or environment variable, such as ``--var shopHost``.
    """

    name: str
    text: str
    place: SourceLocation


def values_in(
    configuration: Configuration, environment: Environment | None, given: Iterable[Given]
) -> tuple[dict[str, VariableValue | None], list[Diagnostic]]:
    """Return the value of every declared variable, and what is wrong with those that were given.

    Args:
        configuration: What declares the variables.
        environment: The one that was chosen, if one was.
        given: Values from outside, in rising order.
    """
    own = environment.variables if environment else {}
    values = {name: own.get(name, each.default) for name, each in configuration.variables.items()}
    findings = []
    for each in given:
        variable = configuration.variables.get(each.name)
        if variable is None:
            findings.append(undeclared(each.name, configuration.variables).at(each.place))
            continue
        value = _read(variable, each.text)
        problem = value if isinstance(value, Diagnostic) else value_problem(variable, value)
        if problem:
            findings.append(problem.at(each.place))
        values[each.name] = VariableValue(value, each.place)
    return values, findings


def undeclared(name: str, known: Iterable[str]) -> Diagnostic:
    """Return the problem of a value for a variable that is not declared."""
    meant = nearest(name, known)
    hint = f"Did you mean {meant}? " if meant else ""
    return error(
        "CONFIG-UNDECLARED",
        f"there is no variable {cut(name)}",
        f"{hint}Variables are declared in reconciler.yaml, below variables.",
    )


def _read(variable: Variable, text: str) -> Any:
    """Return the value that a typed text stands for: JSON, unless it is to be a text."""
    if len(text) > MAX_SCALAR:  # as in a file
        summary = f"the value of {variable.name} is longer than {MAX_SCALAR} characters"
        return error("CONFIG-VALUE", summary, "Shorten it.")
    if variable.type is VariableType.STRING:
        return text
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        hint = _HINTS[variable.type]
        return error("CONFIG-VALUE", f"{variable.name} is not given as JSON", hint)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def value_problem(variable: Variable, value: Any) -> Diagnostic | None:
    """Return why a value cannot be one of a variable, or None."""
    items = value if isinstance(value, list) else [value]
    fits = type(value) in _TYPES[variable.type]
    if not (fits and all(isinstance(item, str | int | float) for item in items)):
        summary = f"{variable.name} is declared as a {variable.type}, and this is something else"
        return error("CONFIG-VALUE", summary, _HINTS[variable.type])
    if any(isinstance(number, float) and not isfinite(number) for number in items):
        summary = f"a number of {variable.name} is too large"
        return error("CONFIG-VALUE", summary, "Write a smaller number.")
    texts = [text for text in items if isinstance(text, str)]
    if problem := _text_problem(variable.name, texts):
        return problem
    with suppress(PatternError):  # it has a finding of its own
        if variable.pattern and not all(map(matcher(variable.pattern), texts)):
            return error(
                "CONFIG-VALUE",
                f"{variable.name} does not match its pattern",
                f"The pattern is {cut(variable.pattern)}, and the value {cut(str(value))}.",
            )
    return None


def _text_problem(name: str, texts: Sequence[str]) -> Diagnostic | None:
    """Return why texts cannot stand in any value, or None."""
    if any("${" in text for text in texts):
        return error(
            "CONFIG-NESTED",
            f"the value of {name} holds ${{",
            "Write the text itself: values are not resolved, so variables cannot name each other.",
        )
    if any("\0" in text for text in texts):
        return error("SCHEMA-NUL", f"{name} contains NUL", "Remove the NUL character.")
    if any(map(HALF.search, texts)):
        summary = f"the value of {name} is not valid UTF-8"
        return error("CONFIG-VALUE", summary, "Write it in UTF-8, without lone surrogates.")
    return None


_TYPES: Mapping[VariableType, tuple[type, ...]] = {
    VariableType.STRING: (str,),
    VariableType.BOOLEAN: (bool,),
    VariableType.NUMBER: (int, float),
    VariableType.LIST: (list,),
}
