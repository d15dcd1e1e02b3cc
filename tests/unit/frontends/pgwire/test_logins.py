"""Logins are in a file that only its owner can read, take effect when it changes, and reveal to no one who has a login."""

import json
import multiprocessing
import os
import signal
import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support.places import CLINIC

from dpsql.errors.exceptions import Error, PolicyRefusal
from dpsql.frontends.pgwire.logins import LEAST_PASSWORD, OWNER, Logins, analyst_of, make_verifier, open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import parse_policy
from dpsql.storage import files

POLICY = parse_policy(CLINIC)
NARROWER = parse_policy(
    CLINIC.replace("analysts: {research: {epsilon: 3}, bi: {epsilon: 5}}", "analysts: {bi: {epsilon: 5}}")
)
PASSWORD = "an honest password"
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "logins"


@pytest.fixture
def logins(place: Path) -> Logins:
    return Logins(place, POLICY)


def lets_in(logins: Logins, name: str, password: str = PASSWORD) -> bool:
    """Return whether a password fits: the verifier computed with the stored salt equals the stored one."""
    verifier, exists = logins.verifier(name)
    fits = make_verifier(password, verifier.salt, verifier.iterations) == verifier
    assert fits <= exists
    return fits


def slug_of(error: pytest.ExceptionInfo[Error]) -> str:
    return error.value.slug


# --- who may log in ---------------------------------------------------------------------------------------------------


def test_analysts_and_the_owner_may_have_logins(place: Path) -> None:
    assert Logins(place, POLICY).names() == ("research", "bi", OWNER)


def test_the_owner_asks_without_an_account() -> None:
    assert analyst_of(OWNER) is None
    assert analyst_of("research") == "research"


@pytest.mark.parametrize("name", ["owner", "Owner", "OWNER"])
def test_no_analyst_may_have_the_owners_login(name: str) -> None:
    """The removal of such an analyst by a reload of the policy would make their login and password the owner's."""
    with pytest.raises(PolicyRefusal, match="the login of the data's owner"):
        parse_policy(CLINIC.replace("bi: {epsilon: 5}", f"{name}: {{epsilon: 5}}"))


def test_a_password_lets_in_whom_it_was_given_to(logins: Logins) -> None:
    logins.add("research", PASSWORD)
    assert lets_in(logins, "research") and not lets_in(logins, "research", PASSWORD + "x")
    assert not lets_in(logins, "bi") and not lets_in(logins, OWNER) and not lets_in(logins, "nobody")
    assert len(logins) == 1


def test_a_new_password_takes_the_place_of_the_old_one(logins: Logins) -> None:
    logins.add("research", PASSWORD)
    logins.add("bi", PASSWORD)
    logins.add("research", "another password")
    assert lets_in(logins, "research", "another password") and not lets_in(logins, "research")
    assert lets_in(logins, "bi") and len(logins) == 2


def test_a_login_needs_a_name_of_the_policy_and_a_password_of_some_length(logins: Logins, place: Path) -> None:
    with pytest.raises(Error) as caught:
        logins.add("nobody", PASSWORD)
    assert slug_of(caught) == "user_name" and "research, bi, owner" in caught.value.hint
    with pytest.raises(Error) as caught:
        logins.add("research", "x" * (LEAST_PASSWORD - 1))
    assert slug_of(caught) == "user_password" and str(LEAST_PASSWORD) in caught.value.message
    assert not place.exists()
    logins.add("research", "x" * LEAST_PASSWORD)
    assert lets_in(logins, "research", "x" * LEAST_PASSWORD)


def test_who_leaves_the_policy_is_let_in_no_more(logins: Logins) -> None:
    logins.add("research", PASSWORD)
    logins.add("bi", PASSWORD)
    logins.follow(NARROWER)
    assert (logins.verifier("research")[1], logins.verifier("bi")[1], len(logins)) == (False, True, 1)
    assert logins.states() == {"bi": "active", "owner": "none", "research": "not in the policy"}
    logins.follow(POLICY)
    assert lets_in(logins, "research")


# --- revocation ---------------------------------------------------------------------------------------------------------


def test_a_disabled_login_keeps_its_password(logins: Logins) -> None:
    logins.add("research", PASSWORD)
    logins.add("bi", PASSWORD)
    for _ in range(2):
        logins.disable("research")
        assert not logins.verifier("research")[1] and lets_in(logins, "bi")
        assert logins.states() == {"bi": "active", "owner": "none", "research": "disabled"}
    for _ in range(2):
        logins.enable("research")
        assert lets_in(logins, "research") and logins.states()["research"] == "active"
    logins.disable("research")
    logins.add("research", "another password")
    assert lets_in(logins, "research", "another password"), "a new password lets in again"


