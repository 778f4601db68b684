"""Other programs that do a comparable job, where they can be had on this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.measure import Job

HERE = Path(__file__).parent
ZONES = 10


def octodns(count: int, scratch: Path) -> Job:
    """Return a plan of octoDNS over so many unchanged records, YAML against YAML.

    It is installed into an environment of its own, by the hashes in ``octodns.txt``.
    """
    venv = scratch / "octodns-venv"
    if not venv.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run(
            [
                venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes",
                "--requirement", HERE / "octodns.txt",
            ],
            check=True,
        )  # fmt: skip
    folder = scratch / f"octodns-{count}"
    zones = [f"zone-{number}.example.com." for number in range(ZONES)]
    for side in ("wanted", "held"):
        (folder / side).mkdir(parents=True, exist_ok=True)
        for zone in zones:
            records = [
                f"r{number}:\n  ttl: 300\n  type: A\n  values:\n    - 192.0.2.{number % 250}\n"
                for number in range(count // ZONES)
            ]
            text = "---\n" + "".join(sorted(records))
            (folder / side / f"{zone}yaml").write_text(text, encoding="utf-8")
    providers = "".join(
        f"  {side}:\n    class: octodns.provider.yaml.YamlProvider\n    directory: ./{side}\n"
        "    default_ttl: 300\n    enforce_order: false\n"
        for side in ("wanted", "held")
    )
    listed = "".join(f"  {zone}:\n    sources: [wanted]\n    targets: [held]\n" for zone in zones)
    config = f"---\nproviders:\n{providers}zones:\n{listed}"
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    command = [str(venv / "bin" / "octodns-sync"), "--config-file", "config.yaml"]
    return Job("octodns-sync", command, folder)


def terraform(count: int, scratch: Path) -> Job | None:
    """Return a plan of Terraform over so many objects of its own; None without the program."""
    program = shutil.which("terraform") or shutil.which("tofu")
    if program is None:
        return None
    folder = scratch / f"terraform-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    blocks = "".join(
        f'resource "terraform_data" "app{number}" {{\n  input = {{ name = "app-{number}", '
        f'uri = "https://app-{number}.example.com/cb" }}\n}}\n'
        for number in range(count)
    )
    (folder / "main.tf").write_text(blocks, encoding="utf-8")
    subprocess.run([program, "init", "-input=false"], cwd=folder, check=True, capture_output=True)
    return Job("terraform plan", [program, "plan", "-input=false", "-no-color"], folder)
