"""Programs that keep secrets, as far as the recipes of docs/secrets use them.

Each takes the options that the real program has and refuses others, and keeps what it was given
in ``$STAND_IN_HOLDS``, a JSON object of fields by name. Its arguments go to ``$STAND_IN_SEEN``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Fields = dict[str, str]


def _holds() -> dict[str, Fields]:
    path = Path(os.environ["STAND_IN_HOLDS"])
    held: dict[str, Fields] = json.loads(path.read_text()) if path.exists() else {}
    return held


def _keep(name: str, fields: Fields) -> None:
    Path(os.environ["STAND_IN_HOLDS"]).write_text(json.dumps({**_holds(), name: fields}))


def gh(arguments: Sequence[str]) -> int:
    """Keep a secret of an environment; without --body the value is standard input."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", nargs=2)
    parser.add_argument("name")
    parser.add_argument("--repo", required=True)
    parser.add_argument("--env", required=True)
    asked = parser.parse_args(arguments)
    assert asked.command == ["secret", "set"]
    assert not asked.name.startswith("GITHUB_")
    assert asked.name.replace("_", "a").isalnum()
    assert not asked.name[0].isdigit()
    value = sys.stdin.read().rstrip("\r\n")
    _keep(f"{asked.repo}:{asked.env}:{asked.name}", {"client_secret": value})
    return 0


def vault(arguments: Sequence[str]) -> int:
    """Put fields of JSON on standard input, or get one; 2 says that nothing is there."""
    kv, verb, *rest = arguments
    assert kv == "kv"
    flags = dict(flag.split("=", 1) for flag in rest if flag.startswith("-") and flag != "-")
    path, *data = [word for word in rest if not word.startswith("-") or word == "-"]
    where = f"{flags.pop('-mount')}/{path}"
    if verb == "put":
        assert (data, flags) == (["-"], {})
        _keep(where, json.load(sys.stdin))
        sys.stdout.write("== Secret Path ==\n")
        return 0
    assert (verb, data, set(flags)) == ("get", [], {"-field"})
    if where not in _holds():
        sys.stderr.write(f"No value found at {where}\n")
        return 2
    sys.stdout.write(_holds()[where][flags["-field"]])
    return 0


def aws(arguments: Sequence[str]) -> int:
    """Put a value where there is a secret of the name, or create one."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", nargs=2)
    parser.add_argument("--secret-id")
    parser.add_argument("--name")
    parser.add_argument("--secret-string", required=True)
    parser.add_argument("--no-cli-pager", action="store_true")
    asked = parser.parse_args(arguments)
    service, verb = asked.command
    assert service == "secretsmanager"
    assert asked.secret_string.startswith("file://")
    content = Path(asked.secret_string.removeprefix("file://")).read_text()
    name = asked.secret_id if verb == "put-secret-value" else asked.name
    exists = name in _holds()
    if exists != (verb == "put-secret-value"):
        why = "ResourceExistsException" if exists else "ResourceNotFoundException"
        sys.stderr.write(f"An error occurred ({why}) when calling the operation\n")
        return 254
    assert verb in {"put-secret-value", "create-secret"}
    _keep(name, json.loads(content))
    return 0


def kubectl(arguments: Sequence[str]) -> int:
    """Write the manifest of a Secret, or apply one from standard input."""
    if arguments[0] == "create":
        parser = argparse.ArgumentParser(allow_abbrev=False)
        parser.add_argument("command", nargs=3)
        parser.add_argument("name")
        for flag in ("--namespace", "--dry-run", "--output", "--from-literal", "--from-file"):
            parser.add_argument(flag, required=True)
        asked = parser.parse_args(arguments)
        assert (asked.command, asked.dry_run) == (["create", "secret", "generic"], "client")
        literal, _, value = asked.from_literal.partition("=")
        key, _, file = asked.from_file.partition("=")
        data = {literal: value.encode(), key: Path(file).read_bytes()}
        encoded = {name: base64.b64encode(one).decode() for name, one in data.items()}
        metadata = {"name": asked.name, "namespace": asked.namespace}
        json.dump({"kind": "Secret", "metadata": metadata, "data": encoded}, sys.stdout)
        return 0
    assert list(arguments) == [
        "apply", "--server-side", "--field-manager", "reconciler", "--force-conflicts",
        "--filename", "-",
    ]  # fmt: skip
    secret = json.load(sys.stdin)
    fields = {name: base64.b64decode(one).decode() for name, one in secret["data"].items()}
    held = {"client_id": fields["client-id"], "client_secret": fields["client-secret"]}
    _keep(f"{secret['metadata']['namespace']}/{secret['metadata']['name']}", held)
    return 0


PROGRAMS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "gh": gh, "vault": vault, "aws": aws, "kubectl": kubectl,
}  # fmt: skip


def main() -> int:
    """Note the arguments and the environment, then do as the program of this name."""
    program = Path(sys.argv[0]).name
    with Path(os.environ["STAND_IN_SEEN"]).open("a", encoding="utf-8") as seen:
        about = {name: value for name, value in os.environ.items() if "RECONCILER" in name}
        seen.write(json.dumps([program, *sys.argv[1:], about]) + "\n")
    return PROGRAMS[program](sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
