"""The house rules that a reader cannot see: who may import whom, and what.

The tables below are the ones in ``.github/CONTRIBUTING.md``. The tree is asked which modules
there are, so that a new module is held to them without anybody thinking of it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "reconciler"
MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]

NOUNS = {"resources", "errors", "diagnostics", "state"}
MAY_IMPORT = {
    "resources": set(),
    "diagnostics": {"resources"},
    "errors": {"resources", "diagnostics"},
    "state": {"resources", "diagnostics"},
    "manifests": NOUNS,
    "validation": NOUNS | {"manifests"},
    "plan": NOUNS,
    "service_client": NOUNS,
    "apply": NOUNS | {"plan", "service_client"},
    "report": NOUNS | {"plan", "apply"},
    "loop": NOUNS | {"plan", "apply", "service_client"},
    "cli": NOUNS
    | {"manifests", "validation", "plan", "apply", "service_client", "report", "loop", "service"},
    "service": {"resources"},
    "__init__": set(),
    "__main__": {"cli"},
}

# Inside the service. A part that is not named here may import nothing of the service but itself.
SERVICE_MAY_IMPORT = {
    "domain": set(),
    "eventstore": set(),
    "projections": {"domain", "eventstore"},
    "operations": {"domain", "eventstore", "projections"},
    "transport": {"operations", "domain/refusal"},
    "seal": {"eventstore"},
    "restore": {"eventstore", "projections"},
    "build": {"config", "seal", "domain", "eventstore", "projections", "operations", "transport"},
}

# An outside library, or a way out of the process, and the modules that may import it. A name
# that ends in a slash is a folder.
DOORS: dict[str, tuple[str, ...]] = {
    "yaml": ("manifests/yaml_source.py",),
    "jsonschema": ("validation/schema.py",),
    "jsonschema_rs": ("validation/schema.py",),
    "quickjs": ("validation/script.py",),
    "deepdiff": ("plan/diff.py",),
    "httpx": ("service_client/http_wire.py",),
    "cryptography": ("service_client/key_file.py",),
    "orjson": ("service/",),
    "pyrage": ("service/seal.py", "apply/age_sink.py"),
    "sqlite3": ("service/eventstore/",),
    "psycopg": ("service/eventstore/",),
    "psycopg_pool": ("service/eventstore/",),
    "pydantic": ("resources/", "service/operations/", "service/config.py"),
    "click": ("cli/",),
    "starlette": ("service/transport/",),
    "uvicorn": ("service/transport/",),
    "httptools": ("service/transport/",),
    "uvloop": ("service/transport/",),
    "grpc": ("service/transport/grpc_server.py",),
    "grpc_health": ("service/transport/grpc_server.py",),
    "grpc_reflection": ("service/transport/grpc_server.py",),
    "google": ("service/transport/",),
    "subprocess": ("apply/command.py",),
    "pickle": (),
}

NOT_BUILT_YET = {"service/config.py"}

# Parts that decide: the same question gives the same answer, wherever and whenever it is asked.
PURE = ("plan/", "resources/", "service/domain/", "errors.py", "diagnostics.py", "state.py")
IMPURE_MODULES = {
    "asyncio",
    "http",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib.request",
    "uuid",
}
# Three that decide nothing: where the schemas are, how they are written when that module is run as
# a command, and where a test may end the process.
IMPURE_ALLOWED = {
    "resources/schema_files.py": {"pathlib"},
    "resources/manifest_model.py": {"pathlib", "sys"},
    "resources/crashpoint.py": {"os", "signal"},
}
CLOCK_CALLS = {"now", "utcnow", "today"}

# What an unchanged plan never loads, because loading costs more than the work (DOORS says who
# else may). The models are pydantic's, so no module on that path imports them at its top.
HEAVY = {
    "pydantic",
    "jsonschema",
    "deepdiff",
    "httpx",
    "grpc",
    "google",
    "starlette",
    "uvicorn",
    "quickjs",
}
LIGHT = ("manifests/", "plan/", "validation/", "loop.py", "errors.py", "diagnostics.py", "state.py")


def tree_of(module: str) -> ast.Module:
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"))


def imports(module: str, node: ast.AST | None = None) -> Iterator[str]:
    """Yield every name a module imports, wherever in it, spelt in full."""
    for found in ast.walk(node or tree_of(module)):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0, f"{module}:{found.lineno}: name the module in full"
            yield from (f"{found.module}.{alias.name}" for alias in found.names)


def imports_at_the_top(module: str) -> Iterator[str]:
    """Yield the names that are imported as soon as the module is."""
    for node in tree_of(module).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imports(module, node)


def module_of(name: str) -> str | None:
    """Return the file of ours that an imported name is in, or None."""
    parts = name.split(".")
    if parts[0] != "reconciler":
        return None
    for end in range(len(parts), 0, -1):
        stem = "/".join(parts[1:end])
        for candidate in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/")):
            if candidate in MODULES:
                return candidate
    return None


def part_of(module: str) -> str:
    return module.removesuffix(".py").split("/")[0]


def is_in(module: str, places: tuple[str, ...]) -> bool:
    return any(module.startswith(place) if place.endswith("/") else module == place
               for place in places)  # fmt: skip


def is_library(name: str, library: str) -> bool:
    return name == library or name.startswith(library + ".")


@pytest.mark.parametrize("module", MODULES)
def test_each_part_imports_only_what_it_may(module: str) -> None:
    """A stage does not know its neighbours, and neither side of the wall knows the other."""
    here = part_of(module)
    parts = {part_of(found) for name in imports(module) if (found := module_of(name))}

    assert here in MAY_IMPORT, f"{here} is a new part: say in the table what it may import"
    assert parts - {here, "__init__"} <= MAY_IMPORT[here]


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("service/")])
def test_each_part_of_the_service_imports_only_what_it_may(module: str) -> None:
    """The domain knows no store, a store knows no domain, and a transport decides nothing."""
    here = part_of(module.removeprefix("service/"))
    allowed = SERVICE_MAY_IMPORT.get(here, set())
    inside = {
        found.removeprefix("service/").removesuffix(".py")
        for name in imports(module)
        if (found := module_of(name)) and found.startswith("service/")
    }
    strangers = {
        found
        for found in inside
        if found.split("/")[0] != here and found not in allowed and part_of(found) not in allowed
    }

    assert strangers - {"__init__"} == set()


def test_no_module_needs_itself() -> None:
    """Modules in a circle can only be understood, and loaded, together."""
    needs = {
        module: {found for name in imports(module) if (found := module_of(name))} - {module}
        for module in MODULES
    }

    assert set(TopologicalSorter(needs).static_order()) == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_each_outside_library_has_one_door(module: str) -> None:
    """A library can be replaced by rewriting the module that is its door."""
    strangers = {
        library
        for name in imports(module)
        for library, places in DOORS.items()
        if is_library(name, library) and not is_in(module, places)
    }

    assert strangers == set()


def test_doors_are_where_the_table_says() -> None:
    """A door that has moved leaves the table, so that the table stays the truth."""
    doors = {place for places in DOORS.values() for place in places if place.endswith(".py")}

    assert doors - set(MODULES) <= NOT_BUILT_YET


@pytest.mark.parametrize("module", [m for m in MODULES if is_in(m, PURE)])
def test_what_decides_reads_no_clock_and_opens_nothing(module: str) -> None:
    """Time, chance and the outside come in as arguments, or not at all."""
    impure = {
        outside
        for name in imports(module)
        for outside in IMPURE_MODULES
        if is_library(name, outside)
    }
    calls = {
        node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name))
    }

    assert impure - IMPURE_ALLOWED.get(module, set()) == set()
    assert calls & (CLOCK_CALLS | {"open", "input"}) == set()


@pytest.mark.parametrize(
    "module", [m for m in MODULES if not is_in(m, ("cli/", "resources/crashpoint.py"))]
)
def test_only_the_command_line_reads_the_environment(module: str) -> None:
    """What a setting does is seen where it is read; everything else is told."""
    names = {node.attr for node in ast.walk(tree_of(module)) if isinstance(node, ast.Attribute)}

    assert names & {"environ", "getenv"} == set()


@pytest.mark.parametrize("module", [m for m in MODULES if is_in(m, LIGHT)])
def test_an_unchanged_plan_loads_nothing_heavy(module: str) -> None:
    """A module on that path loads a heavy library where it is used, not at its top."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        here = waiting.pop()
        seen.add(here)
        for name in imports_at_the_top(here):
            heavy = {library for library in HEAVY if is_library(name, library)}
            assert not heavy, f"{here} imports {heavy} at its top, and {module} loads it"
            found = module_of(name)
            if found is not None and found not in seen:
                waiting.append(found)


def test_the_command_line_starts_light() -> None:
    """The help of the command costs no library that only one command needs."""
    command = "import sys, reconciler.cli.main; print(' '.join(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert HEAVY & set(run.stdout.split()) == set()
