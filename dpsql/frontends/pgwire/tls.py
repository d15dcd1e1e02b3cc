"""TLS of the server: with the owner's certificate, or a self-signed one that is made for this data set."""

from __future__ import annotations

import os
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.scram import certificate_hash
from dpsql.storage.files import write_private

_YEARS_IN_DAYS = 3650


@dataclass(frozen=True)
class Tls:
    """The TLS context; `binding`: tls-server-end-point of the certificate (None if it has none)."""

    context: ssl.SSLContext
    binding: bytes | None


def load_tls(certificate: Path, key: Path) -> Tls:
    """Return TLS 1.2 and later with a certificate (chain) and its key, both PEM. Raises serve_tls."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        first = certificate.read_text(encoding="ascii").partition("-----END CERTIFICATE-----")
        der = ssl.PEM_cert_to_DER_cert(first[0][first[0].index("-----BEGIN") :] + first[1] + "\n")
    except (OSError, ValueError) as error:
        raise refuse("serve_tls", problem=getattr(error, "strerror", None) or "it is not PEM") from None
    return Tls(context, certificate_hash(der))


SELF_SIGNED = ("server.crt", "server.key")
"""The files of the self-signed certificate and its key."""


def copy_self_signed(folder: Path, target: Path) -> bool:
    """Copy the self-signed certificate and its key if `folder` has them and `target` does not; return whether it was done.
    Raises backup_folder."""
    if not all((folder / name).exists() for name in SELF_SIGNED) or any(
        (target / name).exists() for name in SELF_SIGNED
    ):
        return False
    try:
        for name in SELF_SIGNED:
            write_private(target / name, (folder / name).read_bytes())
    except OSError as error:
        raise refuse("backup_folder", place=str(target), problem=(error.strerror or "it failed").lower()) from error
    return True


def self_signed(folder: Path, host: str) -> Tls:
    """Return TLS with the self-signed certificate in `folder`, made by openssl if there is none. Raises serve_tls."""
    certificate, key = (folder / name for name in SELF_SIGNED)
    if not (certificate.exists() and key.exists()):
        command = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256",
            "-days", str(_YEARS_IN_DAYS), "-subj", f"/CN={host}", "-keyout", str(key), "-out", str(certificate),
        ]  # fmt: skip
        mask = os.umask(0o077)
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            raise refuse("serve_tls", problem="openssl, which makes one, cannot be run") from None
        finally:
            os.umask(mask)
    return load_tls(certificate, key)