def test_a_removed_login_is_gone(logins: Logins) -> None:
    logins.add("research", PASSWORD)
    logins.add("bi", PASSWORD)
    logins.remove("research")
    assert not logins.verifier("research")[1] and lets_in(logins, "bi")
    assert logins.states() == {"bi": "active", "owner": "none", "research": "none"} and len(logins) == 1


@pytest.mark.parametrize("act", ["remove", "disable", "enable"])
def test_only_a_login_that_exists_is_changed(logins: Logins, act: str) -> None:
    with pytest.raises(Error) as caught:
        getattr(logins, act)("research")
    assert slug_of(caught) == "user_unknown" and "logins: none" in caught.value.text()
    logins.add(OWNER, PASSWORD)
    logins.add("bi", PASSWORD)
    with pytest.raises(Error) as caught:
        getattr(logins, act)("research")
    assert slug_of(caught) == "user_unknown" and "bi, owner" in caught.value.text()


def test_who_is_logged_in_stays_while_the_login_is_active(logins: Logins) -> None:
    assert not logins.may_stay("research")
    logins.add("research", PASSWORD)
    assert logins.may_stay("research") and not logins.may_stay("bi")
    logins.disable("research")
    assert not logins.may_stay("research")
    logins.enable("research")
    assert logins.may_stay("research")
    logins.remove("research")
    assert not logins.may_stay("research")


# --- several who change them ----------------------------------------------------------------------------------------------

ANALYSTS = {word: [f"{word}{number}" for number in range(20)] for word in ("add", "disable", "remove")}
MANY = parse_policy(
    CLINIC.replace(
        "{research: {epsilon: 3}, bi: {epsilon: 5}}",
        f"{{{', '.join(f'{name}: {{epsilon: 1}}' for names in ANALYSTS.values() for name in names)}}}",
    )
)


def change_three(place: Path, number: int, together: Any) -> None:
    logins = Logins(place, MANY)
    together.wait(240)
    logins.add(ANALYSTS["add"][number], PASSWORD)
    logins.disable(ANALYSTS["disable"][number])
    logins.remove(ANALYSTS["remove"][number])


@pytest.mark.slow
def test_changes_by_twenty_processes_at_once_are_all_kept(place: Path) -> None:
    logins = Logins(place, MANY)
    for name in (*ANALYSTS["disable"], *ANALYSTS["remove"]):
        logins.add(name, PASSWORD)
    together = FORK.Barrier(20)
    processes = [FORK.Process(target=change_three, args=(place, number, together)) for number in range(20)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0] * 20
    states = logins.states()
    for word, state in (("add", "active"), ("disable", "disabled"), ("remove", "none")):
        assert {states[name] for name in ANALYSTS[word]} == {state}, word


