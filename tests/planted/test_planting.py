"""The planted bugs still fit the code. That the tests notice them is ``make planted``."""

from __future__ import annotations

import ast

import pytest

from tests.planted.planting import ROOT, Plant, plants

PLANTS = plants()


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_a_bug_is_planted_in_one_place_and_is_still_a_program(plant: Plant) -> None:
    """A bug that no longer fits would be noticed by nobody, and that would not be noticed."""
    planted = ast.parse(plant.planted())

    sound = ast.parse((ROOT / plant.file).read_text(encoding="utf-8"))
    assert ast.dump(planted) != ast.dump(sound)


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])
def test_the_suite_of_a_bug_is_there(plant: Plant) -> None:
    """A path that leads nowhere runs no test."""
    paths = [word.partition("::")[0] for word in plant.suite if word.startswith("tests/")]

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_there_are_bugs_to_plant() -> None:
    """An empty folder would make every rule above pass."""
    assert len(PLANTS) >= 30
