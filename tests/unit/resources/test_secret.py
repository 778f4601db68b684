"""A secret shows itself to nobody who does not ask for it by name."""

from __future__ import annotations

import copy
import json
import logging
import pickle

import pytest

from reconciler.resources.secret import Secret
from tests.rows import each_row

VALUE = "s3cr3t-value"


@each_row(
    "shown",
    [
        pytest.param(str(Secret(VALUE)), id="str"),
        pytest.param(repr(Secret(VALUE)), id="repr"),
        pytest.param(f"{Secret(VALUE)}", id="an f-string"),
        pytest.param(f"{Secret(VALUE):>40}", id="a format"),
        pytest.param(f"{Secret(VALUE)!r}", id="an f-string with repr"),
        pytest.param("{} {!r}".format(*[Secret(VALUE)] * 2), id="a call of format"),
        pytest.param(str([Secret(VALUE)]), id="in a list"),
        pytest.param(str({"a": Secret(VALUE)}), id="in a mapping"),
        pytest.param(str(ValueError(Secret(VALUE))), id="in an exception"),
        pytest.param(json.dumps({"a": Secret(VALUE)}, default=str), id="in JSON"),
    ],
)
def test_no_way_to_text_shows_it(shown: str) -> None:
    assert VALUE not in shown
    assert "***" in shown


def test_what_stands_for_it_is_always_the_same() -> None:
    assert (str(Secret(VALUE)), f"{Secret(VALUE):>40}", repr(Secret(VALUE))) == (
        "***",
        "***",
        "Secret(***)",
    )


def test_a_log_line_does_not_show_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("test").warning("made %s", Secret(VALUE))

    assert "made ***" in caplog.text


def test_it_is_not_written_in_ways_that_keep_it() -> None:
    with pytest.raises(TypeError, match=r"^a secret is not pickled$"):
        pickle.dumps(Secret(VALUE))
    with pytest.raises(TypeError):
        copy.deepcopy(Secret(VALUE))
    with pytest.raises(TypeError):
        json.dumps(Secret(VALUE))


def test_it_can_be_asked_for_and_compared() -> None:
    assert Secret(VALUE).reveal() == VALUE
    assert Secret(VALUE) == Secret(VALUE)
    assert Secret(VALUE) != Secret("other")
    assert Secret(VALUE) != VALUE
    assert len({Secret(VALUE), Secret(VALUE)}) == 1
    assert not hasattr(Secret(VALUE), "__dict__")


def test_its_hash_tells_it_from_others_and_nobody_what_it_is() -> None:
    assert hash(Secret(VALUE)) == hash(Secret(VALUE))
    assert hash(Secret(VALUE)) not in {hash(VALUE), hash(Secret("other"))}
