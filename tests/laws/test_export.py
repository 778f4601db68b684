"""The law of exports: whatever a service holds, and whoever made it, a plan of its export is empty.

The services are filled through their operations, never through apply.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from reconciler.cli.embedded import InProcessWire, local_caller
from reconciler.cli.export import Export, export_of
from reconciler.cli.render import as_files, as_stream
from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.manifests.loader import load
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, fold
from reconciler.service.build import IdentityService
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.request import Request
from reconciler.service_client.read_only import OperationsReader, ReadOnlyWire
from reconciler.state import ObservedState
from reconciler.validation.desired import judge
from tests.effort import cases
from tests.generators import KEYS, actions, applications, projects, providers, roles
from tests.memory_store import open_memory
from tests.rows import each_row

MANY = settings(max_examples=cases(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])

# A service takes more names and scripts than manifests do: some of these cannot be exported.
NAMES = st.one_of(
    st.sampled_from(
        ["web", "Web app", "a/b", "naïve", "日本", "no", "010", "12:30:00", "..", "con", "a-b",
         "a b", " a", "a\u202eb", "cafe\u0301", "a\nb", "x" * 200, "- a", "#", "null",
         "organization", "Infinity", "${a}", "$${a}", "a ${", "${{ a }}", "{{a}}", "@@A@@", "##A##"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1,
            max_size=8),
)  # fmt: skip
# Mostly names that can be exported, so that what is beneath them is tried as well.
OWNERS = st.one_of(st.sampled_from(["acme", "Büro", "a/b"]), st.sampled_from(["acme"]), NAMES)
SCRIPTS = st.one_of(
    st.sampled_from(["let a;\n" * 8, "function greet() {\n\n\n\n\n\n}"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1,
            max_size=40),
    st.sampled_from(
        ["let a;", "let a;\n", "let a;\r\nlet b;\r\n", "\tlet a;\n\n\nlet b;", "let a;\n" * 20,
         "let a = `${b}`;", "let a = '\u2028';", "let a;  \nlet b;\n", "function (",
         "  let a;\nlet b;\n", "//\x85\n"]
    ),
)  # fmt: skip


def named(specs: st.SearchStrategy[dict[str, Any]], most: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, specs, max_size=most)


_ORGANIZATIONS = st.lists(OWNERS, min_size=1, max_size=2, unique_by=fold)
_PROJECTS = st.lists(OWNERS, max_size=2, unique_by=fold)
# What an organization holds, and what its projects hold.
_OF_ORGANIZATION = {
    Kind.ACTION: named(st.one_of(actions(), st.fixed_dictionaries({"script": SCRIPTS})), 3),
    Kind.IDP_JWT_CONFIG: named(providers(), 2),
}
_OF_PROJECT = {
    Kind.OIDC_APPLICATION: named(applications(), 3),
    Kind.PROJECT_ROLE: st.dictionaries(st.one_of(KEYS, NAMES), roles(), max_size=3),
}
Specs: TypeAlias = Mapping[Kind, Mapping[str, dict[str, Any]]]


class DrawnProject(NamedTuple):
    """A project and what is in it, by kinds and names."""

    flags: dict[str, Any]
    held: Specs


class DrawnOrganization(NamedTuple):
    """An organization and what is in it, by kinds and names."""

    name: str
    held: Specs
    projects: list[tuple[str, DrawnProject]]


@st.composite
def organizations(draw: st.DrawFn) -> list[DrawnOrganization]:
    """Return what somebody makes by hand; the service itself takes bits by chance for its ids."""
    return [
        DrawnOrganization(
            name,
            draw(st.fixed_dictionaries(_OF_ORGANIZATION)),
            [
                (project, DrawnProject(draw(projects()), draw(st.fixed_dictionaries(_OF_PROJECT))))
                for project in draw(_PROJECTS)
            ],
        )
        for name in draw(_ORGANIZATIONS)
    ]


def filled(drawn: list[DrawnOrganization]) -> IdentityService:
    """Return a service that was filled by hand."""
    service = open_memory()
    for each in drawn:
        owner = called(service, "AddOrg", name=each.name)["id"]
        make(service, each.held, owner)
        for project_name, inside in each.projects:
            project = called(service, "AddProject", owner, name=project_name, **inside.flags)["id"]
            make(service, inside.held, owner, projectId=project)
    return service


def make(service: IdentityService, held: Specs, owner: str, **place: str) -> None:
    """Make objects by hand."""
    for kind, specs in held.items():
        for name, spec in specs.items():
            named_so = {KINDS[kind].name_field: name}
            called(service, CALLS[kind].create, owner, **place, **named_so, **spec)


def called(
    service: IdentityService, operation: str, owner: str = "", **fields: Any
) -> dict[str, Any]:
    """Call an operation; a name that is taken, ignoring case, is left out."""
    request = Request(operation, fields, caller=local_caller(), organization=owner)
    try:
        return service.call(request)
    except Refusal as refusal:
        if refusal.code != 6:
            raise
        return {"id": ""}


def observed(service: IdentityService) -> ObservedState:
    """Return everything there is, as export looks at it."""
    reader = OperationsReader(ReadOnlyWire(InProcessWire(service)))
    return reader.observe(reader.organizations())


def written(export: Export, folder: Path) -> Path:
    for name, content in as_files(export.manifests).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    return folder


def test_every_kind_that_can_be_made_is_made() -> None:
    made = {Kind.ORGANIZATION, Kind.PROJECT, *_OF_ORGANIZATION, *_OF_PROJECT}
    assert made == {kind for kind, row in CALLS.items() if row.create}


@MANY
@given(organizations())
def test_a_plan_of_an_export_is_empty(drawn: list[DrawnOrganization]) -> None:
    """From the files, and from the stream alike; nothing is lost without a word."""
    state = observed(filled(drawn))
    export = export_of(state)
    with tempfile.TemporaryDirectory() as folder:
        tree = written(export, Path(folder))
        (tree / "stream.yaml").write_bytes(as_stream(export.manifests).encode())
        sources = [[tree / path.name for path in tree.iterdir() if path.is_dir()]]
        sources.append([tree / "stream.yaml"])
        for paths in sources if export.manifests else ():
            judgement = judge(load(paths))
            assert [str(found) for found in judgement.diagnostics if found.is_error] == []
            plan = build_plan(judgement.desired, state, Scope(), Allowances())
            assert plan.changes == ()
            assert len(plan.in_step) == len(export.manifests)
    assert len(export.manifests) + len(export.left_out) == len(state.objects)


@MANY
@given(organizations())
def test_two_exports_are_the_same_to_the_byte(drawn: list[DrawnOrganization]) -> None:
    """A scheduled export shows a difference only where there is one."""
    service = filled(drawn)
    first, second = export_of(observed(service)), export_of(observed(service))

    assert list(as_files(first.manifests).items()) == list(as_files(second.manifests).items())
    assert as_stream(first.manifests) == as_stream(second.manifests)
    assert first.left_out == second.left_out


@each_row(
    "is_there",
    [
        pytest.param(lambda it: it.manifests, id="exported"),
        pytest.param(lambda it: it.left_out, id="left out"),
        pytest.param(lambda it: any(each.scripts for each in it.manifests), id="script files"),
        pytest.param(lambda it: any("-" in each.path for each in it.manifests), id="made names"),
    ],
)
def test_the_generator_makes_what_can_and_what_cannot_be_exported(
    is_there: Callable[[Export], object],
) -> None:
    """A law that is never tried on anything hard holds of everything."""
    first = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])

    find(
        organizations(), lambda it: bool(is_there(export_of(observed(filled(it))))), settings=first
    )
