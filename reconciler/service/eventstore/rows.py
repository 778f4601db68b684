"""Rows of a store, and the chain that the events of an organization form.

Rows are tuples, because ten thousand of them are made at once. The hash of each event covers the
hash before it. What is hashed is unambiguous, the lengths of all parts first and then the parts: no
two different events have the same encoding, whatever their texts contain.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple, TypeAlias

ORIGIN = bytes(32)  # the hash before the first event of an organization


class NewEvent(NamedTuple):
    """An event that wants to be appended: its type, and its payload as canonical JSON."""

    type: str
    payload: str


class StreamAt(NamedTuple):
    """A stream as its writer knows it: whose it is, its id, and how many events it has."""

    organization: str
    id: str
    version: int


class Author(NamedTuple):
    """The author of an event: the name of the token, and the context as it was given."""

    writer: str
    context: str


# The order of the fields is that of the columns, and of what the hash of an event covers.
class StoredEvent(NamedTuple):
    """One event of the log.

    Attributes:
        position: Place in the whole log; increases, but may have gaps.
        sequence: Microseconds since the epoch, moved on where the clock was not; strictly
            increasing within the organization.
        version: Place in the stream, from 1 without gaps.
        recorded_at: What the clock said.
        previous: Hash of the organization's event before this one.
    """

    position: int
    organization: str
    sequence: int
    stream: str
    version: int
    type: str
    payload: str
    context: str
    writer: str
    recorded_at: int
    previous: bytes
    hash: bytes


class EventKey(NamedTuple):
    """As much of an event as tells whether to read the rest, which may be very long."""

    sequence: int
    stream: str
    version: int
    type: str


class EventNote(NamedTuple):
    """An event without what it says of its object."""

    sequence: int
    stream: str
    version: int
    type: str
    context: str
    writer: str


class ObjectName(NamedTuple):
    """As much of an object as names it."""

    id: str
    kind: str
    organization: str
    parent: str
    name: str


class EventTrace(NamedTuple):
    """As much of an event of a stream as tells which tree made it."""

    version: int
    type: str
    context: str


class Head(NamedTuple):
    """The end of an organization's chain. Writers of the organization lock this row."""

    organization: str
    sequence: int
    events: int
    hash: bytes


class ObjectRow(NamedTuple):
    """One object as it is now.

    Attributes:
        parent: The project of an application, the organization of anything else that has one.
        folded: The name as names are compared; unique per kind and parent.
        spec: The fields in normal form, as canonical JSON.
        version: How many events its stream has.
        sequence: Of its last event.
        created: Sequence of its first event.
        context: Of its last event.
        marks: As JSON, what contexts left behind (the trees that ever wrote it, and whether it
            was last said to be protected from deletion), that it is inactive, if it is, and of an
            organization the pauses and last records of its trees.
    """

    id: str
    kind: str
    organization: str
    parent: str
    name: str
    folded: str
    spec: str
    client_id: str
    secret_hash: str
    version: int
    sequence: int
    created: int
    changed_by: str
    context: str
    marks: str


ObjectKey: TypeAlias = tuple[str, int]
"""Id and sequence of an object: as much of it as tells whether its text is known already.

It is the row as it was read: to give a page of them names takes as long as to read it.
"""


class Record(NamedTuple):
    """The answer that a caller was given under an idempotency key.

    Attributes:
        caller: Hash of its token in hex, or its name where it needs no token.
        digest: Of what was asked and what was answered; the same key with another one is a
            mistake, or the row is damaged.
        answer: As JSON, without its secret.
        seal: Id of the seal that holds the secret, or None.
        slot: Which of the seal's secrets it is.
    """

    caller: str
    key: str
    digest: bytes
    answer: str
    seal: str | None
    slot: int
    expires_at: int


class SealRow(NamedTuple):
    """The secrets of one commit, sealed together with a key that is not in the store."""

    id: str
    sealed: bytes
    expires_at: int


class OwedRow(NamedTuple):
    """A client secret whose delivery was not acknowledged yet.

    Attributes:
        id: Of the application; it owes one secret at most.
        made_at: Sequence of the event that made the secret.
        made_by: Name of the token that made it.
        tree: From the context of that event, or empty.
        run: Id of the run, as the caller named it.
        seal: Id of the seal that holds the secret; None once its time is over.
        slot: Place of the secret among those of the seal.
        expires_at: When the secret is dropped, in microseconds since the epoch.
    """

    id: str
    organization: str
    made_at: int
    made_by: str
    tree: str
    run: str
    seal: str | None
    slot: int
    expires_at: int


class LeaseRow(NamedTuple):
    """The lease of an organization, or of a tree in it; ``token`` is empty once it was given back.

    ``organization`` is a folded name, for the organization may not exist yet; of a tree it is the
    key that ``operations.leases`` makes. ``fence`` grows with every lease of that name.
    """

    organization: str
    token: str
    holder: str
    fence: int
    acquired_at: int
    expires_at: int


class TokenRow(NamedTuple):
    """A token, known only by its hash.

    ``organizations`` is a JSON list of ids, or empty for all. ``expires_at`` and ``revoked_at``
    are 0 where there is no such time.
    """

    name: str
    role: str
    organizations: str
    sha256: bytes
    created_at: int
    expires_at: int
    revoked_at: int


