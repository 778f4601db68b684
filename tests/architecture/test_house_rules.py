"""Rules of the whole repository: counted exceptions, nothing that ties it to a machine."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from docs.api.document import CORE
from reconciler.cli.main import COMMANDS, cli
from reconciler.cli.settings import ID_TOKEN, KNOWN, TOKEN
from reconciler.service.operations.table import operations
from tests.architecture.tree import MODULES, PACKAGE, ROOT, nodes_of, tree_of
from tests.mutation.parts import PARTS

# How often each way around a rule is used, in the package and in the tests. One more needs a
# visible change of its number here, with its reason in the commit; one less lowers the number.
COUNTED = {
    ("reconciler", r"#\s*noqa"): 0,
    ("reconciler", r"#\s*type:\s*ignore"): 0,
    ("reconciler", r"pragma:\s*no\s*cover"): 0,
    ("tests", r"#\s*noqa"): 0,
    ("tests", r"#\s*type:\s*ignore"): 0,
    ("tests", r"pragma:\s*no\s*cover"): 0,
    ("tests", r"pytest\.mark\.skip|pytest\.skip\("): 0,
}

# Written in pieces, so that this file does not contain what it looks for.
HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("proxy", "golang", "org"),
        ("jfrog", "io"),
    )
]
HOMES = ["home", "Users", "root", "work"]

UNTRACKED = {".git", ".venv", ".reconciler", ".hypothesis", "node_modules", "dist", "__pycache__"}


def repository_files() -> list[Path]:
    """Return the files of the repository; of an unpacked archive, all that were not made here."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=ROOT, capture_output=True, check=False
    )
    if listing.returncode == 0 and listing.stdout:
        names = listing.stdout.decode().split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(_is_made_here(part) for part in path.relative_to(ROOT).parts)
    ]


def _is_made_here(part: str) -> bool:
    return part in UNTRACKED or part.endswith("_cache")


FILES = repository_files()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def content_of(path: Path) -> bytes:
    """Return what a file holds, read once for all rules."""
    return path.read_bytes()


def test_there_is_something_to_look_at() -> None:
    """An empty listing would make every rule below pass."""
    assert len(FILES) > 50
    assert len(MODULES) > 10


def test_nothing_prints() -> None:
    """What a reader sees goes through one place, which makes it safe to show."""
    prints = [
        (module, node.lineno)
        for module in MODULES
        for node in nodes_of(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"print", "breakpoint"}
    ]

    assert prints == []


def test_every_module_says_what_it_is() -> None:
    """The first line of a module tells a newcomer whether to read on."""
    trees = {module: tree_of(module) for module in MODULES}

    assert [m for m, tree in trees.items() if tree.body and not ast.get_docstring(tree)] == []


def test_every_method_says_what_it_does_unless_a_protocol_or_base_class_says_it() -> None:
    """What a protocol says holds for each implementation, which says only what it adds."""
    classes = [
        (module, node)
        for module in MODULES
        for node in nodes_of(module)
        if isinstance(node, ast.ClassDef)
    ]
    bases = {base for _, node in classes for base in bases_of(node)}
    said = {
        method.name
        for _, node in classes
        if node.name in bases or "Protocol" in bases_of(node)
        for method in public_methods_of(node)
        if ast.get_docstring(method)
    }

    assert [
        (module, node.name, method.name)
        for module, node in classes
        if not node.name.startswith("_")
        for method in public_methods_of(node)
        if not ast.get_docstring(method) and method.name not in said
    ] == []


def bases_of(node: ast.ClassDef) -> list[str]:
    """Return the names of base classes, without modules and type arguments."""
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def public_methods_of(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        each
        for each in node.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and not each.name.startswith("_")
    ]


def test_ways_around_a_rule_are_counted() -> None:
    """Each is a decision somebody made, not a habit."""
    here = Path(__file__)
    texts = {
        folder: {
            path: path.read_text(encoding="utf-8")
            for path in sorted((ROOT / folder).rglob("*.py"))
            if path != here and "_pb2" not in path.name
        }
        for folder, _ in COUNTED
    }
    for (folder, pattern), allowed in COUNTED.items():
        found = [
            f"{name_of(path)}:{text[: use.start()].count(chr(10)) + 1}"
            for path, text in texts[folder].items()
            for use in re.finditer(pattern, text)
        ]
        assert len(found) <= allowed, (pattern, found)


def test_no_file_names_a_registry() -> None:
    """Where packages come from is the business of whoever installs them."""
    hosts = re.compile("|".join(re.escape(host) for host in HOSTS).encode())

    assert [name_of(path) for path in FILES if hosts.search(content_of(path))] == []


