"""Rules in CEL: compiling and evaluating them. The only module that imports the CEL library.

It runs in the child process alone (``child``), because the library bounds the iterations of a rule
and not its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

from cel_expr_python import cel

from reconciler.policy.messages import CHANGE, Messages, make_pool
from reconciler.policy.uris import host, path
from reconciler.resources.ref import KIND_NAMED, Kind

_SETTING = {"environment": "string", "protected": "bool"}
_OVER_PLAN = {**_SETTING, "changes": "Change*", "counts": "Counts"}

# Nothing in a rule may depend on the time. Only timestamp() would make a time out of a text.
_CONFIG = "name: policies\nstdlib:\n  exclude_functions:\n  - name: timestamp\n"

_ERROR = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(-?[0-9]+):(-?[0-9]+): (.*)$", re.MULTILINE)
_CHAIN = re.compile(r"'([\w.]+)\.\w+'")  # of names; all but the last
_STATUS = re.compile(r" \[[A-Z_]+\]\Z")  # the library writes it after each message
_NOISE = re.compile(r" \(in container ''\)\Z|,? expecting \{.*\}\Z")
_LONGEST = 300  # characters of a reason, which can have values in it
_NO_MESSAGE = "unable to find descriptor for type URL: "  # and no type

Place = tuple[int, int]
"""Line and column in a rule, from 1."""


class Checked(NamedTuple):
    """The result of compiling a rule.

    Attributes:
        errors: What is wrong, each with its place.
        kind: The kind for which the rule does not compile; empty over the plan.
        reads: The variables that a good rule reads, each with a place where it does.
    """

    errors: Sequence[tuple[Place, str]] = ()
    kind: str = ""
    reads: Mapping[str, Place] = {}


Seen: TypeAlias = Mapping[str, Any]
"""One change, as JSON. ``before`` and ``after`` have every default; a missing side is left out."""


class Rules:
    """The rules of a run, numbered from 0 in the order in which they are compiled."""

    def __init__(self) -> None:
        self._messages = Messages(make_pool())
        self._texts: list[str] = []
        self._compiled: list[dict[Kind | None, Any]] = []
        self._changes: list[Any] = []

    def compile(self, text: str, kinds: Sequence[Kind], *, over_plan: bool) -> Checked:
        """Compile the next rule: for each of its kinds, or once over the plan."""
        compiled: dict[Kind | None, Any] = {}
        self._texts.append(text)
        self._compiled.append(compiled)
        if over_plan:
            # One type with the fields of all its kinds shows a field that none of them has. Judged
            # are messages of each kind, so that no change has the defaults of another kind.
            together = tuple(kinds)
            if errors := _check(_over_plan(together), text):
                return Checked(errors)
            compiled[None] = _over_plan().compile(text)
            return Checked(reads=_reads(_OVER_PLAN, text, partial(_over_plan, together)))
        for kind in kinds:
            if errors := _check(_over_change(kind), text):
                return Checked(errors, kind.value)
            compiled[kind] = _over_change(kind).compile(text)
        return Checked(reads=_reads(_variables(kind), text, partial(_over_change, kind)))

    def activate(self, seen: Sequence[Seen], setting: Mapping[str, Any]) -> list[Any]:
        """Return what ``judge`` evaluates rules with, one for each change."""
        return [
            _over_change(KIND_NAMED[each["kind"]]).Activation(
                {**setting, **self._messages.variables(each)}
            )
            for each in seen
        ]

    def judge(self, rule: int, kind: Kind, activation: Any) -> str | None:
        """Return None if a rule is true, an empty text if it is false, or why it has no value."""
        compiled = self._compiled[rule].get(kind)
        if compiled is None:
            return f"the policy is not about changes of {kind.value}"
        return _evaluate(compiled, activation)

    def all_true(self, rules: Sequence[int], kind: Kind) -> Callable[[Any], bool]:
        """Return a function that evaluates several rules at once, which takes a third of the time.

        A false answer, or no answer because of an error, leaves open which rule is not true.
        """
        if not all(kind in self._compiled[rule] for rule in rules):
            return lambda _: False
        # A comment at the end of a rule ends with the line.
        together = " && ".join(f"({self._texts[rule]}\n)" for rule in rules)
        try:
            compiled = _over_change(kind).compile(together)
        except RuntimeError:  # too long or too deep together
            return lambda _: False
        return lambda activation: _evaluate(compiled, activation) is None

    def keep(self, seen: Sequence[Seen]) -> None:
        """Add changes to the plan that ``judge_plan`` is about."""
        self._changes += [self._messages.change(each) for each in seen]

    def forget(self) -> None:
        """Take all changes out of the plan that ``judge_plan`` is about."""
        self._changes.clear()

    def judge_plan(
        self, rule: int, subjects: Sequence[int], counts: Any, setting: Mapping[str, Any]
    ) -> str | None:
        """Return as ``judge`` whether a rule over the plan is true for those kept changes.

        ``counts`` has the numbers of all changes of the plan, by kind and word.
        """
        changes = [self._changes[subject] for subject in subjects]
        values = {**setting, "changes": changes, "counts": self._messages.counts(counts)}
        return _evaluate(self._compiled[rule][None], _over_plan().Activation(values))


def _variables(kind: Kind) -> Mapping[str, str]:
    return {**_SETTING, **CHANGE, "before": kind.value, "after": kind.value}


@cache
def _over_change(kind: Kind, without: str = "") -> Any:
    """Return the environment of rules over changes of a kind, if wished without one variable."""
    return _environment(make_pool(), _variables(kind), without)


@cache
def _over_plan(together: tuple[Kind, ...] = (), without: str = "") -> Any:
    return _environment(make_pool(together), _OVER_PLAN, without)


def _environment(pool: Any, variables: Mapping[str, str], without: str) -> Any:
    return cel.NewEnv(
        descriptor_pool=pool,
        config=cel.NewEnvConfigFromYaml(_CONFIG),
        variables={name: _type(form) for name, form in variables.items() if name != without},
        extensions=[_FUNCTIONS],
    )


def _type(written: str) -> Any:
    plain = written.removesuffix("*")
    one = {"string": cel.Type.STRING, "bool": cel.Type.BOOL}.get(plain) or cel.Type(plain)
    return cel.Type.List(one) if written.endswith("*") else one


def _function(call: Callable[[str], str]) -> Any:
    name, text = call.__name__, cel.Type.STRING
    return cel.FunctionDecl(name, [cel.Overload(f"{name}_string", text, [text], impl=call)])


_FUNCTIONS = cel.CelExtension("uris", [_function(host), _function(path)])


def _check(environment: Any, text: str) -> Sequence[tuple[Place, str]]:
    """Return why a rule does not compile, or is no condition."""
    try:
        result = environment.compile(text).return_type().name()
    except RuntimeError as failure:
        return _errors(str(failure))
    except TypeError:
        return [((1, 1), "the text has half a character in it")]
    if result != "BOOL":
        return [((1, 1), f"the rule must be true or false, and is of type {result.lower()}")]
    return ()


def _errors(message: str) -> Sequence[tuple[Place, str]]:
    """Return the errors in a message of the library. The place of the whole rule is negative."""
    found = _ERROR.findall(_STATUS.sub("", message))
    errors = [
        ((max(int(line), 1), max(int(column), 1)), _NOISE.sub("", sentence))
        for line, column, sentence in found
    ]
    return list(dict.fromkeys(errors)) or [((1, 1), _reason(message))]


def _reads(
    variables: Iterable[str], text: str, environment: Callable[[str], Any]
) -> Mapping[str, Place]:
    """Return the variables without which a rule does not compile: those that it reads."""
    found = {}
    for name in variables:
        if errors := _check(environment(name), text):
            (line, column), sentence = errors[0]
            # Of `before.devMode`, the error stands at the last dot.
            chain = _CHAIN.search(sentence)
            before = len(chain[1]) if chain else 0
            found[name] = (line, max(column - before, 1))
    return found


def _evaluate(compiled: Any, activation: Any) -> str | None:
    # The library returns some errors as values and raises others.
    try:
        result = compiled.eval(activation)
        value = result.value()
    except RuntimeError as failure:
        return _reason(str(failure))
    if value is True:
        return None
    if value is False:
        return ""
    if result.type().name() == "ERROR":
        return _reason(value)
    return f"the result is of type {result.type().name().lower()}, not true or false"


def _reason(message: str) -> str:
    """Return a message of the library in one line, without its status codes."""
    if _NO_MESSAGE in message:
        return "a change that it reads has no `before` or no `after`: ask has(...) first"
    first = _STATUS.sub("", message[:_LONGEST]).partition("\n")[0]
    return re.sub(r"\A[A-Z_]+: ", "", first) or "unknown error"
