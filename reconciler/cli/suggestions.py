"""Suggestions for an option or a command that does not exist.

A similar name would mislead: ``--dry-run`` looks like ``--prune``, and ``diff`` like ``drift``.
Options and commands that other tools have get a sentence of their own instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click
from click.exceptions import NoSuchCommand, NoSuchOption

from reconciler.resources.nearest import nearest


def in_words(failure: click.ClickException, typed: Sequence[str]) -> click.ClickException:
    """Return a failure of click's with a hint that does not mislead.

    ``typed`` are the arguments as they were given.
    """
    if isinstance(failure, NoSuchOption):
        name = _as_typed(failure.option_name, typed)
        hint = OPTIONS.get(name) or near(name, _options(failure.ctx))
        return _error(f"There is no option {name}", hint, failure.ctx)
    if isinstance(failure, NoSuchCommand):
        name = failure.command_name
        hint = _command_hint(name, failure.ctx)
        return _error(f"There is no command {name!r}", hint, failure.ctx)
    return failure


def _error(problem: str, hint: str, context: click.Context | None) -> click.UsageError:
    return click.UsageError(f"{problem}. {hint}".rstrip(), context)


def _as_typed(option: str, typed: Sequence[str]) -> str:
    """Return an option as it was typed, without its value.

    Of ``-auto-approve`` click takes each letter for an option of its own, and refuses the first
    that does not exist.
    """
    if option.startswith("--"):
        return option
    words = (word.partition("=")[0] for word in typed)
    return next((word for word in words if word in OPTIONS and option[1:] in word), option)


def _options(context: click.Context | None) -> Iterable[str]:
    parameters = context.command.get_params(context) if context else ()
    return [name for parameter in parameters for name in parameter.opts if name.startswith("--")]


def _command_hint(name: str, context: click.Context | None) -> str:
    group = context.command if context else None
    known = group.list_commands(context) if isinstance(group, click.Group) and context else []
    is_top = context is not None and context.parent is None
    other = COMMANDS.get(name) if is_top else None
    return other or near(name, known) or f"There are {', '.join(known)}."


def _by_word(sentences: Mapping[str, str]) -> Mapping[str, str]:
    """Return the sentence for each word; those of one sentence have spaces between them."""
    return {word: sentence for words, sentence in sentences.items() for word in words.split()}


_ENVIRONMENTS = "Environments are declared in reconciler.yaml. --env NAME chooses one."

OPTIONS = _by_word(
    {
        "--dry-run -dry-run --dryrun --check --noop --preview --what-if --diff": (
            "`reconciler plan` shows what `reconciler apply` would do, and changes nothing."
        ),
        (
            "--yes -y --assume-yes --approve --force -force --no-confirm --confirm "
            "--non-interactive --no-input --noinput -input"
        ): (
            "`reconciler apply` asks before it writes. To apply without a question what was "
            "reviewed: `reconciler plan --out FILE`, then `reconciler apply FILE`. --auto-approve "
            "applies whatever is planned."
        ),
        "-auto-approve": (
            "Options have two dashes here: --auto-approve. It applies whatever is planned; "
            "`reconciler apply PLANFILE` applies only what was reviewed."
        ),
        "-target -t --only --selector -l --include --limit": (
            "`reconciler plan`, `apply` and `drift` take --target REF for an object and what it "
            "needs. To read less, name files or folders: `reconciler validate manifests/acme`."
        ),
        "-exclude --skip": (
            "`reconciler plan`, `apply` and `drift` take --exclude REF. To read less, name files "
            "or folders: `reconciler validate manifests/acme`."
        ),
        "-var --var-file -var-file --set --values -e --extra-vars --param --parameters": (
            "Variables are declared in reconciler.yaml, where each environment gives their values. "
            "--var NAME=VALUE gives another one."
        ),
        "--no-color -no-color --no-colour --nocolor": (
            "Write --color never, or set NO_COLOR=1 in the environment."
        ),
        "--debug -debug --trace --log-level -vv -vvv": (
            "Write --verbose: it shows each request and how long it took."
        ),
        "-s --silent": "Write --quiet.",
        "--json -json -o --output": (
            "Write --format json for JSON. `reconciler plan --out FILE` saves a plan."
        ),
        "-out": "Options have two dashes here: --out FILE.",
        "-detailed-exitcode --exit-code": (
            "Write --detailed-exitcode: exit code 2 then says that something differs."
        ),
        "-f --file --filename --files -c --dir -d -chdir --path --manifests": (
            "Paths need no option: `reconciler plan FOLDER`. The default is the folder manifests."
        ),
        "-R -r --recursive": "A folder is always read with all the folders in it.",
        "--refresh -refresh --refresh-only -refresh-only --no-refresh": (
            "Every plan reads the service anew, and there is no state file. `reconciler drift` "
            "shows what was changed on the service itself."
        ),
        "--destroy -destroy --delete --cascade": (
            "Nothing is deleted because an option says so alone: remove the manifest, then see "
            "docs/guards.md for how its object is deleted."
        ),
        "-replace --replace --recreate": (
            "An object is always updated in place. A client secret is replaced by `reconciler "
            "secret rotate REF`."
        ),
        "--state -state --state-file -backend-config --backend": (
            "There is no state file: a plan compares the manifests with the service."
        ),
        "--lock -lock": (
            "`reconciler apply` always takes the lock. --lock-timeout says how long to wait for it."
        ),
        "-lock-timeout": "Options have two dashes here: --lock-timeout.",
        "--parallelism -parallelism --concurrency -j --jobs": (
            "--max-rps N limits the requests in a second; there is nothing else to set."
        ),
        "--token --password --secret --client-secret --access-token --api-key --bearer": (
            "No option takes a secret, because other programs can read the command line. Set "
            "RECONCILER_TOKEN, or write --token-file FILE."
        ),
        "--host --url --server --endpoint --address --domain --issuer --instance --api-url": (
            "Write --service ADDRESS, such as --service https://id.example.com."
        ),
        "--port --bind": "`reconciler serve --listen HOST:PORT` sets the address of the server.",
        "--environment --workspace --stack --profile --context -w": _ENVIRONMENTS,
        "--namespace --project --org --tenant": (
            "Manifests say to which organization and project they belong, in metadata."
        ),
        "-V -version": "Write `reconciler --version`.",
        "-help": "Write --help.",
    }
)
"""Sentences for options that no command has."""

COMMANDS = _by_word(
    {
        "import adopt": (
            "Nothing is imported: an object that has the name of a manifest is adopted by "
            "`reconciler apply`. `reconciler export` writes the manifests of what a service holds."
        ),
        "lint check test vet verify": "`reconciler validate` checks manifests.",
        "diff preview dry-run": (
            "`reconciler plan` shows what would change. `reconciler drift` shows what was changed "
            "on the service itself."
        ),
        "fmt format": "Manifests are not formatted: any YAML formatter can do it.",
        "sync deploy up push converge reconcile install upgrade create update": (
            "`reconciler apply` makes the service as the manifests say; `reconciler plan` shows it "
            "before."
        ),
        "refresh": (
            "Every plan reads the service anew. `reconciler drift` shows what was changed on the "
            "service itself."
        ),
        "state list ls get describe status inventory": (
            "There is no state file. `reconciler outputs` lists ids and client ids, `reconciler "
            "export` writes all that the service holds."
        ),
        "output": "`reconciler outputs` lists ids and client ids.",
        "pull fetch dump download": "`reconciler export` writes what a service holds as manifests.",
        "auth authenticate signin configure config": (
            "`reconciler login ORIGIN` stores a token for a service. `reconciler token create` "
            "makes one for `reconciler serve`."
        ),
        "rollback revert": "Run `reconciler undo RUN`, then revert the commit in Git.",
        "workspace env environment stack": _ENVIRONMENTS,
        "log logs audit events": "`reconciler history REF` shows who changed an object, and when.",
        "start server daemon listen": "`reconciler serve` runs the identity service.",
        "force-unlock unlock": (
            "The lock of a run that was killed ends by itself. --lock-timeout says how long "
            "`reconciler apply` waits for it."
        ),
        "backup restore rebuild": "See `reconciler store --help`.",
        "rotate deliver": "See `reconciler secret --help`.",
        "help": "Write `reconciler --help`, or --help after a command.",
        "graph console providers taint untaint": (
            "Not supported: `reconciler --help` lists what is."
        ),
        "destroy delete rm remove teardown down prune uninstall": (
            "No command deletes everything. Remove the manifest of what should go; `reconciler "
            "plan` then lists the object, and docs/guards.md says how it is deleted."
        ),
    }
)
"""Sentences for commands that do not exist."""


HARMFUL = frozenset(
    {
        *("auto-approve", "digest", "prune", "prune-unmanaged", "allow-updates", "allow-deletes"),
        *("break-glass", "rotate-missing", "take-over", "other-tree", "overwrite", "use-proxy"),
        *("despite-pause", "redo"),
        *("revoke", "rotate", "restore", "rebuild", "allow-issuer"),
        *("accept", "trust-commit", "applied", "heal-protected"),
    }
)
"""Options and commands that delete, approve or override: never suggested for a misspelt word."""

_LIKENESS = 0.7


def near(written: str, known: Iterable[str]) -> str:
    """Return a hint at the harmless name that a misspelt one is nearly the same as, or nothing."""
    harmless = [name for name in known if name.lstrip("-") not in HARMFUL]
    meant = nearest(written, harmless, _LIKENESS)
    return f"Did you mean {meant}?" if meant else ""