def disable_and_die(place: Path, step: int) -> None:
    """Disable a login; the process kills itself before the line `step` that writing the file takes."""
    steps = count()

    def die(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line" and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return die

    sys.settrace(die)
    Logins(place, POLICY).disable("research")


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_file_or_the_new_one_and_no_lock(place: Path) -> None:
    outcomes = []
    for step in count():
        logins = Logins(place, POLICY)
        logins.add("research", PASSWORD)
        logins.add("bi", PASSWORD)
        process = FORK.Process(target=disable_and_die, args=(place, step))
        process.start()
        process.join(240)
        outcomes.append(logins.states())
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    old, new = ({"bi": "active", "owner": "none", "research": state} for state in ("active", "disabled"))
    first = outcomes.index(new)
    assert outcomes == [old] * first + [new] * (len(outcomes) - first) and 0 < first < len(outcomes) - 1
    assert {path.name for path in place.parent.iterdir()} == {"logins", "logins.lock"}, "the next writer removes drafts"


def test_a_change_in_the_same_instant_and_of_the_same_size_is_seen(logins: Logins, place: Path) -> None:
    logins.add("research", PASSWORD)
    logins.add("bi", PASSWORD)
    logins.disable("bi")
    assert logins.may_stay("research")
    status, other = place.stat(), Logins(place, POLICY)
    other.enable("bi")
    other.disable("research")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert place.stat().st_size == status.st_size and not logins.may_stay("research") and logins.may_stay("bi")


def test_a_settled_file_is_read_again_only_after_a_change(
    logins: Logins, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsql.frontends.pgwire.logins._SETTLED_NANOSECONDS", -1)
    logins.add("research", PASSWORD)
    assert logins.may_stay("research")
    opened: list[Path] = []
    open_file = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *how: opened.append(path) or open_file(path, *how))
    assert logins.may_stay("research") and logins.may_stay("research") and not opened
    Logins(place, POLICY).disable("research")
    assert not logins.may_stay("research") and opened
    place.unlink()
    assert not logins.states_known()


# --- what a guesser sees ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bi", "nobody", "research"])
def test_a_name_without_a_login_looks_like_one_with_a_login(logins: Logins, place: Path, name: str) -> None:
    logins.add("research", PASSWORD)
    logins.disable("research")
    (first, exists), (again, _), (later, _) = (
        logins.verifier(name),
        logins.verifier(name),
        Logins(place, POLICY).verifier(name),
    )
    assert not exists and first.salt == again.salt == later.salt
    real = make_verifier(PASSWORD)
    assert (len(first.salt), first.iterations) == (len(real.salt), real.iterations)
    assert first.salt != logins.verifier(name + "x")[0].salt


def test_a_prepared_file_keeps_its_secret(logins: Logins, place: Path) -> None:
    logins.prepare()
    secret = json.loads(place.read_text())["secret"]
    assert len(bytes.fromhex(secret)) == 32 and json.loads(place.read_text())["logins"] == {}
    stamp = place.stat().st_mtime_ns
    Logins(place, POLICY).prepare()
    assert place.stat().st_mtime_ns == stamp
    logins.add("research", PASSWORD)
    Logins(place, POLICY).add("bi", PASSWORD)
    assert json.loads(place.read_text())["secret"] == secret
    logins.prepare()
    assert len(logins) == 2


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_private_and_holds_no_password(logins: Logins, place: Path) -> None:
    logins.add("research", PASSWORD)
    assert place.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in place.read_text()
    assert {path.name for path in place.parent.iterdir()} == {"logins", "logins.lock"}, "no draft is left over"


def test_changes_by_another_process_are_followed(logins: Logins, place: Path) -> None:
    logins.add("research", PASSWORD)
    second = Logins(place, POLICY)
    assert lets_in(second, "research")
    logins.disable("research")
    assert not second.may_stay("research")
    second.add("bi", PASSWORD)
    assert lets_in(logins, "bi")
    place.unlink()
    assert len(logins) == len(second) == 0 and not logins.verifier("bi")[1]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_a_file_that_others_can_touch_is_refused(logins: Logins, place: Path, mode: int) -> None:
    logins.add("research", PASSWORD)
    place.chmod(mode)
    for use in (logins.states, logins.prepare, lambda: logins.add("bi", PASSWORD), lambda: logins.verifier("nobody")):
        with pytest.raises(Error) as caught:
            use()
        assert slug_of(caught) == "user_file" and "chmod 600" in caught.value.message
    place.chmod(0o400)
    assert lets_in(logins, "research")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "not json", '{"logins": {}}', '{"secret": "00"}', '{"secret": "zz", "logins": {}}', '{"secret": "00", "logins": 1}',
     '{"secret": 7, "logins": {}}'],
)  # fmt: skip
def test_a_damaged_file_is_refused_and_stays(logins: Logins, place: Path, text: str) -> None:
    place.write_text(text)
    place.chmod(0o600)
    with pytest.raises(Error) as caught:
        logins.add("research", PASSWORD)
    assert slug_of(caught) == "user_file" and caught.value.message.endswith(f"{place}: it cannot be read")
    assert place.read_text() == text


@pytest.mark.parametrize("text", ["", "SCRAM-SHA-256$", "md5abc", "SCRAM-SHA-256$10000:AAAA$AAAA:AAAA"])
def test_a_damaged_verifier_lets_nobody_in(logins: Logins, place: Path, text: str) -> None:
    logins.add("bi", PASSWORD)
    facts = json.loads(place.read_text())
    facts["logins"]["research"] = text
    place.write_text(json.dumps(facts))
    with pytest.raises(Error, match="a verifier is damaged") as caught:
        logins.verifier("research")
    assert slug_of(caught) == "user_file" and lets_in(logins, "bi")


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    missing = Logins(tmp_path / "nowhere" / "logins", POLICY)
    assert len(missing) == 0
    with pytest.raises(Error, match="nowhere/logins: no such file or directory") as caught:
        missing.add("research", PASSWORD)
    assert slug_of(caught) == "user_file" and missing.states()["research"] == "none"
    (tmp_path / "file").write_text("")
    with pytest.raises(Error, match="file/logins: not a directory"):
        Logins(tmp_path / "file" / "logins", POLICY).states()


def test_a_link_is_replaced_and_not_written_through(logins: Logins, place: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    Logins(victim, POLICY).add("bi", PASSWORD)
    before = victim.read_bytes()
    os.symlink(victim, place)
    logins.add("research", PASSWORD)
    assert victim.read_bytes() == before and not place.is_symlink() and len(logins) == 2


def test_logins_stand_beside_the_key_of_the_ledger(tmp_path: Path) -> None:
    with open_ledger(f"sqlite:///{tmp_path}/ledger.db", "clinic", create=True, state=tmp_path / "state") as ledger:
        open_logins(ledger, POLICY).add("research", PASSWORD)
        assert (ledger.witness.directory / "logins").is_file()
        assert ledger.witness.directory.is_relative_to(tmp_path / "state")
