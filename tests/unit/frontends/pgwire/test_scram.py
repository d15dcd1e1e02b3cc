"""SCRAM compared with RFC 7677's example, and attempts to cheat in it."""

import base64
import hashlib
import ssl
from pathlib import Path

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire import logins
from dpsql.frontends.pgwire import messages as m
from dpsql.frontends.pgwire.connection import self_signed
from dpsql.frontends.pgwire.logins import Exchange, Verifier, make_verifier, mock_verifier, prepared

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={NONCE},p={PROOF}".encode()


@pytest.fixture(autouse=True)
def known_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins.secrets, "token_urlsafe", lambda size: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")


def _pencil() -> Verifier:
    return make_verifier("pencil", SALT, 4096)


def test_the_example_of_rfc_7677_is_reproduced() -> None:
    exchange = Exchange(_pencil(), True, None)
    assert exchange.mechanisms() == ("SCRAM-SHA-256",)
    assert exchange.first("SCRAM-SHA-256", FIRST) == f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert exchange.final(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_right_proof_fails_for_who_is_not_known() -> None:
    exchange = Exchange(_pencil(), False, None)
    exchange.first("SCRAM-SHA-256", FIRST)
    assert exchange.final(FINAL) is None


def test_a_wrong_proof_fails() -> None:
    exchange = Exchange(make_verifier("Pencil", SALT, 4096), True, None)
    exchange.first("SCRAM-SHA-256", FIRST)
    assert exchange.final(FINAL) is None


def test_a_mock_has_a_steady_salt_and_no_steady_keys() -> None:
    first, second = mock_verifier(b"s", "ann"), mock_verifier(b"s", "ann")
    assert first.salt == second.salt != mock_verifier(b"s", "bob").salt
    assert first.stored_key != second.stored_key
    assert len(first.salt) == len(make_verifier("x").salt)
    assert first.iterations == make_verifier("x").iterations


@pytest.mark.parametrize(
    ("mechanism", "first", "binding"),
    [
        ("SCRAM-SHA-256", b"y,,n=,r=abc", b"hash"),  # someone hid the server's offer of channel binding
        ("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=abc", None),
        ("SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=,r=abc", b"hash"),
        ("SCRAM-SHA-256-PLUS", b"n,,n=,r=abc", b"hash"),
        ("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=abc", b"hash"),
        ("SCRAM-SHA-1", b"n,,n=,r=abc", None),
        ("SCRAM-SHA-256", b"n,a=root,n=,r=abc", None),
        ("SCRAM-SHA-256", b"n,,m=x,r=abc", None),
        ("SCRAM-SHA-256", b"\xff", None),
        ("SCRAM-SHA-256", b"", None),
    ],
)
def test_first_messages_that_are_refused(mechanism: str, first: bytes, binding: bytes | None) -> None:
    with pytest.raises(Error, match="SCRAM"):
        Exchange(_pencil(), True, binding).first(mechanism, first)


@pytest.mark.parametrize(
    "final", [b"", b"c=biws", FINAL.replace(b"hvY", b"xvY"), FINAL.replace(b"biws", b"eSws"), b"c=!,r=x,p=!"]
)
def test_last_messages_that_are_refused(final: bytes) -> None:
    exchange = Exchange(_pencil(), True, None)
    exchange.first("SCRAM-SHA-256", FIRST)
    with pytest.raises(Error, match="SCRAM"):
        exchange.final(final)


def test_channel_binding_of_another_certificate_is_refused() -> None:
    exchange = Exchange(_pencil(), True, b"our certificate")
    exchange.first("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=rOprNGfwEbeRWgbNEkqO")
    theirs = base64.b64encode(b"p=tls-server-end-point,,their certificate").decode()
    with pytest.raises(Error, match="SCRAM"):
        exchange.final(f"c={theirs},r={NONCE},p={PROOF}".encode())


def test_verifiers_have_the_form_of_postgresql() -> None:
    text = _pencil().text()
    assert text.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:")
    assert Verifier.read(text) == _pencil()
    for damaged in ("", "md5abc", text.replace("4096", "1"), text[:-8]):
        with pytest.raises(ValueError):
            Verifier.read(damaged)


def test_saslprep_follows_the_examples_of_rfc_4013() -> None:
    """RFC 4013, section 3."""
    assert [prepared(text) for text in ("I\u00adX", "user", "\u00aa", "\u2168")] == ["IX", "user", "a", "IX"]
    assert prepared("\u0627\u0031") == "\u0627\u0031"


def test_channel_binding_uses_the_sha256_hash_of_the_certificate(tmp_path: Path) -> None:
    tls = self_signed(tmp_path, "localhost")
    der = ssl.PEM_cert_to_DER_cert((tmp_path / "server.crt").read_text())
    assert tls.binding == hashlib.sha256(der).digest()
    assert (tmp_path / "server.key").stat().st_mode & 0o077 == 0


# --- Messages of PostgreSQL's protocol are read and written byte for byte as its manual specifies, and nothing else is read ---


ONE, TWO = b"\0\1", b"\0\2"
"""16-bit counts and formats."""


def slug_of(kind: bytes, body: bytes) -> str:
    with pytest.raises(Error) as caught:
        m.read_message(kind, body)
    return caught.value.slug


# --- the first message ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\0\3\0", b"\0\3\0\0", b"\0\3\0\0user", b"\0\3\0\0user\0", b"\0\3\0\0user\0ann", b"\0\3\0\0user\0ann\0",
        b"\0\3\0\0\0more", b"\0\3\0\0user\0ann\0\0\0", b"\x04\xd2\x16\x2e", b"\x04\xd2\x16\x2e\0\0\0",
    ],
)  # fmt: skip
def test_a_first_message_that_is_cut_or_too_long_is_refused(body: bytes) -> None:
    with pytest.raises(Error) as caught:
        m.read_startup(body)
    assert (caught.value.slug, caught.value.sqlstate) == ("wire_message", "08P01")
    assert "startup packet" in caught.value.message


