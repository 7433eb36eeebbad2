"""Certificates and keys for a federation on one machine, made for one run; docs/federation.md makes lasting ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

DAYS = 7


def write_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write ca.crt, server.crt and server.key for loopback; the key of the authority is kept nowhere."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name("a federation on this machine")
    root = _certificate(issuer, issuer, authority.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    leaf = _certificate(_name("localhost"), issuer, server.public_key()).add_extension(hosts, critical=False)
    paths = folder / "ca.crt", folder / "server.crt", folder / "server.key"
    for path, one in zip(paths, (root, leaf), strict=False):
        path.write_bytes(one.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    _write_private(paths[2], server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths


def write_keys(folder: Path, names: Sequence[str]) -> None:
    """Write NAME, a private key, and NAME.pub for every site, as ssh-keygen would."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        key = ec.generate_private_key(ec.SECP256R1())  # every call is signed and checked: a fifth of the time of P-384
        _write_private(folder / name, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))


def write_own_certificates(folder: Path, names: Sequence[str]) -> None:
    """Write NAME.key and NAME.crt, a certificate that its site has signed itself, for every site."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        key, subject = ec.generate_private_key(ec.SECP384R1()), _name(name)
        host = x509.SubjectAlternativeName([x509.DNSName(name)])
        one = _certificate(subject, subject, key.public_key()).add_extension(host, critical=False)
        (folder / f"{name}.crt").write_bytes(one.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write_private(folder / f"{name}.key", private)


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
    )
