"""Ids, calls that write nothing, pauses, and refusals as errors that say what to do."""

from __future__ import annotations

import pytest

from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    InvalidArgumentError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
    UnauthenticatedError,
)
from reconciler.kinds.addresses import ADDRESSES
from reconciler.resources.call import Call, is_id
from reconciler.service_client.wire import (
    WireRefusal,
    error_id,
    is_read,
    pause,
    service_error,
)
from tests.rows import each_row


@pytest.mark.parametrize("object_id", ["1", "301234567890123456", "oid-shop-web", "A_b-9"])
def test_usual_ids_are_ids(object_id: str) -> None:
    """Decimal strings, and what others make."""
    assert is_id(object_id)


def test_reads_are_those_that_get_or_list() -> None:
    """The rest writes, and is held to more."""
    reads = {name for name in ADDRESSES if is_read(Call(name))}

    assert reads == {name for name in ADDRESSES if name.startswith(("Get", "List", "Healthz"))}


def test_pauses_grow_are_random_and_never_shorter_than_asked() -> None:
    """Many clients that fail together must not come back together."""
    longest = [pause(tries, 1.0, 0.0) for tries in range(1, 9)]

    assert longest == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert pause(1000, 1.0, 0.0) == 5.0
    assert pause(5, 0.25, 0.0) == 0.4
    assert pause(5, 0.0, 0.0) == 0.0
    assert pause(1, 0.5, 7.0) == 7.0


@pytest.mark.parametrize("reason", ["token.expired", "token.revoked"])
def test_a_token_that_has_ended_says_how_to_have_another(reason: str) -> None:
    told = service_error(WireRefusal(16, "the token has expired", {"id": reason}))

    assert told.problem == "the service refused: the token has expired"
    assert "`reconciler token create`" in told.remedy


@each_row(
    ("code", "kind", "remedy"),
    [
        (1, ServiceError, "Run the command again; what was done is not repeated."),
        (3, InvalidArgumentError,
         "Correct the manifest. Where `validate` accepts it, the service is the stricter one."),
        (5, ObjectNotFoundError,
         "It was removed, its id is wrong, or it is not visible to this token."),
        (6, AlreadyExistsError,
         "Another object has the name. Run `reconciler plan` again to see it."),
        (7, AccessDeniedError, "Use a token whose role allows this in the organization."),
        (8, ServiceUnavailableError, "Run the command again; what was done is not repeated."),
        (9, PreconditionFailedError,
         "It was changed after it was planned. Run `reconciler plan` again and review."),
        (10, ServiceUnavailableError, "Run the command again; what was done is not repeated."),
        (12, ServiceError,
         "It lacks this call. Check the address and --service-kind, or upgrade the service."),
        (13, ServiceError, "Run the command again; what was done is not repeated."),
        (14, ServiceUnavailableError, "Run the command again; what was done is not repeated."),
        (16, UnauthenticatedError, "Give a valid token in RECONCILER_TOKEN or with --token-file."),
    ],
)  # fmt: skip
def test_every_refusal_says_what_to_do(code: int, kind: type[ServiceError], remedy: str) -> None:
    """The code decides about the exit code and about what may still have happened."""
    error = service_error(WireRefusal(code, "because"))

    assert (type(error), error.problem, error.remedy) == (
        kind, "the service refused: because", remedy,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("message", "details", "expected"),
    [
        ("no", {"slug": "org.not_found"}, "org.not_found"),
        ("no (COMMAND-1m88i)", {"slug": "org.not_found"}, "COMMAND-1m88i"),
        ("no", {"id": "COMMAND-1m88i", "slug": "org.not_found"}, "COMMAND-1m88i"),
        ("no", {"slug": 7}, ""),
    ],
)
def test_a_slug_is_an_id_where_there_is_no_other(
    message: str, details: dict[str, object], expected: str
) -> None:
    """Details of version 2 may have a slug alone."""
    assert error_id(WireRefusal(5, message, details)) == expected