def test_no_file_names_a_path_of_a_machine() -> None:
    """What works here only because of where it lies works nowhere else."""
    # A slash that nothing stands before; a pattern that begins with its slash is quick to look for.
    rooted = re.compile(rf"/(?<![\w.\]*-]/)(?:{'|'.join(HOMES)})/\w".encode())

    assert [name_of(path) for path in FILES if rooted.search(content_of(path))] == []


def test_links_between_documents_lead_somewhere() -> None:
    """A page that moved takes its links along."""
    lost = [
        (name_of(document), target)
        for document in FILES
        if document.suffix == ".md"
        for target in links_of(document.read_text(encoding="utf-8"))
        if not (document.parent / target).exists()
    ]

    assert lost == []


def links_of(markdown: str) -> list[str]:
    """Return the files of this repository that a page links to."""
    text = re.sub(r"```.*?```", "", markdown, flags=re.DOTALL)
    return [
        target.split("#")[0]
        for target in re.findall(r"\]\(([^)\s]+)\)", text)
        if "://" not in target and not target.startswith(("#", "mailto:"))
    ]


EXAMPLES = sorted((ROOT / "manifests").rglob("*.yaml"))
STARTERS = (PACKAGE / "cli" / "starter", PACKAGE / "cli" / "starter-environments")
STARTER = sorted(path for folder in STARTERS for path in folder.rglob("*.yaml"))


def test_what_mutation_tries_is_there() -> None:
    """A module that moves takes its place among the parts along."""
    named = {path for part in PARTS.values() for path in (*part.modules, *part.tests)}

    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_example_manifests_name_their_schema_for_the_editor() -> None:
    """The first line is the modeline, and what it points at exists (init adds ``.schemas``)."""
    assert EXAMPLES
    assert STARTER
    assert [name_of(path) for path in (*EXAMPLES, *STARTER) if not names_its_schema(path)] == []


def names_its_schema(manifest: Path) -> bool:
    first = manifest.read_text(encoding="utf-8").splitlines()[0]
    pointed = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    if not pointed:
        return False
    schema = (manifest.parent / pointed[1]).resolve()
    if manifest in STARTER:
        is_where_init_puts_it = schema.parent in {folder / ".schemas" for folder in STARTERS}
        return is_where_init_puts_it and (ROOT / "schemas" / schema.name).is_file()
    return schema.is_file()


def test_the_reference_for_authors_names_every_field() -> None:
    """A field that is nowhere described does not exist for who writes manifests."""
    pages = (ROOT / "docs" / name for name in ("manifests.md", "policies.md"))
    reference = "".join(page.read_text(encoding="utf-8") for page in pages)
    files = sorted((ROOT / "schemas").glob("*.schema.json"))
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in files}
    # A schema that picks by kind holds one for each kind.
    documents = [
        (name, document)
        for name, schema in schemas.items()
        for document in (schema, *schema.get("$defs", {}).values())
    ]
    missing = {
        (name, field)
        for name, document in documents
        for part in ("spec", "metadata")
        for field in document["properties"].get(part, {}).get("properties", ())
        if not re.search(rf"[`.]{field}`", reference)
    }

    assert len(schemas) > 1
    assert missing == set()


def test_every_decision_is_in_the_list() -> None:
    """A page that nobody finds is not a decision."""
    folder = ROOT / "docs" / "decisions"
    listing = (folder / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in folder.glob("0*.md") if f"({page.name})" not in listing] == []


def test_every_operation_is_described_as_it_is() -> None:
    """The page of the operations says of each what the table says."""
    page = (ROOT / "docs" / "service-operations.md").read_text(encoding="utf-8").splitlines()
    for operation in operations().values():
        (row,) = [line for line in page if line.startswith(f"| `{operation.name}` |")]
        assert [address for address in operation.http if f"`{address}`" not in row] == [], row
        assert (f"`{operation.permission}`" if operation.permission else "| none |") in row
        assert ("**core**" in row) == (operation.name in CORE), row


def test_the_readme_lists_every_command() -> None:
    """The table of commands is where a newcomer looks first."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Commands") : readme.index("| Exit code |")]

    assert [name for name in COMMANDS if not re.search(rf"`{name}[ `]", table)] == []


def variables_of(command: click.Command) -> Iterator[str]:
    """Yield the variable of every option of a command and of the commands in it."""
    yield from (str(each.envvar) for each in command.params if each.envvar)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from variables_of(found)


def test_every_variable_of_an_option_is_in_the_list() -> None:
    """Names that are missing there are not suggested to who misspelt one."""
    assert {*variables_of(cli), TOKEN, ID_TOKEN} == KNOWN
