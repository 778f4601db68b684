"""Tools of the operations: clocks, ids, random bits, sealing; and what a batch of calls shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, Protocol, TypeVar

from reconciler.resources.secret import MAX_KEEP_OWED_SECONDS, Secret
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import MICROSECONDS, Answer
from reconciler.service.operations.texts import Texts

MOST_KEPT = 4096
T = TypeVar("T")
MAX_KEEP_OWED = MAX_KEEP_OWED_SECONDS * MICROSECONDS


class Seals(Protocol):
    """Seals secrets with a key that is not in the store."""

    def ready(self) -> object:
        """Prove that secrets can be sealed.

        Raises:
            StoreError: there is no key, or it cannot be read or made.
        """
        ...

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        """Return secrets in one sealed piece. None keeps the place of a removed secret."""
        ...

    def open(self, sealed: bytes) -> Sequence[Secret | None] | None:
        """Return the secrets of a sealed piece; None if there is no key that opens it.

        Raises:
            StoreError: the key cannot be read.
        """
        ...


class Kept(Generic[T]):
    """Values that take long to find, such as the totals of lists. It is thread-safe.

    A value is that of one state, which is named by the hash of its last event.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: dict[tuple[str, str], tuple[bytes, T]] = {}

    def get(self, name: tuple[str, str], state: bytes) -> T | None:
        """Return the value of a name, if it is known in this state."""
        of, value = self._known.get(name, (b"", None))
        return value if of == state else None

    def put(self, name: tuple[str, str], state: bytes, value: T) -> None:
        """Keep the value of a name in a state."""
        if len(self._known) >= self._most:
            self._known = {}
        self._known[name] = state, value


@dataclass(frozen=True, slots=True)
class Runtime:
    """The clock, ids, random bits and seals that operations use.

    Attributes:
        now: The clock, in microseconds since the epoch.
        lease_time: The clock that leases end by.
        keep_owed: How long a secret is kept for its delivery, in microseconds.
        texts: JSON texts of objects that were answered.
        totals: How many objects lists without a filter have, by kind and parent. To count them
            takes longer than all the rest of a page.
        removed: What removed objects were, by their ids.
    """

    now: Callable[[], int]
    identifiers: Identifiers
    random_bytes: Callable[[int], bytes]
    seals: Seals
    lease_time: LeaseClock
    keep_owed: int = MAX_KEEP_OWED
    texts: Texts = field(default_factory=Texts)
    totals: Kept[int] = field(default_factory=Kept)
    removed: Kept[Answer] = field(default_factory=Kept)


@dataclass(slots=True)
class SealDraft:
    """Secrets that the commit of a batch seals together; the id is empty while there are none.

    Attributes:
        expires_at: When the seal is dropped, in microseconds since the epoch.
    """

    id: str = ""
    secrets: list[Secret] = field(default_factory=list)
    expires_at: int = 0


@dataclass(slots=True)
class Batch:
    """State that the calls of one transaction share, so that nothing is looked up twice.

    Attributes:
        owners: Organizations and projects by id; neither is ever changed or removed.
        answered: Secrets that are kept for callers who repeat their call.
        custody: Secrets that are kept until their delivery is acknowledged.
        opened: Secrets of seals that were opened, by the id of the seal.
        reduced: Ids of seals that may hold secrets whose custody ended.
        alone: Whether a call fails alone if its secret cannot be sealed.
        is_failure_logged: Whether the log says why none can be sealed.
    """

    owners: dict[str, ObjectRow] = field(default_factory=dict)
    answered: SealDraft = field(default_factory=SealDraft)
    custody: SealDraft = field(default_factory=SealDraft)
    opened: dict[str, Sequence[Secret | None]] = field(default_factory=dict)
    reduced: set[str] = field(default_factory=set)
    alone: bool = True
    is_failure_logged: bool = False


class LeaseClock:
    """Microseconds since the epoch, if the wall clock was right when the process began."""

    def __init__(self, wall: Callable[[], int], steady: Callable[[], int]) -> None:
        """Take the wall clock, and a clock that is never set; both in microseconds."""
        self._steady = steady
        self._ahead = wall() - steady()
        self._lock = Lock()

    def __call__(self) -> int:
        return self._steady() + self._ahead

    def after(self, met: int) -> int:
        """Return the time, moved forward to ``met``, a time seen elsewhere, if that is later."""
        with self._lock:
            self._ahead = max(self._ahead, met - self._steady())
        return self()


EPOCH = 1_556_496_000_000  # 2019-04-29 in milliseconds, as the service we are compatible with
RANDOM_BITS = 22


class Identifiers:
    """Makes ids, each greater than the one before it.

    Two processes may, very rarely, make the same id. The store refuses the second one, and the
    write is tried again with a new id.
    """

    def __init__(self, now: Callable[[], int], random_bits: Callable[[int], int]) -> None:
        """Take the clock, in microseconds since the epoch, and a source of random bits."""
        self._now = now
        self._random_bits = random_bits
        self._last = 0

    def next(self) -> str:
        """Return a new id."""
        milliseconds = max(self._now() // 1000 - EPOCH, 0)
        made = (milliseconds << RANDOM_BITS) | self._random_bits(RANDOM_BITS)
        self._last = made if made > self._last else self._last + 1
        return str(self._last)