def test_a_first_message_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(Error) as caught:
        m.read_startup(b"\0\3\0\0user\0\xff\0\0")
    assert caught.value.slug == "wire_encoding"


# --- further messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        (b"Q", b"SELECT 1\0"),
        (b"P", b"s\0x\0" + TWO + b"\0\0\0\x17\0\0\0\x19"),
        (b"B", b"p\0s\0" + ONE + ONE + ONE + b"\0\0\0\2ab" + ONE + ONE),
        (b"D", b"Sname\0"),
        (b"C", b"P\0"),
        (b"E", b"p\0\0\0\0\1"),
    ],
)
def test_a_message_cut_at_any_place_is_refused(kind: bytes, whole: bytes) -> None:
    m.read_message(kind, whole)
    assert {slug_of(kind, whole[:length]) for length in range(len(whole))} == {"wire_message"}


@pytest.mark.parametrize("size", [-2, -(2**31), 3, 2**31 - 1])
def test_a_value_with_an_impossible_length_is_refused(size: int) -> None:
    body = b"\0\0\0\0" + ONE + size.to_bytes(4, "big", signed=True) + b"ab" + b"\0\0"
    assert slug_of(b"B", body) == "wire_message"


@pytest.mark.parametrize("kind", [b"q", b"F", b"\0", b"\xff"])
def test_an_unknown_type_is_refused_by_its_name(kind: bytes) -> None:
    assert slug_of(kind, b"") == "wire_unknown"
    with pytest.raises(Error) as caught:
        m.read_message(kind, b"anything")
    assert caught.value.message.endswith(f" {kind[0]}")


# --- answers ----------------------------------------------------------------------------------------------------------


def test_no_text_ends_its_field_early_or_fails_to_be_written() -> None:
    assert m.complete("a\0b") == b"C\0\0\0\7ab\0"
    assert m.complete("a\ud800") == b"C\0\0\0\7a?\0"
