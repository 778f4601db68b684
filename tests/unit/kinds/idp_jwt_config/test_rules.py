"""What is wrong or dangerous about an identity provider."""

from __future__ import annotations

import pytest

from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import IDP, text_of, with_spec


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
