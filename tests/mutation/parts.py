"""The parts whose every line matters most, and the quick tests that must hold each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Modules that are changed in small ways, and the arguments of pytest for their tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


def _in(folder: str, *names: str) -> tuple[str, ...]:
    return tuple(f"reconciler/{folder}/{name}.py" for name in names)


PARTS = {
    "decoder": Part(
        (*_in("resources", "strict_json"), *_in("service/transport", "json_bodies")),
        (
            "tests/unit/resources/test_strict_json.py",
            "tests/unit/service/transport/test_json_bodies.py",
        ),
    ),
    "journal": Part(
        _in("apply", "journal", "recovery"),
        (
            "tests/unit/apply/test_journal.py",
            "tests/unit/apply/test_recovery.py",
            "tests/unit/apply/test_executor.py",
        ),
    ),
    "normal-forms": Part(
        (
            *_in("resources", "fields", "kinds", "normal", "origin", "ref", "secret"),
            *_in("kinds/oidc_application", "compliance"),
        ),
        ("tests/unit/resources", "tests/unit/kinds/oidc_application"),
    ),
    "authorizer": Part(
        _in("service/operations", "callers", "dispatch", "session"),
        (
            "tests/contract/test_creates.py",
            "tests/contract/test_custody.py",
            "tests/contract/test_ownership.py",
            "tests/contract/test_states.py",
            "tests/contract/test_updates.py",
            "tests/contract/test_malformed_requests.py",
            "tests/contract/test_idempotency.py",
            "tests/contract/test_permissions.py",
            "tests/contract/test_lists.py",
            "tests/contract/test_own_operations.py",
            "tests/contract/test_leases.py",
            "tests/contract/test_undone.py",
            "tests/contract/event_store/test_trust.py",
            "tests/unit/service/operations",
        ),
        ("-k", "memory or not (sqlite or postgres)"),
    ),
    "planner": Part(
        (
            *_in(
                "plan",
                "advice",
                "approved_plan",
                "causes",
                "diff",
                "digest",
                "drift",
                "guards",
                "history",
                "matching",
                "ordering",
                "planner",
                "references",
                "risk",
            ),
            *_in("rules", "alike", "risks"),
            *_in("kinds", "action_flow/rules", "idp_jwt_config/rules", "oidc_application/rules"),
        ),
        ("tests/unit/plan", "tests/unit/rules", "tests/unit/kinds", "tests/unit/test_loop.py"),
        ("-m", "not slow"),  # one of 13 s would run for each of thousands of changes
    ),
}
