"""Files that people name: replaced as a whole or not at all, private where asked for, and errors that name them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.files import replace_file, require_replaceable, require_writable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def writer(content: bytes) -> Callable[[Path], object]:
    return lambda part: part.write_bytes(content)


def test_a_file_is_replaced_only_when_the_new_one_is_whole(folder: Path) -> None:
    replace_file(folder / "a.csv", writer(b"old"))

    def half(part: Path) -> None:
        part.write_bytes(b"ne")
        raise OSError(28, os.strerror(28))

    with pytest.raises(Error) as caught:
        replace_file(folder / "a.csv", half)
    assert caught.value.slug == "file_write" and caught.value.message.endswith(f"a.csv: {os.strerror(28)}")
    assert (folder / "a.csv").read_bytes() == b"old" and not list(folder.glob(".*.part"))
    replace_file(folder / "a.csv", writer(b"new"))
    assert (folder / "a.csv").read_bytes() == b"new" and not list(folder.glob(".*.part"))


def test_any_other_error_leaves_no_part_either(folder: Path) -> None:
    def broken(part: Path) -> None:
        part.write_bytes(b"ne")
        raise KeyError("n")

    with pytest.raises(KeyError):
        replace_file(folder / "a.csv", broken)
    assert list(folder.iterdir()) == []


def test_a_part_that_was_left_over_is_begun_anew(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"untouched")
    (folder / ".a.csv.part").symlink_to(tmp_path / "victim")
    (folder / ".b.csv.part").write_bytes(b"a longer rest of another run")

    def appended(part: Path) -> None:
        assert part.parent == folder
        with part.open("ab") as file:
            file.write(b"new")

    for name in ("a.csv", "b.csv"):
        replace_file(folder / name, appended)
        assert (folder / name).read_bytes() == b"new" and not (folder / name).is_symlink()
    assert (tmp_path / "victim").read_bytes() == b"untouched"


def test_a_private_file_is_new_and_its_owners_alone(folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"old")
    with (folder / "a.csv").open("rb") as opened:
        replace_file(folder / "a.csv", writer(b"new"), private=True)
        assert opened.read() == b"old" and (folder / "a.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("require", [require_writable, require_replaceable])
def test_places_are_tried_before_anything_is_charged(folder: Path, require: Callable[[Path], None]) -> None:
    require(folder / "a.csv")
    assert list(folder.iterdir()) == []
    with pytest.raises(Error) as caught:
        require(folder / "nowhere" / "a.csv")
    assert (caught.value.slug, caught.value.charged) == ("file_write", False)
