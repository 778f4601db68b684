"""Single kinds are named in their rooms, and nowhere else: whoever adds one looks nowhere else.

A leaf kind owns nothing. Organizations and projects are owners, which all code may name: tenancy is
no matter of one kind. What counts is code: members of ``Kind`` and their short names, functions and
rooms named after a kind, and in texts the names of kinds, of their operations and of their fields.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reconciler.kinds.fields import KINDS
from reconciler.resources.kinds import KindRow
from reconciler.resources.ref import IN_PROJECT, Kind
from tests.architecture.tree import MODULES, nodes_of

OWNERS = {Kind.ORGANIZATION, Kind.PROJECT}
LEAVES = [kind for kind in KINDS if kind not in OWNERS]

# Modules that name a leaf kind for good, each with its reason.
EXCEPTIONS = {
    "resources/ref.py": "has the kinds themselves, and the examples of refs in messages",
    "service_client/keyless.py": "GitHub has a parameter of a name that a field has, too",
    "service/operations/custody.py": "only applications have client secrets, and events of them",
}

MEMBERS = {kind.name for kind in LEAVES} | {"APPLICATION"}
ROOMS = {kind.name.lower() for kind in LEAVES if kind is not Kind.ACTION}
OF_HTTP_2 = {"flow_controlled_length"}
OF_RUN = {"trigger_token_file"}  # of a trigger of a round
NAMED_AFTER = re.compile(
    rf"_?(?:oidc|jwt|flow|trigger|{'|'.join(kind.name.lower() for kind in LEAVES)})_\w+"
)
CALLS = re.compile(
    r"[A-Z][a-z]+(?:[A-Z]\w*)?(?:OIDC|IDP|JWT|App|Action|Flow|Trigger|ProjectRole)\w*"
)
WORD = re.compile(r"\w+")


def _fields(row: KindRow) -> Iterator[str]:
    yield from (field.name for field in (*row.fields, *row.instead.values()))


# One word in lower case, such as ``version``, is a word of English, too.
OF_OTHERS = {name for kind in OWNERS for name in _fields(KINDS[kind])}
FIELDS = {name for kind in LEAVES for name in _fields(KINDS[kind]) if not name.islower()}
# A ZITADEL has display names of organizations as well.
FIELDS = FIELDS - OF_OTHERS - {"displayName"} | {"audience"}
OPERATIONS = {name for kind in LEAVES for name in KINDS[kind].addresses}
IN_TEXTS = FIELDS | OPERATIONS | {kind.value for kind in LEAVES if kind is not Kind.ACTION}


def _docstrings(module: str) -> set[ast.AST]:
    """Return the texts that stand alone, which say something to readers only."""
    return {
        node.value
        for node in nodes_of(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def named(module: str) -> set[str]:
    """Return the names of leaf kinds, and of what is theirs, in the code of a module."""
    found: set[str] = set()
    docstrings = _docstrings(module)
    for node in nodes_of(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in docstrings:
                found |= set(filter(_is_of_leaf, WORD.findall(node.value)))
        else:
            found |= {name for name in _identifiers(node) if _names_leaf(name)}
    return found


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names in a node itself; a dotted one gives each of its parts."""
    for name in ("id", "attr", "name", "arg", "asname", "module"):
        value = getattr(node, name, None)
        if isinstance(value, str):
            yield from value.split(".")


def _names_leaf(name: str) -> bool:
    is_after = NAMED_AFTER.fullmatch(name) is not None and name not in OF_HTTP_2 | OF_RUN
    return is_after or name in MEMBERS or name in ROOMS


def _is_of_leaf(word: str) -> bool:
    return word in IN_TEXTS or CALLS.fullmatch(word) is not None


OUTSIDE = [module for module in MODULES if not module.startswith("kinds/")]


def test_leaf_kinds_are_named_in_their_rooms_only() -> None:
    """Core code asks a registry; it compares no kinds."""
    naming = {module: found for module in OUTSIDE if (found := named(module))}

    strangers = {module: found for module, found in naming.items() if module not in EXCEPTIONS}
    assert strangers == {}
    assert EXCEPTIONS.keys() <= naming.keys(), "what names none leaves the table"


def test_there_are_few_exceptions() -> None:
    assert len(EXCEPTIONS) <= 10
    assert all(EXCEPTIONS.values())


def test_each_kind_has_a_room_with_the_files_of_layers_only() -> None:
    """A registry is a module beside the rooms; a room has a file where it has something to say."""
    rooms = {module.split("/")[1] for module in MODULES if module.count("/") == 2
             and module.startswith("kinds/")}  # fmt: skip

    assert rooms == {kind.name.lower() for kind in Kind}
    assert set(LEAVES) >= IN_PROJECT


def test_code_counts_and_what_is_said_to_readers_does_not() -> None:
    """Docstrings of the shared state name single kinds, and a room names its own in code."""
    assert named("kinds/oidc_application/rules.py") >= {"OIDC_APPLICATION", "redirectUris"}
    assert named("state.py") == set()
