"""The settings of all commands, one row each, and the environment variables that set them.

A setting comes from its flag, else from its variable, else from ``reconciler.yaml`` where it has a
key there, else from its default; ``options.py`` makes an option of click of each row. A variable
that is misspelt, or empty because a secret of CI was never set, would leave a default in force
without a word: the first is warned of, the second is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from reconciler.cli.connection import DEFAULT_SERVICE
from reconciler.cli.parameter_types import (
    CLIENT,
    PAUSE_REASON,
    REVISION,
    TREE,
    UNDO_REASON,
    BreakGlassType,
    Duration,
    Filled,
    Number,
    RefsType,
    RefType,
    commit_id,
    link_base,
    past_moment,
    shard_named,
)
from reconciler.errors import UsageError
from reconciler.report.visible import LEAST, LIMIT
from reconciler.resources.capabilities import CAPABILITIES
from reconciler.resources.ref import DEFAULT_TREE

PREFIX = "RECONCILER_"
TOKEN = PREFIX + "TOKEN"
ID_TOKEN = PREFIX + "ID_TOKEN"
VARIABLE_PREFIX = PREFIX + "VAR_"
"""Begins the name of an environment variable that holds the value of a variable of manifests."""

INTERNAL = ("RECONCILER_CRASHPOINT", "RECONCILER_SECRET_", VARIABLE_PREFIX)
"""Prefixes of names that are no options: those of tests, of exec sinks, of values of variables."""

LETTERS = 2
_NOT_CI = frozenset({"", "0", "false"})


class Setting(NamedTuple):
    """One row of the table.

    Attributes:
        flag: As the help shows it: a switch, or with a word for its value.
        commands: Those that have it, with commas between them; empty for every command.
        help: Its line in the help.
        type: A type of click, or a function that reads the text; a tuple is a choice of words.
        multiple: Whether it can be given several times.
        key: Its key in an environment of ``reconciler.yaml``.
        short: A short form of the flag.
        parameter: The name of its value in code, where that is not the flag's.
        has_variable: Whether it can be set by ``RECONCILER_`` and its name.
    """

    flag: str
    commands: str
    help: str
    type: Any = None
    default: str | int | None = None
    key: str = ""
    multiple: bool = False
    required: bool = False
    short: str = ""
    parameter: str = ""
    has_variable: bool = True

    @property
    def name(self) -> str:
        """Return the flag without its dashes."""
        return self.flag.partition(" ")[0].removeprefix("--")

    @property
    def value(self) -> str:
        """Return the name of its value in code."""
        return self.parameter or self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """Return the environment variable that sets it; empty for none."""
        return PREFIX + self.name.upper().replace("-", "_") if self.has_variable else ""


_WRITERS = "apply, undo, secret rotate, secret deliver"
_TREES = "pause, resume"
_BY_HAND = (
    f"{_WRITERS}, {_TREES}, plan, drift, history, export, compare, outputs, doctor, secret list"
)
_CONNECTED = f"{_BY_HAND}, run"
_CONFIGURED = f"{_BY_HAND}, validate, render, explain"
_STORES = "store verify, store backup, store restore, store rebuild"
_TOKENS = "token create, token list, token revoke"
_TRUST = (
    "trust add, trust list, trust show, trust remove, trust test, "
    "machine add, machine list, machine remove"
)
_PLANS = "plan, show, compare"
_COUNT = click.IntRange(min=0)
_LIFE = Duration("1m", "99999d", "90d")

# Groups in the order of the help, and in each the everyday settings first.
_WORK = (
    Setting("--env NAME", _CONFIGURED, "Environment of reconciler.yaml.", Filled()),
    Setting(
        "--service ADDRESS",
        f"{_BY_HAND}, serve, {_STORES}, {_TOKENS}, {_TRUST}",
        "Identity service: https://HOST, sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        default=DEFAULT_SERVICE,
        key="service",
    ),
    Setting(
        "--tree NAME",
        f"plan, apply, undo, drift, doctor, {_TREES}, secret rotate, secret deliver",
        "Name of the tree: the manifests that are applied together.",
        TREE,
        default=DEFAULT_TREE,
        key="tree",
    ),
    Setting(
        "--shard I/N",
        "plan, apply, drift, validate",
        "Only part I of N of the tree, by organization.",
        shard_named,
    ),
    Setting(
        "--target REF",
        "plan, apply, undo, drift",
        "Only this object, or a glob, or @FILE.",
        RefsType(),
        multiple=True,
    ),
    Setting(
        "--exclude REF",
        "plan, apply, undo, drift",
        "Not this object; as in --target.",
        RefsType(),
        multiple=True,
    ),
    Setting(
        "--var NAME=VALUE",
        _CONFIGURED,
        "Value of a variable; JSON, unless it is a text. RECONCILER_VAR_NAME sets it, too.",
        multiple=True,
        has_variable=False,
    ),
    Setting(
        "--config FILE",
        f"{_CONFIGURED}, policy test",
        "Configuration. Default: reconciler.yaml here or above, up to the Git root.",
        Filled(),
    ),
    Setting(
        "--trusted-config FILE",
        "plan, apply",
        "reconciler.yaml of the target branch. Another service, tree, protection or "
        "allowPartial blocks.",
        Filled(),
    ),
    Setting(
        "--policies DIR",
        "plan, apply, undo, validate",
        "Folder of policies, or recommended. Default: policies of reconciler.yaml.",
        Filled(),
        multiple=True,
    ),
    Setting(
        "--trusted-policies DIR",
        "plan, apply, undo",
        "The policies of the target branch: they and their waivers count until the merge.",
        Filled(),
        multiple=True,
    ),
    Setting(
        "--repository URL|PATH",
        "run",
        "Repository of the manifests: https, ssh, or a path of this machine.",
        required=True,
    ),
    Setting(
        "--service ADDRESS",
        "run",
        "Identity service: https://HOST, sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        required=True,
    ),
    Setting("--ref REF", "run", "Branch that is followed.", default="refs/heads/main"),
    Setting(
        "--mode",
        "run",
        "observe never writes; heal also undoes changes made by hand; apply also applies new "
        "commits.",
        ("observe", "heal", "apply"),
        default="observe",
    ),
    Setting(
        "--interval DURATION",
        "run",
        "Time between two rounds. Default: 30s, and 5m for a ZITADEL.",
        Duration("1s", "60m", "30s"),
    ),
    Setting(
        "--state DIR",
        "run",
        "Folder of its own: mirror, journals, and what it remembers.",
        Path,
        required=True,
        parameter="state_folder",
    ),
    Setting("--once", "run", "Make one round and exit as plan or apply would."),
    Setting(
        "--env NAME",
        "run",
        "Environment of the repository's reconciler.yaml.",
        parameter="run_environment",
    ),
    Setting(
        "--tree NAME",
        "run",
        "Name of the tree. Default: that of reconciler.yaml.",
        TREE,
        parameter="run_tree",
    ),
    Setting(
        "--var NAME=VALUE",
        "run",
        "Value of a variable. RECONCILER_VAR_NAME sets it, too.",
        multiple=True,
        has_variable=False,
        parameter="variables",
    ),
    Setting(
        "--config FILE",
        "run",
        "Configuration, from the root of the repository. Default: reconciler.yaml there.",
        Filled(),
        parameter="config_file",
    ),
    Setting("--against FILE", "plan", "Compare with a snapshot, not with the service."),
    Setting(
        "--capabilities",
        "validate, plan, apply, drift, compare, render",
        "Kind of service that the manifests are for. Default: the environment's, else source.",
        (*CAPABILITIES,),
        key="capabilities",
    ),
    Setting(
        "--service-kind",
        _CONNECTED,
        "What an https service is; auto asks it.",
        ("auto", "reconciler", "zitadel"),
    ),
    Setting(
        "--organization NAME",
        "export, compare, history, token create, trust add, machine add",
        "Only this organization; otherwise all.",
        multiple=True,
    ),
    Setting(
        "--organization NAME",
        _TREES,
        "Only in this organization; otherwise wherever the tree applied something.",
        multiple=True,
    ),
    Setting("--issuer URL", "trust add", "Issuer of the tokens. Default: that of the preset."),
    Setting(
        "--preset",
        "trust add",
        "Forge whose tokens they are: its rules need certain claims.",
        ("github", "gitlab"),
    ),
    Setting(
        "--claim NAME=VALUE",
        "trust add",
        "Claim that a token must have; NAME:=JSON for a number, true or false. Again for another "
        "value that is accepted.",
        multiple=True,
        has_variable=False,
    ),
    Setting(
        "--at MOMENT",
        "export",
        "What was held then: a time, how long ago (2h), or before a run.",
        past_moment,
        has_variable=False,
    ),
    Setting(
        "--at MOMENT",
        "compare",
        "A moment of the service: a time, how long ago (2h), or before a run. Twice: from the "
        "first to the second; once: to now.",
        past_moment,
        multiple=True,
        has_variable=False,
    ),
    Setting(
        "--keys FILE", "trust add", "Key set of the issuer, which then is not asked for it.", Path
    ),
    Setting(
        "--issuer-ca FILE", "trust add", "Certificates of the issuer's own authority, in PEM.", Path
    ),
    Setting(
        "--since MOMENT",
        "history",
        "Only what happened after this time, or some time ago (2h), or from a run on.",
        past_moment,
        has_variable=False,
    ),
    Setting(
        "--until MOMENT",
        "history",
        "Only what happened up to this time, or some time ago (2h), or before a run.",
        past_moment,
        has_variable=False,
    ),
    Setting("--with-console", "export", "Include the project of the service's own console."),
    Setting(
        "--name TEXT", "token create", "Name of its user, kept with each change.", required=True
    ),
    Setting(
        "--listen HOST:PORT", "serve", "Address; port 0 takes a free one.", default="127.0.0.1:8080"
    ),
    Setting(
        "--listen HOST:PORT",
        "run",
        "Address of its state, probes and figures.",
        default="127.0.0.1:8380",
    ),
    Setting(
        "--metrics-listen HOST:PORT", "serve", "Address of /metrics for Prometheus. Default: none."
    ),
    Setting(
        "--origin ORIGIN",
        "serve, trust test",
        "Address by which callers know the service: the aud of signed tokens. Without it, serve "
        "has no token endpoint.",
        default="",
    ),
    Setting("--github", "init", "Write GitHub workflows instead: plan, apply and drift."),
    Setting("--gitlab", "init", "Write a GitLab pipeline instead."),
    Setting("--git-hooks", "init", "Write Git hooks instead, which need nothing but Git."),
    Setting(
        "--environments", "init", "Write two environments instead, with reconciler.yaml, here."
    ),
    Setting(
        "--env NAME",
        "init",
        "With --git-hooks: environment of reconciler.yaml that they check and apply.",
        parameter="environment",
        has_variable=False,
    ),
    Setting(
        "--from FILE|URL#sha256=HASH",
        "init",
        "With --github or --gitlab: wheel of a release for the jobs to install. A file is "
        "copied. Default in a checkout: the wheel that make dist writes.",
        parameter="source",
        has_variable=False,
    ),
    Setting(
        "--keyless",
        "init",
        "With --github or --gitlab: jobs without a secret of the service, which sign in by signed "
        "tokens of their own; shows the rules to make.",
        has_variable=False,
    ),
    Setting(
        "--published",
        "init",
        "With --github or --gitlab: the jobs take that wheel from their package index, by "
        "name, version and hash, once this version is there.",
        has_variable=False,
    ),
)
_MAY = (
    Setting("--accept", "drift", "Write what the service holds into the manifests, after asking."),
    Setting(
        "--into", "drift", "With --accept: write into the environment's overlay.", ("overlay",)
    ),
    Setting("--dry-run", "drift", "With --accept: show the difference in files, and write none."),
    Setting("--auto-approve", "apply, undo, drift, secret rotate, store restore", "Do not ask."),
    Setting(
        "--digest SHA256",
        "apply, undo",
        "Apply the plan that has this digest, or nothing. Does not ask.",
    ),
    Setting(
        "--prune", "plan, apply, undo, run", "Delete what this tree owns and no longer declares."
    ),
    Setting(
        "--prune-unmanaged", "plan, apply", "Delete what is declared nowhere and of no other tree."
    ),
    Setting(
        "--allow-updates N", "plan, apply, undo, run", "Allow up to N updates of a kind.", _COUNT
    ),
    Setting(
        "--allow-deletes N", "plan, apply, undo, run", "Allow up to N deletes of a kind.", _COUNT
    ),
    Setting(
        "--break-glass REF=REASON",
        "plan, apply, undo",
        "Allow changes of this object that may lock people out; the reason is recorded.",
        BreakGlassType(),
        multiple=True,
    ),
    Setting(
        "--redo REF",
        "plan, apply",
        "Apply again what was undone.",
        RefType(),
        multiple=True,
    ),
    Setting(
        "--take-over REF",
        "plan, apply",
        "Become the owner of this object, with no field changed.",
        RefType(),
        multiple=True,
    ),
    Setting(
        "--other-tree PATH",
        "plan, apply",
        "Folder of another tree or service: its manifests protect nothing from deletion.",
        multiple=True,
    ),
    Setting("--no-adopt", "plan, apply, run", "Block updates of what this tree never applied."),
    Setting(
        "--lock-timeout SECONDS",
        _WRITERS,
        "How long to wait for the lock of another run.",
        Number(86_400, 300, "number of seconds"),
        default="0",
    ),
    Setting(
        "--settle DURATION",
        "apply",
        "How long to wait until lists of a ZITADEL show what was written: 0s to 60m.",
        Duration("0s", "60m", "60s"),
        default="60s",
    ),
    Setting("--max-rps N", _CONNECTED, "Send at most N requests a second.", Number(99_999, 20)),
    Setting("--use-proxy", _CONNECTED, "Use the proxy that HTTPS_PROXY names."),
    Setting(
        "--revision TEXT",
        "apply",
        "Revision to record. Default: that of CI or Git.",
        REVISION,
    ),
    Setting("--overwrite", "export, render", "Write into a folder that is not empty."),
    Setting(
        "--damaged", "store backup, store rebuild", "Accept a damaged store, and show what is lost."
    ),
    Setting(
        "--role",
        "token create",
        "A viewer reads, an editor also writes, an admin also makes organizations.",
        ("viewer", "editor", "admin"),
        required=True,
    ),
    Setting(
        "--role",
        "trust add, machine add",
        "A viewer reads, an editor also writes. No rule makes an admin.",
        ("viewer", "editor"),
        required=True,
    ),
    Setting("--once", "trust add", "Each token can be exchanged only once, in all servers."),
    Setting(
        "--expires DURATION",
        "token create, trust add",
        "When it ends: 90d, 12h, 30m. Default: never.",
        _LIFE,
    ),
    Setting("--expires DURATION", "machine add", "When its key ends.", _LIFE, default="90d"),
    Setting(
        "--on-unreviewed",
        "init",
        "With --github or --gitlab: what the jobs do with a push that no pull request was "
        "merged by. Default: stop, and apply its plan only by its digest.",
        ("stop", "apply"),
    ),
    Setting(
        "--heal-protected", "run", "With --mode heal: also heal an environment that is protected."
    ),
    Setting(
        "--accept COMMIT", "run", "Go on from this commit of a ref that was rewritten.", commit_id
    ),
    Setting(
        "--trust-commit COMMIT",
        "run",
        "Let reconciler.yaml of this commit decide over service, tree and protection.",
        commit_id,
    ),
    Setting(
        "--applied COMMIT",
        "run",
        "Commit that was applied last, where a ZITADEL keeps no record and --state is new.",
        commit_id,
    ),
    Setting("--despite-pause", "apply, undo, secret rotate", "Write for a tree that is paused."),
    Setting("--last", "undo", "The last run of the tree, in the place of RUN.", has_variable=False),
    Setting(
        "--keep REF",
        "undo",
        "Leave this object as it is held.",
        RefType(),
        multiple=True,
        has_variable=False,
    ),
    Setting("--reason TEXT", "undo", "Why, for those who find it undone.", UNDO_REASON, default=""),
    Setting(
        "--reason TEXT",
        "pause",
        "Why, for those who find it paused.",
        PAUSE_REASON,
        required=True,
    ),
    Setting(
        "--for DURATION",
        "pause",
        "When the pause ends by itself: 30m, 4h, at most 31d.",
        Duration("1m", "31d", "4h"),
        default="4h",
        parameter="lasting",
    ),
    Setting(
        "--allow-issuer HOST",
        "serve, trust test",
        "Issuer whose keys may be fetched although its addresses are not public.",
        multiple=True,
    ),
    Setting("--behind-tls-proxy", "run", "Show the page without a certificate: a proxy has one."),
    Setting(
        "--commit-url URL",
        "run",
        "Address of a commit for links of the page, with {commit} in it.",
    ),
    Setting("--behind-proxy", "serve", "No warning without a certificate: a proxy speaks TLS."),
)
_SECRETS = (
    Setting(
        "--secrets-to SINK",
        "plan, apply, undo, run, doctor, secret rotate, secret deliver",
        "Where client secrets go: file:DIR, exec:COMMAND, exec-batch:COMMAND or "
        "age:DIR?recipient=KEY.",
    ),
    Setting("--require-secrets", "apply, run", "Exit 5 where the sink lacks a declared secret."),
    Setting(
        "--rotate-missing REF",
        "plan, apply",
        "Replace the client secret of this application, at once.",
        RefType(CLIENT),
        multiple=True,
    ),
    Setting(
        "--token-file FILE",
        f"{_CONNECTED}, {_TRUST}",
        "File with the token. Default: RECONCILER_TOKEN.",
        Path,
    ),
    Setting("--key-file FILE", f"{_CONNECTED}, {_TRUST}", "Key file of a service user.", Path),
    Setting(
        "--keyless",
        _CONNECTED,
        "Sign in with the signed token of this CI job.",
    ),
    Setting(
        "--id-token-file FILE",
        _CONNECTED,
        "That token. Default: RECONCILER_ID_TOKEN, GitHub's.",
        Path,
    ),
    Setting(
        "--key-out FILE",
        "machine add",
        "New file for the key, which is made once.",
        Path,
        required=True,
    ),
    Setting(
        "--algorithm",
        "machine add",
        "What the key signs with: RSA of 2048 bits, or the curve P-256.",
        ("RS256", "ES256"),
        default="RS256",
    ),
    Setting(
        "--seal-key-file FILE",
        f"{_WRITERS}, {_TREES}, serve, run, doctor",
        "Key that seals secrets. Default: a file beside a SQLite store.",
        Path,
    ),
    Setting(
        "--keep-owed DURATION",
        f"{_WRITERS}, serve, run",
        "How long a secret is kept for its delivery: 1h to 30d.",
        Duration("1h", "30d", "7d"),
        default="30d",
    ),
    Setting(
        "--git-credentials-file FILE",
        "run",
        "User and token of the repository: https://USER:TOKEN@HOST.",
        Path,
    ),
    Setting("--ssh-key-file FILE", "run", "Key for a repository over ssh.", Path),
    Setting("--known-hosts FILE", "run", "Keys of its host, as ssh has them.", Path),
    Setting("--git-ca-file FILE", "run", "Authorities of the repository, in PEM.", Path),
    Setting(
        "--signed-by FILE",
        "run",
        "Apply only commits signed by these keys, a file of allowed signers of SSH.",
        Path,
    ),
    Setting(
        "--trigger-token-file FILE",
        "run",
        "Token with which POST /trigger starts a round at once.",
        Path,
    ),
    Setting(
        "--page-token-file FILE",
        "run",
        "Token that is the password of the page. Needed where --listen is not loopback.",
        Path,
    ),
    Setting(
        "--notify URL",
        "run",
        "Receiver of notices of changes of state, by Standard Webhooks.",
        multiple=True,
    ),
    Setting(
        "--notify-key-file FILE",
        "run",
        "Key that signs the notices: whsec_ and base64.",
        Path,
    ),
    Setting("--tls-cert FILE", "serve, run", "Certificate chain, in PEM.", Path),
    Setting("--tls-key FILE", "serve, run", "Key of the certificate, in PEM.", Path),
)
_OUTPUT = (
    Setting(
        "--format",
        f"{_PLANS}, validate, apply, undo, drift, history, outputs, doctor, secret list, "
        "store verify, token list, policy test, trust list, trust show, trust test, "
        "machine list",
        "Form of the output.",
        parameter="form",
    ),
    Setting("--out FILE", "plan, undo", "Save the plan, for show FILE and apply FILE."),
    Setting("--out DIR", "export, render", "Write files into this new folder, not to stdout."),
    Setting("--snapshot FILE", "export", "Save a snapshot for plan --against, not manifests."),
    Setting(
        "--detailed-exitcode",
        "plan, drift, compare",
        "Exit 2 for changes or owed secrets, 3 if blocked.",
    ),
    Setting("--strict", "validate", "Treat warnings as errors."),
    Setting("--full", f"{_PLANS}, validate, apply, undo", "Do not shorten lists on a terminal."),
    Setting(
        "--expires DURATION",
        "plan, undo",
        "Life of a saved plan, such as 2d.",
        _LIFE,
        default="24h",
    ),
    Setting(
        "--docs ADDRESS", _PLANS, "Address of these documents, for links.", link_base, default=""
    ),
    Setting("--on-merge", _PLANS, "Show what its jobs do on merge.", ("github", "gitlab")),
    Setting("--max-chars N", _PLANS, "Longest markdown.", click.IntRange(min=LEAST), default=LIMIT),
    Setting(
        "--log-format", "serve, run", "Form of the log on stderr.", ("text", "json"), default="text"
    ),
    Setting(
        "--color", "", "Colour. Default: auto (terminal, NO_COLOR).", ("auto", "always", "never")
    ),
    Setting("--verbose", "", "Show settings, requests and timings on stderr.", short="-v"),
    Setting("--quiet", "", "Show no progress, notes or hints.", short="-q"),
)
GROUPS: Mapping[str, tuple[Setting, ...]] = {
    "What to work on": _WORK,
    "What it may do": _MAY,
    "Secrets": _SECRETS,
    "Output": _OUTPUT,
}

KNOWN = frozenset(
    {TOKEN, ID_TOKEN, *(row.variable for rows in GROUPS.values() for row in rows if row.variable)}
)
"""Every variable that sets something."""


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

        show_warnings([warning("ENV-UNKNOWN", f"no option reads {written}", hint_at(meant))])


def hint_at(meant: str) -> str:
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
