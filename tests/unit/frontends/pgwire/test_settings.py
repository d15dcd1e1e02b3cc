"""Run-time settings of a connection are read, set and reset as in PostgreSQL, and a value with another meaning is refused."""

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.settings import SETTINGS, Setting, Settings


@pytest.fixture
def settings() -> Settings:
    return Settings("ann")


def slug_of_set(settings: Settings, name: str, value: str = "x") -> str:
    before = settings.all()
    with pytest.raises(Error) as caught:
        settings.set(name, value)
    assert settings.all() == before, "a refused SET changes nothing"
    return caught.value.slug


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.name)
def test_what_is_shown_can_be_set_again_unless_it_is_fixed(settings: Settings, setting: Setting) -> None:
    shown = settings.get(setting.name)
    if setting.context != "user":
        assert slug_of_set(settings, setting.name, shown) in ("setting_fixed", "setting_privilege")
        return
    settings.set(setting.name, shown)
    assert settings.get(setting.name) == shown and settings.stored(setting.name.lower()) == setting.value


# --- reset ------------------------------------------------------------------------------------------------------------


def test_reset_goes_back_to_what_was_said_at_connect(settings: Settings) -> None:
    settings.start("TIME ZONE", "Asia/Tokyo")
    settings.start("my.start", "1")
    settings.set("timezone", "Europe/Vienna")
    for name, value in (("my.start", "2"), ("work_mem", "128kB"), ("my.other", "2")):
        settings.set(name, value)
    settings.reset("work_mem")
    assert (settings.get("work_mem"), settings.get("timezone")) == ("4MB", "Europe/Vienna"), "of one setting alone"
    settings.reset("time zone")
    settings.reset("my.start")
    settings.reset("my.other")
    assert (settings.get("timezone"), settings.get("my.start")) == ("Asia/Tokyo", "1")
    with pytest.raises(Error, match="setting_unknown"):
        settings.get("my.other")
    settings.reset("my.never")


def test_outside_of_transactions_the_level_is_that_of_the_next_one() -> None:
    settings = Settings("ann")
    settings.set("default_transaction_isolation", "serializable")
    assert settings.get("transaction_isolation") == "serializable"
    settings.reset("default_transaction_isolation")
    assert settings.get("transaction_isolation") == "read committed"
