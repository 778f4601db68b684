"""Commands that take secrets, as a test wants them."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from reconciler.apply.sink import Delivery, Kept, SecretSink
from reconciler.apply.sinks import open_sink
from reconciler.errors import LocalFileError
from reconciler.resources.secret import Secret
from tests.builders import a_ref

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "RECONCILER_TOKEN": "token",
    "RECONCILER_ID_TOKEN": "token",
    "RECONCILER_TREE": "t",
}


def deliveries(count: int) -> list[Delivery]:
    return [
        Delivery(a_ref(name=f"app-{number}"), f"id-{number}", Secret(f"geheim-{number}"))
        for number in range(count)
    ]


PYTHON = [sys.executable, "-I", "-S"]  # without site packages it starts in a fraction of the time

HELPER = """
import json, os, sys, time
verb, kept = sys.argv[-1], sys.argv[1]
assert 'RECONCILER_TOKEN' not in os.environ and 'geheim' not in str(os.environ) + str(sys.argv)
open(kept + '.runs', 'a').write(verb + '\\n')
{before}
for line in sys.stdin:
    one = json.loads(line)
    if verb == 'put':
        {put}
        open(kept, 'a').write(line)
        print(json.dumps({{'client_id': one['client_id'], 'kept': True}}){flush})
    elif verb == 'has':
        assert 'client_secret' not in one
        has = os.path.exists(kept) and one['client_id'] in open(kept).read()
        print(json.dumps({{'client_id': one['client_id'], 'has': has}}))
    else:
        sys.exit(9)
{after}
"""


class Helper:
    """A command that speaks the verbs, with lines of a test's own in it."""

    def __init__(self, folder: Path) -> None:
        self.kept, self.script = folder / "kept.jsonl", folder / "helper.py"
        self.write()

    def write(
        self, *, before: str = "", put: str = "pass", after: str = "", flush: str = ""
    ) -> None:
        self.script.write_text(
            HELPER.format(before=before, put=put, after=after, flush=flush), encoding="utf-8"
        )

    def sink(self, scheme: str = "exec-batch") -> SecretSink:
        words = shlex.join([*PYTHON, str(self.script), str(self.kept)])
        return open_sink(f"{scheme}:{words}", ENVIRONMENT)

    @property
    def secrets(self) -> dict[str, str]:
        """Return the secrets it has, by client id."""
        lines = self.kept.read_text(encoding="utf-8").splitlines() if self.kept.exists() else []
        return {one["client_id"]: one["client_secret"] for one in map(json.loads, lines)}

    @property
    def runs(self) -> list[str]:
        return Path(f"{self.kept}.runs").read_text(encoding="ascii").split()


def is_kept(results: Sequence[Kept | LocalFileError]) -> list[bool]:
    return [isinstance(result, Kept) for result in results]


TAKER = """
import os, sys, time
name, kept = os.environ['RECONCILER_SECRET_NAME'], sys.argv[1]
assert not {'RECONCILER_TOKEN', 'RECONCILER_ID_TOKEN'} & os.environ.keys()
began = time.time()
time.sleep(float(sys.argv[2]))
open(os.path.join(kept, name), 'w').write(f'{began} {time.time()} {sys.stdin.read()}')
sys.exit(name == 'app-2')
"""


def a_taker(folder: Path, scheme: str, seconds: float) -> SecretSink:
    """Return a sink that runs a command for each secret; it fails for app-2."""
    script, kept = folder / "taker.py", folder / "kept"
    script.write_text(TAKER, encoding="utf-8")
    kept.mkdir()
    words = [*PYTHON, str(script), str(kept), str(seconds)]
    return open_sink(f"{scheme}:{shlex.join(words)}", ENVIRONMENT)
