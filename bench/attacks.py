"""Measures a server that is attacked: its memory, and how late honest callers are answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.aims import Aim
from tests.acceptance.test_serve import make_certificate
from tests.faults.attack_run import LONG, Outcome, a_field
from tests.faults.attacks import ATTACKS, Combination, combinations
from tests.running import running_server

MIB = 1 << 20
SLOWED = 10  # times what a call takes in quiet
NORMAL_WITHIN = 2.0  # seconds
HEAD = """
## Attacks

JSON, gRPC and gRPC-web callers, on kept and on fresh connections: in quiet, beside the attack, and
after it. The number of an attack is that of its connections, or of new ones a second. p50 is that
of the caller who was slowed most. Memory is that in quiet, and the most; it is back within 20 MiB
of the former.

| attack | sent | p50: quiet, beside it | slowed | normal after | refused | memory | back after |
|---|---|---|---|---|---|---|---|
""".splitlines()  # fmt: skip


def attacks_section(scratch: Path, times: int | None, aims: list[Aim]) -> list[str]:
    """Return a section of results of each attack, in so many ways or in all; add to the aims."""
    every = [combinations(attack)[:times] for attack in ATTACKS.values()]
    outcomes = list(_outcomes(scratch, [one for several in every for one in several]))
    aims += [
        Aim("p50 of honest callers, any attack / in quiet", SLOWED, max(map(_slowed, outcomes))),
        Aim(
            "seconds until honest callers are as in quiet, after any attack",
            NORMAL_WITHIN,
            max(outcome.normal_after() for outcome in outcomes),
        ),
        Aim("calls refused beside attacks", 0, sum(len(each.refused()) for each in outcomes)),
        Aim("memory, any attack / most that is logged", 1, max(map(_of_most, outcomes))),
    ]
    return [*HEAD, *map(_row, outcomes)]


def _outcomes(scratch: Path, chosen: list[Combination]) -> Iterator[Outcome]:
    certificate, key = make_certificate(scratch)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with a_field() as field:
        for number, combination in enumerate(chosen):
            folder = scratch / f"attacked-{number}"
            folder.mkdir()
            with running_server(folder, *(tls if combination.is_tls else ())) as server:
                yield field.run(server, combination, LONG)


def _slowest(outcome: Outcome) -> str:
    return max(outcome.callers(), key=outcome.slowed)


def _slowed(outcome: Outcome) -> float:
    return outcome.slowed(_slowest(outcome))


def _of_most(outcome: Outcome) -> float:
    return outcome.held.peak / outcome.held.most


def _row(outcome: Outcome) -> str:
    caller, held = _slowest(outcome), outcome.held
    quiet, beside = (1000 * took(caller) for took in (outcome.in_quiet, outcome.beside_it))
    return (
        f"| {outcome.combination} | {outcome.done.sent / MIB:,.0f} MB "
        f"| {quiet:.1f}, {beside:.1f} ms ({caller}) | **{_slowed(outcome):.1f}** "
        f"| {outcome.normal_after():.1f} s | {len(outcome.refused())} "
        f"| {held.quiet / MIB:,.0f}, {held.peak / MIB:,.0f} MiB | {held.back:.1f} s |"
    )
