"""A stand-in for ``gh``, run as a program: the calls that the workflows make, to a local server.

It reads its arguments as the real one does and refuses those that it does not know. ``--jq`` is
done by jq, once for the same filter and value: its start takes longer than all else that this does.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

WITHIN = 300  # seconds; the site asks Git, which takes long on a busy machine


def asked(address: str, token: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    """Ask a local server; return the status and what it answers."""
    host, port = address.split(":")
    content = json.dumps(body).encode()
    head = (
        f"{method} /{path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n"
        f"content-length: {len(content)}\r\n\r\n"
    )
    # Loading an HTTP client takes longer than all that this program does.
    with socket.create_connection((host, int(port)), timeout=WITHIN) as connection:
        connection.sendall(head.encode() + content)
        with connection.makefile("rb") as answer:
            told, _, answered = answer.read().partition(b"\r\n\r\n")
    return int(told.split()[1]), json.loads(answered)


def call(method: str, path: str, body: Any = None) -> Any:
    """Ask as the job; end the program where the server refuses."""
    address, token = os.environ["GH_STAND_IN"], os.environ["GH_TOKEN"]
    status, answer = asked(address, token, method, path, body)
    if status != 200:
        sys.exit(f"gh: {method} {path}: HTTP {status}")
    return answer


def show(value: Any, jq: str | None) -> None:
    """Print a value, or what jq makes of it."""
    text = json.dumps(value)
    if jq is not None:
        text = _filtered(text, jq)
    sys.stdout.write(f"{text}\n" if text else "")


def _filtered(text: str, jq: str) -> str:
    """Return what jq makes of a text, which is kept beside the installations of jobs."""
    told = hashlib.sha256(f"{jq}\0{text}".encode()).hexdigest()
    kept = Path(os.environ["RUNNER_INSTALLS"], f"jq-{told}")
    if not kept.exists():
        done = subprocess.run(
            ["jq", "-r", jq], input=text, capture_output=True, text=True, check=True
        )
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_text(done.stdout.rstrip("\n"), encoding="utf-8")
        made.rename(kept)
    return kept.read_text(encoding="utf-8")


def api(arguments: list[str]) -> None:
    """Do ``gh api``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("-X", dest="method", default="GET")
    parser.add_argument("-F", dest="fields", action="append", default=[])
    parser.add_argument("--jq")
    parser.add_argument("--paginate", action="store_true")
    parser.add_argument("--silent", action="store_true")
    asked = parser.parse_args(arguments)
    fields = dict(field.split("=", 1) for field in asked.fields)
    body = {name: _content(value) for name, value in fields.items()} or None
    answer = call(asked.method, asked.path, body)
    if not asked.silent:
        show(answer, asked.jq)


def _content(value: str) -> str:
    return Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value


def issue(arguments: list[str]) -> None:
    """Do ``gh issue list``, ``create``, ``edit`` and ``close``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["list", "create", "edit", "close"])
    parser.add_argument("number", nargs="?")
    for name in ("--state", "--author", "--json", "--jq", "--title", "--body-file", "--comment"):
        parser.add_argument(name)
    asked = parser.parse_args(arguments)
    path = f"repos/{os.environ['GH_REPO']}/issues"
    if asked.verb == "list":
        found = [
            one
            for one in call("GET", path)
            if one["state"] == asked.state and one["user"]["login"] == asked.author
        ]
        show([{name: one[name] for name in asked.json.split(",")} for one in found], asked.jq)
        return
    if asked.verb == "close":
        call("PATCH", f"{path}/{asked.number}", {"state": "closed", "comment": asked.comment})
        return
    body = {"body": Path(asked.body_file).read_text(encoding="utf-8")}
    if asked.verb == "create":
        call("POST", path, {"title": asked.title, **body})
    else:
        call("PATCH", f"{path}/{asked.number}", body)


def run(arguments: list[str]) -> None:
    """Do ``gh run download``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["download"])
    parser.add_argument("number")
    for name in ("--repo", "--name", "--dir"):
        parser.add_argument(name, required=True)
    asked = parser.parse_args(arguments)
    path = f"repos/{asked.repo}/actions/runs/{asked.number}/artifacts/{asked.name}"
    for name, content in call("GET", path).items():
        Path(asked.dir, name).write_bytes(base64.b64decode(content))


if __name__ == "__main__":
    {"api": api, "issue": issue, "run": run}[sys.argv[1]](sys.argv[2:])
