"""The settings of a run, as its command line gives them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from reconciler.continuous.decision import Mode
from reconciler.git.address import Access


class RunForm(NamedTuple):
    """The settings of a run; files have absolute paths, because it works in its state.

    Attributes:
        paths: PATHS from the root of the repository; empty for those of the configuration.
        config_file: ``reconciler.yaml``, from there; None to look for it.
    """

    paths: tuple[str, ...]
    repository: str
    ref: str
    git_credentials_file: Path | None
    ssh_key_file: Path | None
    known_hosts: Path | None
    git_ca_file: Path | None
    use_proxy: bool
    mode: Mode
    interval: int | None
    state_folder: Path
    once: bool
    run_environment: str
    run_tree: str | None
    variables: tuple[str, ...]
    config_file: str | None
    listen: str
    prune: bool
    heal_protected: bool
    accept: str | None
    trust_commit: str | None
    applied: str | None
    signed_by: Path | None
    trigger_token_file: Path | None
    page_token_file: Path | None
    notify: tuple[str, ...]
    notify_key_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    behind_tls_proxy: bool
    commit_url: str
    require_secrets: bool
    log_format: str

    @property
    def access(self) -> Access:
        """Return the files that give access to the repository."""
        proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
        return Access(
            self.git_credentials_file,
            self.ssh_key_file,
            self.known_hosts,
            self.git_ca_file,
            proxy if self.use_proxy else "",
        )
