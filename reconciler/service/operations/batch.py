"""A batch of orders: writes carried out in turn, each as if it had come alone.

An order may take the id or the sequence that an earlier order of its batch answers; if that one
fails, it is not tried. Orders are carried out in several commits, so that other writers get their
turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from reconciler.resources.call import HEADERS, ORDER_KEYS, JsonObject, is_id
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.answers import Answer, error_body, made_id
from reconciler.service.operations.callers import Caller
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields, Request, shown
from reconciler.service.projections.objects import canonical

MAX_ORDERS = 500
MAX_A_COMMIT = 256
HELD_SECONDS = 0.08  # how long one commit of a batch may keep other writers waiting
LEAST_SHARE = 0.4  # of it for the orders: where each commit is slow, fewer of them are better
ANSWERS = "answers"  # of the whole batch
DONE = "answer"  # of an order that was carried out
_SEQUENCE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_IN_LIST = re.compile(r"(\w+)\[(0|[1-9][0-9]{0,2})\]", re.ASCII)
_KEY_OF: Mapping[str, str] = {header: ORDER_KEYS[name] for name, header in HEADERS.items()}
"""Keys of an order by the header that says the same for a single call."""
_KEYS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("operation", *ORDER_KEYS.values()), (str, "a string")),
    **dict.fromkeys(("fields", "context", "from"), (dict, "an object")),
}


class Order(NamedTuple):
    """One write of a batch.

    Attributes:
        request: As far as it is known before the batch is carried out.
        effect: Effect of its operation, which decides what later orders may take from it.
        taken: Names of values that are taken from earlier orders, with the index of each order,
            by index. A name is that of a field, of an element of a list (``actionIds[1]``),
            ``organizationId`` or ``ifMatch``.
    """

    request: Request
    effect: Effect
    taken: Sequence[tuple[str, int]]


class NotTried(NamedTuple):
    """An order that was not tried, because ``needed``, the index of an earlier one, failed."""

    needed: int


Outcome = Answer | Refusal | NotTried
Find = Callable[[str], Operation | None]
Write = Callable[[Request], Answer | Refusal]


class Orders:
    """The orders of a batch, and the outcomes of those that are committed."""

    def __init__(self, orders: Sequence[Order], caller: Caller) -> None:
        self.caller = caller
        self._orders = orders
        self._outcomes: list[Outcome] = []
        self._at_once = MAX_A_COMMIT

    @property
    def organization(self) -> str:
        """Return the organization that the first order names, if the caller sees it; or empty.

        The orders themselves are checked later, each on its own.
        """
        named = self._orders[0].request.organization or self.caller.only_organization
        return named if is_id(named) and self.caller.sees(named) else ""

    @property
    def are_done(self) -> bool:
        """Return whether every order has its outcome."""
        return len(self._outcomes) == len(self._orders)

    def ahead(self) -> Sequence[Request]:
        """Return the requests of the next orders, with what they take filled in where known."""
        start = len(self._outcomes)
        orders = self._orders[start : start + self._at_once]
        requests = (_filled(order, self._outcomes) for order in orders)
        return [request for request in requests if isinstance(request, Request)]

    def tried(self, write: Write, is_over: Callable[[], bool]) -> list[Outcome]:
        """Carry out the next orders, at least one, until the time is over; return their outcomes.

        These count once they are committed: see ``add``.
        """
        start = len(self._outcomes)
        outcomes = list(self._outcomes)
        for order in self._orders[start : start + self._at_once]:
            request = _filled(order, outcomes)
            outcomes.append(write(request) if isinstance(request, Request) else request)
            if is_over():
                break
        return outcomes[start:]

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Keep the outcomes of the next orders, which are committed."""
        self._outcomes += outcomes
        # If the time was enough for 10, it will not be for 256: their lookups would be wasted.
        self._at_once = min(2 * len(outcomes), MAX_A_COMMIT)

    def fail(self, refusal: Refusal) -> None:
        """Try half as many orders next, as these failed together; refuse one that failed alone."""
        if self._at_once > 1:
            self._at_once //= 2
        else:
            self._outcomes.append(refusal)

    def end(self, refusal: Refusal) -> None:
        """Refuse every order that has no outcome yet."""
        self._outcomes += [refusal] * (len(self._orders) - len(self._outcomes))

    def answer(self) -> Answer:
        """Return the answer of the batch: one for each order, in their order."""
        return {ANSWERS: [_view(*each) for each in enumerate(self._outcomes)]}


def write_batch(request: Request, find: Find) -> Orders:
    """Take up to 500 writes, which are carried out in turn, each as if it had come alone.

    ``find`` looks an operation up by its name.

    Raises:
        Refusal: the batch as a whole is malformed.
    """
    for name, header in HEADERS.items():
        if getattr(request, name) not in {"", None}:
            raise invalid(header, "is not for a batch: each order says it for itself")
    fields = Fields(request.fields)
    found = fields.values("orders")
    fields.end()
    if not 1 <= len(found) <= MAX_ORDERS:
        raise fields.wrong("orders", f"must be 1 to {MAX_ORDERS} orders")
    orders: list[Order] = []
    for order in found:
        orders.append(_order(order, orders, request.caller, find))
    return Orders(orders, request.caller)


