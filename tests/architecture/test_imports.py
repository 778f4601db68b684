"""The house rules that a reader cannot see: who may import whom, and what.

The tables below are the ones in ``.github/CONTRIBUTING.md``. The tree is asked which modules
there are, so that a new module is held to them without anybody thinking of it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

from tests.architecture.tree import (
    MODULES,
    ROOT,
    imports,
    imports_at_the_top,
    module_of,
    needed_by,
    nodes_of,
)

# A file of a kind's room, and the registry of its name beside the rooms, count as part of the
# folder that has their layer.
LAYERS = {
    "__init__.py": "resources/",
    "fields.py": "resources/",
    "addresses.py": "resources/",
    "compliance.py": "resources/",  # of an application's fields
    "flows.py": "resources/",  # the words of a flow's fields
    "redirect_uris.py": "rules/",
    "rules.py": "rules/",
    "calls.py": "service_client/",
    "zitadel.py": "service_client/",
    "events.py": "service/domain/",
    "operations.py": "service/operations/",
}

NOUNS = {"resources", "errors", "diagnostics", "state"}
MAY_IMPORT = {
    "resources": set(),
    "rules": NOUNS,
    "diagnostics": {"resources"},
    "errors": {"resources", "diagnostics"},
    "state": {"resources", "diagnostics"},
    "manifests": NOUNS,
    "validation": NOUNS | {"manifests", "rules"},
    "configuration": NOUNS | {"manifests", "validation", "policy"},
    "plan": NOUNS | {"rules"},
    "policy": NOUNS | {"plan"},
    "service_client": NOUNS,
    "apply": NOUNS | {"plan", "service_client"},
    "report": NOUNS | {"plan", "apply"},
    "git": NOUNS,
    "continuous": NOUNS | {"plan", "rules"},
    "loop": NOUNS | {"plan", "apply", "service_client"},
    "cli": NOUNS
    | {
        "manifests",
        "validation",
        "configuration",
        "plan",
        "policy",
        "apply",
        "service_client",
        "report",
        "git",
        "continuous",
        "loop",
        "service",
    },
    "service": {"resources"},
    "__init__": set(),
    "__main__": {"cli", "resources"},
}

# Inside the service. A part that is not named here may import nothing of the service but itself.
SERVICE_MAY_IMPORT = {
    "domain": set(),
    "eventstore": set(),
    "projections": {"domain", "eventstore"},
    "operations": {"domain", "eventstore", "projections"},
    "keyless": {"domain", "eventstore", "operations"},
    "scheduling": {"operations", "domain/refusal"},
    "transport": {"scheduling", "operations", "keyless", "domain/refusal"},
    "seal": {"eventstore"},
    "restore": {"eventstore", "projections", "domain/trust"},
    "build": {"config", "seal", "domain", "eventstore", "projections", "operations", "transport"},
}

# An outside library, or a way out of the process, and the modules that may import it. A name
# that ends in a slash is a folder.
DOORS: dict[str, tuple[str, ...]] = {
    "yaml": ("manifests/yaml_source.py",),
    "jsonschema": ("validation/schema.py",),
    "jsonschema_rs": ("validation/schema.py",),
    "quickjs": ("validation/script.py",),
    "cel_expr_python": ("policy/rules.py",),
    "deepdiff": ("plan/diff.py",),
    "httpx": ("service_client/http_wire.py", "service/keyless/issuers.py"),
    "jinja2": ("cli/ci_jobs.py",),
    "joserfc": ("service/keyless/signatures.py", "service_client/machine_keys.py"),
    "cryptography": ("service_client/machine_keys.py",),
    "orjson": ("service/", "apply/sink.py"),
    "pyrage": ("service/seal.py", "apply/folder_sinks.py"),
    "sqlite3": ("service/eventstore/",),
    "psycopg": ("service/eventstore/",),
    "psycopg_pool": ("service/eventstore/",),
    "pydantic": (
        "resources/strict_json.py",
        "service/operations/models.py",
    ),
    "click": ("cli/",),
    "starlette": (),  # a framework of tests
    "uvicorn": ("service/transport/",),
    "httptools": ("service/transport/",),
    "uvloop": ("service/transport/",),
    "h2": ("service/transport/http2.py",),
    "hpack": ("service/transport/http2.py",),
    "grpc": (),  # a client of tests
    "google": ("service/transport/", "policy/messages.py"),
    "subprocess": ("apply/command.py", "cli/git.py", "git/program.py", "policy/process.py"),
    "pickle": (),
}

# Parts that decide: the same question gives the same answer, wherever and whenever it is asked.
PURE = (
    *("plan/", "policy/", "continuous/", "resources/", "rules/", "service/domain/"),
    *("errors.py", "diagnostics.py", "state.py"),
)
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
# They decide nothing: where the schemas are, where a test may end the process, how files are opened
# and written, which both sides do and neither may import from the other; and the process in which
# rules are judged, with its limits.
IMPURE_ALLOWED = {
    "policy/child.py": {"os", "sys"},
    "policy/process.py": {"pathlib", "signal", "subprocess", "sys", "threading", "time"},
    "resources/installation.py": {"pathlib"},
    "resources/process.py": {"os", "signal"},
    "resources/files.py": {"os", "pathlib"},
}
CLOCK_CALLS = {"now", "utcnow", "today"}

# What an unchanged plan never loads, because loading costs more than the work (DOORS says who
# else may). The models are pydantic's, so no module on that path imports them at its top.
HEAVY = {
    "pydantic",
    "jsonschema",
    "deepdiff",
    "httpx",
    "h2",
    "google",
    "uvicorn",
    "quickjs",
}
LIGHT = (
    "manifests/",
    "configuration/",
    "plan/",
    "validation/",
    "loop.py",
    "errors.py",
    "diagnostics.py",
    "state.py",
)


def placed(module: str) -> str:
    """Return a module under the folder of its layer, if it is in a room."""
    layer = LAYERS[module.rpartition("/")[2]] if module.startswith("kinds/") else ""
    return layer + module


def part_of(module: str) -> str:
    return placed(module).removesuffix(".py").split("/")[0]


def is_in(module: str, places: tuple[str, ...]) -> bool:
    here = placed(module)
    return any(here.startswith(place) if place.endswith("/") else here == place
               for place in places)  # fmt: skip


def is_library(name: str, library: str) -> bool:
    return name == library or name.startswith(library + ".")


def test_each_part_imports_only_what_it_may() -> None:
    """A stage does not know its neighbours, and neither side of the wall knows the other."""
    parts = {part_of(module) for module in MODULES}
    assert parts - set(MAY_IMPORT) == set(), "say in the table what a new part may import"

    strangers = [
        (module, needed)
        for module in MODULES
        for needed in sorted(needed_by(module))
        if part_of(needed) not in {part_of(module), "__init__", *MAY_IMPORT[part_of(module)]}
    ]

    assert strangers == []


def test_each_part_of_the_service_imports_only_what_it_may() -> None:
    """The domain knows no store, a store knows no domain, and a transport decides nothing."""
    strangers = []
    for module in MODULES:
        if part_of(module) != "service":
            continue
        here = _part_of_service(module)
        allowed = {here, "__init__", *SERVICE_MAY_IMPORT.get(here, set())}
        for needed in sorted(needed_by(module)):
            found = placed(needed).removeprefix("service/").removesuffix(".py")
            if part_of(needed) == "service" and not {found, found.split("/")[0]} & allowed:
                strangers.append((module, needed))

    assert strangers == []


def _part_of_service(module: str) -> str:
    return part_of(placed(module).removeprefix("service/"))


def test_no_module_needs_itself() -> None:
    """Modules in a circle can only be understood, and loaded, together."""
    needs = {module: needed_by(module) - {module} for module in MODULES}

    assert set(TopologicalSorter(needs).static_order()) == set(MODULES)


def test_each_outside_library_has_one_door() -> None:
    """A library can be replaced by rewriting the module that is its door."""
    strangers = [
        (module, library)
        for module in MODULES
        for name in imports(module)
        for library, places in DOORS.items()
        if is_library(name, library) and not is_in(module, places)
    ]

    assert strangers == []


def test_doors_are_where_the_table_says() -> None:
    """A door that has moved leaves the table, so that the table stays the truth."""
    doors = {place for places in DOORS.values() for place in places if place.endswith(".py")}

    assert doors - set(MODULES) == set()


def test_what_decides_reads_no_clock_and_opens_nothing() -> None:
    """Time, chance and the outside come in as arguments, or not at all."""
    pure = [module for module in MODULES if is_in(module, PURE)]
    impure = [
        (module, outside)
        for module in pure
        for name in imports(module)
        for outside in IMPURE_MODULES - IMPURE_ALLOWED.get(module, set())
        if is_library(name, outside)
    ]
    calls = [
        (module, node.lineno, called)
        for module in pure
        for node in nodes_of(module)
        if isinstance(node, ast.Call)
        and (called := _name_called(node)) in CLOCK_CALLS | {"open", "input"}
        and (module, called) != ("resources/files.py", "open")
    ]

    assert pure
    assert impure == []
    assert calls == []


def _name_called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def test_only_the_command_line_reads_the_environment() -> None:
    """What a setting does is seen where it is read; everything else is told."""
    reading = [
        (module, node.lineno)
        for module in MODULES
        if not is_in(module, ("cli/", "resources/process.py"))
        for node in nodes_of(module)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    ]

    assert reading == []


def loaded_with(*modules: str) -> set[str]:
    """Return modules and all of ours that they load as soon as they are imported."""
    seen, waiting = set(modules), list(modules)
    while waiting:
        for name in imports_at_the_top(waiting.pop()):
            found = module_of(name)
            if found is not None and found not in seen:
                seen.add(found)
                waiting.append(found)
    return seen


def test_an_unchanged_plan_loads_nothing_heavy() -> None:
    """A module on that path loads a heavy library where it is used, not at its top."""
    light = [module for module in MODULES if is_in(module, LIGHT)]
    heavy = [
        (module, library)
        for module in loaded_with(*light)
        for name in imports_at_the_top(module)
        for library in HEAVY
        if is_library(name, library)
    ]

    assert light
    assert heavy == []


def test_to_validate_loads_no_plan() -> None:
    """Its modules take a tenth of the time in which a small tree is validated."""
    loaded = loaded_with("cli/main.py", "cli/validate.py")

    assert "manifests/loader.py" in loaded
    assert {part_of(module) for module in loaded} & {"plan", "apply", "loop"} == set()


def test_the_command_line_starts_light() -> None:
    """The help of the command costs no library that only one command needs."""
    command = "import sys, reconciler.cli.main; print(' '.join(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert HEAVY & set(run.stdout.split()) == set()