class TrustRow(NamedTuple):
    """A rule: whose signed tokens are exchanged for a token of this service, and for which one.

    A rule is never changed: another one under its name has another id.

    Attributes:
        id: Made by the service; of a machine also the issuer and subject of what it signs.
        kind: ``issuer`` for tokens of somebody else, ``machine`` for a key of its own.
        issuer: The ``iss`` that tokens must have.
        organizations: As in ``TokenRow``.
        claims: As JSON, names of claims with the values that are accepted, at least one each.
        preset: Name of the preset that the claims were checked by, or empty.
        keys: JSON Web Key Set, or empty where keys are fetched from the issuer.
        authority: Certificates of a private authority, in PEM, or empty.
        once: 1 where a token is exchanged only once.
        expires_at: 0 where there is no such time, else in microseconds since the epoch.
    """

    name: str
    id: str
    kind: str
    role: str
    organizations: str
    issuer: str
    claims: str
    preset: str
    keys: str
    authority: str
    once: int
    created_at: int
    created_by: str
    expires_at: int


class PassRow(NamedTuple):
    """A short token that was given by a rule. It counts while its rule is there.

    Attributes:
        rule: Name of the rule.
        rule_id: Its id: a rule that took its name does not make the token count again.
        account: Owner of the answers that are kept under idempotency keys.
        verified: What was verified when it was given, as JSON.
        used: Digest of the signed token where that is exchanged only once, else None.
        expires_at: When it ends.
        kept_until: When the row is removed, which is later where ``used`` must be remembered.
    """

    sha256: bytes
    rule: str
    rule_id: str
    role: str
    account: str
    verified: str
    used: str | None
    expires_at: int
    kept_until: int


class Lookups(NamedTuple):
    """Lookups that the calls of a batch will probably make. Only speed depends on them.

    Attributes:
        organizations: Ids of those that will be written to.
        records: Callers and their idempotency keys.
        objects: Ids of objects, those that something may be made in among them.
        names: Folded names that something may get, each with the object that it would be in; of an
            organization an empty one.
        events: How many events there may be.
        is_shared: Whether calls that have nothing to do with one another share the transaction.
            If it would have to wait for another one, it fails soon, and writes nothing.
    """

    organizations: frozenset[str]
    records: frozenset[tuple[str, str]]
    objects: frozenset[str]
    names: frozenset[tuple[str, str]]
    events: int
    is_shared: bool = False


NO_LOOKUPS = Lookups(frozenset(), frozenset(), frozenset(), frozenset(), 0)


class NameFilter(NamedTuple):
    """A test of names. ``text`` is folded where ``folded`` says that folded names are tested."""

    match: str  # equals, starts, contains or ends
    text: str
    folded: bool


class ObjectQuery(NamedTuple):
    """A filtered list of objects of one kind; every filter must hold.

    Attributes:
        parent: As in ``ObjectRow``; empty for organizations.
        ids: Only objects of these ids, or None for any.
        active: Only objects that are active, or only inactive ones, or None for both.
        by_name: Sort by folded name instead of by id.
        limit: 0 for no limit.
    """

    kind: str
    parent: str
    ids: frozenset[str] | None = None
    names: tuple[NameFilter, ...] = ()
    active: bool | None = None
    by_name: bool = False
    descending: bool = False
    offset: int = 0
    limit: int = 0

    @property
    def is_filtered(self) -> bool:
        """Return whether not every object of the kind and parent need be found."""
        return self.ids is not None or self.names != () or self.active is not None


INACTIVE_MARK = '"inactive":true'
"""Stands in the marks of an inactive object, and of no other: a quote in a name is escaped."""


def length_of_page(query: ObjectQuery, total: int) -> int:
    """Return how many objects the page of a query has, of so many that the query finds.

    A filtered page that asks for more is looked for to the end of the list.
    """
    left = max(total - query.offset, 0)
    return min(query.limit or left, left)


def first_head(organization: str) -> Head:
    """Return the head of an organization that has no event yet."""
    return Head(organization, 0, 0, ORIGIN)


def next_sequence(last: int, now: int) -> int:
    """Return the time now, or one microsecond after the last if the clock did not advance."""
    return now if now > last else last + 1


def chained(
    head: Head, stream: StreamAt, new: NewEvent, author: Author, now: int
) -> tuple[StoredEvent, Head]:
    """Return the event as it follows a head, still without a position, and the head after it."""
    # The sequence is also what If-Match compares, so two events of an organization never share one,
    # whatever the clock does.
    sequence = next_sequence(head.sequence, now)
    version = stream.version + 1
    said = (
        stream.organization, sequence, stream.id, version, new.type, new.payload,
        author.context, author.writer, now,
    )  # fmt: skip
    digest = _digest(head.hash, said)
    return (
        StoredEvent(0, *said, head.hash, digest),
        Head(stream.organization, sequence, head.events + 1, digest),
    )


def event_hash(event: StoredEvent) -> bytes:
    """Return the hash that an event should carry."""
    return _digest(event.previous, event[1:10])


def _digest(previous: bytes, said: tuple[object, ...]) -> bytes:
    # For instance ("a", 1, "bc") becomes "1,1,2\na1bc", which ("a1", "b", "c") cannot become.
    parts = list(map(str, said))
    lengths = ",".join(map(str, map(len, parts)))
    text = f"{lengths}\n{''.join(parts)}"
    return sha256(previous + text.encode("utf-8", "surrogatepass")).digest()
