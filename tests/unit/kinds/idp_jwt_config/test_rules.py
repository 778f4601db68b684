"""What is wrong or dangerous about an identity provider."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.kinds.idp_jwt_config.rules import RULES
from reconciler.rules.form import Found
from tests.builders import PARTNER, declared
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import IDP, text_of, with_spec


def no_script(name: str, script: str) -> bool:
    raise AssertionError(f"an identity provider has no script: {name}")


@each_row(
    ("changes", "found"),
    [
        pytest.param({}, [], id="nothing out of the ordinary"),
        pytest.param({"headerName": ""}, [], id="no header name"),
        pytest.param({"headerName": "X-Token_1"}, [], id="a header name with signs"),
        pytest.param(
            {"jwtEndpoint": "http://localhost:8080/jwt"}, [], id="plain http to ourselves"
        ),
        pytest.param({"issuer": "partner"}, [], id="an issuer that is no URL"),
        pytest.param({"jwtEndpoint": "/jwt"}, [("IDP-ENDPOINT", True)], id="a path"),
        pytest.param({"keysEndpoint": "login.test/keys"}, [("IDP-ENDPOINT", True)], id="no scheme"),
        pytest.param({"keysEndpoint": "file:///keys"}, [("IDP-ENDPOINT", True)], id="a file"),
        pytest.param(
            {"keysEndpoint": "HTTPS://a.test/"}, [("IDP-ENDPOINT", True)], id="upper case"
        ),
        pytest.param({"keysEndpoint": "https://u@a.test/"}, [("URI-USERINFO", True)], id="a user"),
        pytest.param({"keysEndpoint": "https:///keys"}, [("URI-HOST", True)], id="no host"),
        pytest.param(
            {"keysEndpoint": "https://a.test/ k"}, [("URI-CHARACTER", True)], id="a space"
        ),
        pytest.param({"jwtEndpoint": "http://a.test/"}, [("IDP-HTTP", False)], id="plain http"),
        pytest.param({"keysEndpoint": "http://a.test/"}, [("IDP-HTTP", False)], id="keys by http"),
        pytest.param({"issuer": "http://a.test"}, [("IDP-HTTP", False)], id="an issuer by http"),
        pytest.param({"headerName": "a b"}, [("IDP-HEADER", True)], id="a header with a space"),
        pytest.param(
            {"headerName": "a\r\nb"}, [("IDP-HEADER", True)], id="a header with a line end"
        ),
        pytest.param({"headerName": "a\n"}, [("IDP-HEADER", True)], id="a header that ends a line"),
        pytest.param({"headerName": "a:"}, [("IDP-HEADER", True)], id="a header with a colon"),
        pytest.param({"headerName": "ü"}, [("IDP-HEADER", True)], id="a header outside ASCII"),
        *(
            pytest.param({"headerName": name}, [("IDP-HEADER", True)], id=name)
            for name in (
                *("Host", "content-length", "Transfer-Encoding", "connection", "upgrade", "te"),
                *("trailer", "cookie", "Set-Cookie"),
            )
        ),
    ],
)
def test_identity_providers(
    judge_text: Judge, changes: dict[str, str], found: list[tuple[str, bool]]
) -> None:
    judgement = judge_text(text_of(with_spec(IDP, **changes)))

    assert [(finding.code, finding.is_error) for finding in judgement.diagnostics] == found


@each_row(
    ("field", "text", "problem"),
    [
        (
            "keysEndpoint",
            "login.test/keys",
            error(
                "IDP-ENDPOINT",
                "login.test/keys is not an http or https URL",
                "Write the whole URL, such as https://login.example.com/keys.",
            ),
        ),
        (
            "issuer",
            "http://a.test",
            warning(
                "IDP-HTTP", "plain http", "Anyone on the way can replace what is sent: write https."
            ),
        ),
        (
            "headerName",
            "a b",
            error(
                "IDP-HEADER",
                "the header name is not valid",
                "Write letters, digits and hyphens, such as x-partner-token.",
            ),
        ),
        (
            "headerName",
            "Set-Cookie",
            error(
                "IDP-HEADER",
                "the header set-cookie cannot carry a token",
                "HTTP itself needs this header; write another, such as x-partner-token.",
            ),
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_field(field: str, text: str, problem: Diagnostic) -> None:
    spec = {**IDP["spec"], field: text}

    found = [*RULES.findings(declared(PARTNER, spec), spec, no_script)]

    assert found == [Found(problem, ("spec", field))]
