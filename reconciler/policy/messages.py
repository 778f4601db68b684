"""Messages of protobuf that rules read, made from the fields of kinds.

A text, a choice or a word of a set is a string, a duration is a ``google.protobuf.Duration``, and a
variant is a message with one message for each of its names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from google.protobuf import any_pb2, duration_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from reconciler.kinds.fields import KINDS
from reconciler.policy.model import CHANGES
from reconciler.resources.fields import NANOSECONDS, Field, Form, parse_duration
from reconciler.resources.normal import DURATIONS
from reconciler.resources.ref import KIND_NAMED, Kind

CHANGE = {"change": "string", "ref": "string", "fields": "string*", "risks": "string*"}
"""Fields of a change of any kind, as rules see it, by their types; a star means a list."""

SIDES = frozenset({"before", "after"})
_ANY = "google.protobuf.Any"
_DURATION = "google.protobuf.Duration"
_STANDARD = (any_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR)
_SCALARS = {"string": Proto.TYPE_STRING, "bool": Proto.TYPE_BOOL, "int64": Proto.TYPE_INT64}
_FORMS = {
    Form.TEXT: "string",
    Form.TEXTS: "string*",
    Form.FLAG: "bool",
    Form.CHOICE: "string",
    Form.SET: "string*",
    Form.DURATION: _DURATION,
}


@cache
def make_pool(together: tuple[Kind, ...] = ()) -> Any:
    """Return a pool with a message for each kind, ``Change`` and ``Counts``.

    In a ``Change``, ``before`` and ``after`` are messages of any kind. With kinds given they are of
    one type that has the fields of all of these.
    """
    pool = DescriptorPool()
    for standard in _STANDARD:
        pool.AddSerializedFile(standard.serialized_pb)
    file = FileDescriptorProto(name="policy.proto", syntax="proto3")
    file.dependency.extend(standard.name for standard in _STANDARD)
    for kind, row in KINDS.items():
        _add(file, kind.value, _types(file, kind.value, row.fields))
    if together:
        _add(
            file,
            "Fields",
            _union([_types(None, kind.value, KINDS[kind].fields) for kind in together]),
        )
    one = "Fields" if together else _ANY
    _add(file, "Change", {**CHANGE, "before": one, "after": one})
    _add(file, "Count", dict.fromkeys(CHANGES, "int64"))
    _add(file, "Counts", {kind.value: "Count" for kind in KINDS})
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _types(
    file: FileDescriptorProto | None, name: str, fields: Iterable[Field]
) -> Mapping[str, str]:
    """Return the type of each field. Add the messages of variants to the file, if there is one."""
    types = {}
    for field in fields:
        types[field.name] = _FORMS.get(field.form) or f"{name}_{field.name}"
        if file is not None and field.form is Form.VARIANT:
            variants = {each: f"{name}_{field.name}_{each}" for each in field.variants}
            _add(file, types[field.name], variants)
            for each, texts in field.variants.items():
                _add(file, variants[each], _types(file, variants[each], texts))
    return types


def _union(kinds: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    """Return the fields of all kinds; one that has several types may be of any."""
    together: dict[str, str] = {}
    for types in kinds:
        for name, form in types.items():
            together[name] = form if together.get(name, form) == form else _ANY
    return together


def _add(file: FileDescriptorProto, name: str, types: Mapping[str, str]) -> None:
    message = file.message_type.add(name=name)
    for number, (field, form) in enumerate(types.items(), 1):
        label = Proto.LABEL_REPEATED if form.endswith("*") else Proto.LABEL_OPTIONAL
        plain = form.removesuffix("*")
        if plain in _SCALARS:
            message.field.add(name=field, number=number, label=label, type=_SCALARS[plain])
        else:
            named = f".{plain}"
            message.field.add(
                name=field, number=number, label=label, type=Proto.TYPE_MESSAGE, type_name=named
            )


@lru_cache  # a tree has few different durations
def _duration(text: str) -> Mapping[str, int]:
    seconds, nanoseconds = divmod(parse_duration(text), NANOSECONDS)
    return {"seconds": seconds, "nanos": nanoseconds}


class Messages:
    """Makes the messages of one pool."""

    def __init__(self, pool: Any) -> None:
        named = pool.FindMessageTypeByName
        self._of_kind = {kind: GetMessageClass(named(kind.value)) for kind in KINDS}
        self._change = GetMessageClass(named("Change"))
        self._counts = GetMessageClass(named("Counts"))

    def variables(self, seen: Mapping[str, Any]) -> dict[str, Any]:
        """Return a change as a rule over changes sees it, by name; its sides are in normal form."""
        kind, found = KIND_NAMED[seen["kind"]], {name: seen[name] for name in CHANGE}
        for side in SIDES & seen.keys():
            values = dict(seen[side])
            for name in DURATIONS[kind]:
                if name in values:
                    values[name] = _duration(values[name])
            found[side] = self._of_kind[kind](**values)
        return found

    def change(self, seen: Mapping[str, Any]) -> Any:
        """Return a change as a rule over the plan sees it."""
        found = self.variables(seen)
        message = self._change(**{name: found[name] for name in CHANGE})
        for side in SIDES & found.keys():
            getattr(message, side).Pack(found[side])
        return message

    def counts(self, counts: Mapping[str, Mapping[str, int]]) -> Any:
        """Return numbers of changes by kind and word."""
        return self._counts(**counts)
