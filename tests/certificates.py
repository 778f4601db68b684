"""Certificates for a server of a test: sound ones, and each kind that must be refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = timedelta(days=1)


def a_certificate(
    folder: Path,
    *,
    begins: timedelta = -DAY,
    ends: timedelta = DAY,
    host: str = "127.0.0.1",
    is_signed: bool = False,
) -> tuple[Path, Path]:
    """Write a certificate and its key; times count from now.

    It is its own authority, unless it is signed by another one, which is in no file.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    signer = ec.generate_private_key(ec.SECP256R1()) if is_signed else key
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "intermediate")])
    now = datetime.now(UTC)
    is_address = host.replace(".", "").isdecimal()
    subject = x509.IPAddress(ip_address(host)) if is_address else x509.DNSName(host)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer if is_signed else name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return folder / "cert.pem", folder / "key.pem"
