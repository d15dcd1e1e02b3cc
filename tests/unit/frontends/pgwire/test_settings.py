"""Run-time settings of a connection are read, set and reset as in PostgreSQL, and a value with another meaning is refused."""

import pytest

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.settings import MOST_OWN, SETTINGS, Setting, Settings


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


@pytest.mark.parametrize("name", ["", "nothing", "application name", "timezone "])
def test_a_setting_that_does_not_exist_is_refused(settings: Settings, name: str) -> None:
    assert slug_of_set(settings, name) == "setting_unknown"
    for use in (settings.get, settings.reset):
        with pytest.raises(Error) as caught:
            use(name)
        assert (caught.value.slug, caught.value.sqlstate) == ("setting_unknown", "42704")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", None), ("0s", None), ("0.0 min", None), ("1500", 1.5), ("1", 0.001), ("250ms", 0.25), ("1500000us", 1.5),
        ("2s", 2.0), ("1.5s", 1.5), (" 3 min ", 180.0), ("2h", 7200.0), ("1d", 86400.0), ("1e3", 1.0), ("1.", 0.001),
    ],
)  # fmt: skip
def test_a_timeout_is_in_milliseconds_unless_it_has_a_unit(
    settings: Settings, value: str, seconds: float | None
) -> None:
    settings.set("statement_timeout", value)
    assert settings.statement_seconds() == (seconds if seconds is None else pytest.approx(seconds, rel=1e-12))


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("UTC", "UTC"), ("utc", "UTC"), ("gmt", "GMT"), ("Etc/UTC", "Etc/UTC"), ("Europe/Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"), ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ("GMT-03:00", "GMT-03:00"), ("UTC+2", "UTC+2"), ("EST5EDT", "EST5EDT"), ("<+03>-03", "<+03>-03"),
    ],
)  # fmt: skip
def test_time_zones_that_clients_send_are_accepted(settings: Settings, value: str, stored: str) -> None:
    settings.set("TimeZone", value)
    assert settings.get("timezone") == stored


# --- limits -----------------------------------------------------------------------------------------------------------


def test_settings_of_their_own_are_bounded(settings: Settings) -> None:
    for number in range(MOST_OWN):
        settings.set(f"my.x{number}", "1")
    assert slug_of_set(settings, "my.more") == "wire_limit"
    settings.set("my.x0", "2")
    settings.set("application_name", "x")
    settings.reset("my.x1")
    settings.set("my.more", "3")
    assert (settings.get("my.x0"), settings.get("my.more")) == ("2", "3")


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
