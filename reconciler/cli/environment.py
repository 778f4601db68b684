"""The variables of this program: which there are, and what is wrong with those that are set.

A variable that is misspelt, or empty because a secret of CI was never set, would leave a default
in force without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.errors import UsageError

PREFIX = "RECONCILER_"
TOKEN = PREFIX + "TOKEN"
VARIABLE_PREFIX = PREFIX + "VAR_"
"""Begins the name of an environment variable that holds the value of a variable of manifests."""

INTERNAL = ("RECONCILER_CRASHPOINT", "RECONCILER_SECRET_", VARIABLE_PREFIX)
"""Prefixes of names that are no options: those of tests, of exec sinks, of values of variables."""

LETTERS = 2
_NOT_CI = frozenset({"", "0", "false"})

# Every option of every command. A list, because importing all commands takes as long as a plan;
# a test compares it with the options there are.
KNOWN = frozenset(
    PREFIX + name
    for name in (
        "against allow_deletes allow_updates auto_approve behind_proxy break_glass capabilities "
        "color config detailed_exitcode digest docs env environments expires format full git_hooks "
        "github gitlab keep_owed key_file listen lock_timeout log_format max_chars max_rps "
        "metrics_listen name no_adopt organization other_tree out overwrite prune prune_unmanaged "
        "quiet require_secrets revision role rotate_missing seal_key_file secrets_to service "
        "service_kind settle shard snapshot take_over tls_cert tls_key token token_file tree "
        "trusted_config use_proxy verbose with_console"
    )
    .upper()
    .split()
)


def variable(name: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable; empty if it is not set.

    Raises:
        UsageError: it is set and empty.
    """
    value = environ.get(name)
    if value == "":
        raise UsageError(
            f"{name} is set and empty",
            remedy="Give it a value, or unset it. In CI: check that the secret or variable it is "
            "taken from exists and may be read by this job.",
        )
    return value or ""


def is_ci(environ: Mapping[str, str]) -> bool:
    """Return whether this is a CI job: ``CI`` is set, and not to 0 or false."""
    return environ.get("CI", "").strip().lower() not in _NOT_CI


def warn_of_misspelt(environ: Mapping[str, str]) -> None:
    """Warn on stderr about variables that no option reads and that look like a known one."""
    for written, meant in misspelt(environ):
        from reconciler.cli.output import show_warnings
        from reconciler.diagnostics import warning

        show_warnings([warning("ENV-UNKNOWN", f"no option reads {written}", _hint(meant))])


def _hint(meant: str) -> str:
    """Return what to write; a variable that deletes, approves or overrides is not suggested."""
    from reconciler.cli.suggestions import HARMFUL

    if meant.removeprefix(PREFIX).lower().replace("_", "-") in HARMFUL:
        return "It is ignored. A variable is RECONCILER_ and the name of an option in --help."
    return f"Did you mean {meant}?"


def misspelt(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that no option reads, with the known one it is within two letters of."""
    unknown = [name for name in environ if name.startswith(PREFIX) and name not in KNOWN]
    for name in unknown:
        if name.startswith(INTERNAL):
            continue
        from reconciler.resources.nearest import within

        meant = within(name, KNOWN, LETTERS)
        if meant is not None:
            yield name, meant