def work_share(worked: float, held: float) -> float:
    """Return the share of a commit's time that its orders took, and may take of the next one."""
    return max(worked / held, LEAST_SHARE) if held else 1.0


def _order(found: object, earlier: Sequence[Order], caller: Caller, find: Find) -> Order:
    path = f"orders[{len(earlier)}]"
    order = _typed(found, path)
    operation = find(order.get("operation", ""))
    if operation is None or not operation.is_of_an_object:
        raise invalid(f"{path}.operation", "must be a write that may be part of a batch")
    expected = order.get("ifMatch")
    if expected is not None and not _SEQUENCE.fullmatch(expected):
        raise invalid(f"{path}.ifMatch", "must be a sequence, such as 1700000000000000")
    if order.get("custody") == "":
        raise invalid(f"{path}.custody", "must not be empty")
    try:
        context = canonical(order["context"]) if "context" in order else ""
    except TypeError:
        raise invalid(f"{path}.context", "must be JSON") from None
    request = Request(
        operation=operation.name,
        fields=order.get("fields", {}),
        caller=caller,
        organization=order.get("organizationId", ""),
        expected_sequence=None if expected is None else int(expected),
        idempotency_key=order.get("idempotencyKey", ""),
        lease=order.get("lease", ""),
        context=context,
        custody=order.get("custody", ""),
    )
    return Order(request, operation.effect, _taken(order, earlier, path))


def _typed(found: object, path: str) -> Answer:
    """Return the keys of an order that are given, each of its type."""
    if not isinstance(found, dict):
        raise invalid(path, "must be an object")
    given = {name: value for name, value in found.items() if value is not None}
    for name in found:
        if name not in _KEYS:
            raise invalid(f"{path}.{shown(name)}", "is not a field of an order")
    for name, value in given.items():
        kind, words = _KEYS[name]
        if not isinstance(value, kind):
            raise invalid(f"{path}.{name}", f"must be {words}")
    return given


def _taken(order: JsonObject, earlier: Sequence[Order], path: str) -> Sequence[tuple[str, int]]:
    """Return what an order takes from earlier ones, by the index of those."""
    taken: JsonObject = order.get("from", {})
    for name, index in taken.items():
        where = f"{path}.from.{shown(name)}"
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(earlier):
            raise invalid(where, "must be the index of an earlier order of this batch")
        _check_place(order.get("fields", {}), name, where)
        if name in order.get("fields", {}) or name in order.keys() & {"organizationId", "ifMatch"}:
            raise invalid(where, "is given twice: leave out one of the two")
        effect = earlier[index].effect
        if name == "ifMatch" and effect is Effect.REMOVES:
            raise invalid(where, "must be the index of an order that makes or changes an object")
        if name != "ifMatch" and effect is not Effect.CREATES:
            raise invalid(where, "must be the index of an order that makes an object")
    return sorted(taken.items(), key=lambda each: each[1])


def _check_place(fields: JsonObject, name: str, where: str) -> None:
    """Refuse a place in a list, such as ``actionIds[1]``, that is not an empty text to fill."""
    place = _IN_LIST.fullmatch(name)
    if place is None:
        return
    values = fields.get(place[1])
    if not isinstance(values, list) or values[int(place[2]) :][:1] != [""]:
        raise invalid(where, f"needs an empty text at this place of {place[1]}")


def _put(fields: Answer, name: str, value: str) -> None:
    """Set a field, or an element of a list that other requests may share."""
    place = _IN_LIST.fullmatch(name)
    if place is None:
        fields[name] = value
        return
    fields[place[1]] = values = [*fields[place[1]]]
    values[int(place[2])] = value


def _filled(order: Order, outcomes: Sequence[Outcome]) -> Request | NotTried:
    """Return the request of an order, with what it takes from the outcomes that there are."""
    if not order.taken:
        return order.request
    fields = dict(order.request.fields)
    taken: Answer = {}
    for name, index in order.taken:
        if index >= len(outcomes):
            continue
        answer = outcomes[index]
        if not isinstance(answer, dict):
            return NotTried(index)
        if name == "ifMatch":
            taken["expected_sequence"] = int(answer["details"]["sequence"])
        elif name == "organizationId":
            taken["organization"] = made_id(answer)
        else:
            _put(fields, name, made_id(answer))
    return replace(order.request, fields=fields, **taken)


def _view(index: int, outcome: Outcome) -> Answer:
    if isinstance(outcome, Refusal):
        return {"error": error_body(_of_order(index, outcome))}
    if isinstance(outcome, NotTried):
        return {"notTried": outcome.needed}
    return {DONE: outcome}


def _of_order(index: int, refusal: Refusal) -> Refusal:
    """Return a refusal that names the key of the order instead of the header of a call."""
    header = refusal.details.get("field", "")
    if header not in _KEY_OF:
        return refusal
    field = f"orders[{index}].{_KEY_OF[header]}"
    message = field + refusal.message.removeprefix(header)
    return Refusal(refusal.code, message, refusal.reason, **{**refusal.details, "field": field})
