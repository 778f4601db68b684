"""The tables of a store, described once for SQLite and PostgreSQL.

The columns of a table are the fields of its row, in their order. The script that makes the tables
is written from the description, each database with its own words for types and keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

from reconciler.service.eventstore.rows import (
    Head,
    LeaseRow,
    ObjectRow,
    OwedRow,
    PassRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
    TrustRow,
)

SCHEMA_VERSION = 1


class MetaRow(NamedTuple):
    """A fact about the store itself."""

    name: str
    value: str


class Index(NamedTuple):
    """An index beside the key of a table.

    Attributes:
        name: Its end, after the name of the table.
        where: Condition of the rows that it has; empty for every row.
    """

    name: str
    columns: tuple[str, ...]
    where: str = ""
    is_unique: bool = False


class Table(NamedTuple):
    """A table.

    Attributes:
        row: Named tuple with a field for each column.
        key: Columns of the primary key.
        guard: Columns in addition to the key that say which version of a row is removed: what
            another writer has put in its place since stays.
        refers: Columns whose values are keys of other tables, with those tables. Only SQLite
            checks this.
        is_by_key: Whether SQLite keeps the rows in the order of the key, which suits short rows.
        is_log: Whether rows are only ever added.
    """

    name: str
    row: type[NamedTuple]
    key: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    guard: tuple[str, ...] = ()
    refers: Mapping[str, str] = {}
    is_by_key: bool = True
    is_log: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return self.row._fields

    @property
    def known_by(self) -> tuple[str, ...]:
        """Return the columns that tell which row is to be removed."""
        return self.key + self.guard

    def known_in(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return the values of these columns in a row."""
        return [row[self.columns.index(name)] for name in self.known_by]


class Words(NamedTuple):
    """How a database writes the parts of a table.

    Attributes:
        types: Of columns, by the type of the field, each with what goes with every such column.
        make: Begins the statement that makes something, such as ``CREATE TABLE``.
        prefix: Begins the name of everything that is made.
        by_key: Ends a table whose rows are in the order of the key.
        end: Ends every other table.
    """

    types: Mapping[object, str]
    make: str
    prefix: str = ""
    by_key: str = ""
    end: str = ""
    has_references: bool = False


def _unique(name: str, *columns: str) -> Index:
    return Index(name, columns, is_unique=True)


META = Table("meta", MetaRow, ("name",))
HEADS = Table("heads", Head, ("organization",))
EVENTS = Table(
    "events",
    StoredEvent,
    ("position",),
    (_unique("stream", "stream", "version"), _unique("sequence", "organization", "sequence")),
    refers={"organization": "heads"},
    is_by_key=False,
    is_log=True,
)
OBJECTS = Table(
    "objects",
    ObjectRow,
    ("id",),
    (
        _unique("name", "parent", "kind", "folded"),
        _unique("page", "organization", "id"),
        Index("listed", ("parent", "kind", "id")),
        Index("client", ("client_id",), "client_id <> ''", is_unique=True),
    ),
    is_by_key=False,
)
SEALS = Table("seals", SealRow, ("id",))
RECORDS = Table(
    "records",
    Record,
    ("caller", "key"),
    (Index("time", ("expires_at",)),),
    guard=("expires_at",),
    is_by_key=False,
)
LEASES = Table("leases", LeaseRow, ("organization",))
TOKENS = Table("tokens", TokenRow, ("name",), (_unique("hash", "sha256"),))
# The indexes by time and by seal have only rows that still have a secret.
OWED = Table(
    "owed",
    OwedRow,
    ("id",),
    (
        Index("listed", ("organization", "id")),
        Index("time", ("expires_at",), "seal IS NOT NULL"),
        Index("seal", ("seal",), "seal IS NOT NULL"),
    ),
    guard=("made_at",),
)
TRUSTS = Table("trusts", TrustRow, ("name",))
PASSES = Table(
    "passes", PassRow, ("sha256",), (_unique("used", "used"), Index("time", ("kept_until",)))
)
TABLES = (META, HEADS, EVENTS, OBJECTS, SEALS, RECORDS, LEASES, TOKENS, OWED, TRUSTS, PASSES)


def script(tables: Sequence[Table], words: Words) -> str:
    """Return a script that makes tables and their indexes."""
    return "".join(f"{statement};\n" for statement in statements(tables, words))


def statements(tables: Sequence[Table], words: Words) -> Iterator[str]:
    """Yield the statements that make tables and their indexes."""
    for table in tables:
        name = words.prefix + table.name
        parts = ",\n    ".join([*_columns(table, words), f"PRIMARY KEY ({', '.join(table.key)})"])
        end = words.by_key if table.is_by_key else words.end
        yield f"{words.make.format('TABLE')} {name} (\n    {parts}\n){end}"
        for index in table.indexes:
            make = words.make.format("UNIQUE INDEX" if index.is_unique else "INDEX")
            where = f" WHERE {index.where}" if index.where else ""
            columns = ", ".join(index.columns)
            yield f"{make} {name}_{index.name} ON {name} ({columns}){where}"


def _columns(table: Table, words: Words) -> Iterator[str]:
    for column, kind in get_type_hints(table.row).items():
        other = table.refers.get(column) if words.has_references else None
        refers = f" REFERENCES {words.prefix}{other} ({column})" if other else ""
        yield f"{column} {words.types[kind]}{refers}"
