"""Manifests written as text, judged as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.manifests.loader import load
from reconciler.validation.desired import Judgement, judge

Judge = Callable[..., Judgement]


@pytest.fixture
def judge_text(tmp_path: Path) -> Judge:
    """Return what judges texts, each as one file: ``0.yaml``, ``1.yaml``, ..., and no earlier."""

    def judged(*texts: str) -> Judgement:
        for earlier in tmp_path.glob("*.yaml"):
            earlier.unlink()
        for number, text in enumerate(texts):
            (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
        return judge(load([tmp_path]))

    return judged
