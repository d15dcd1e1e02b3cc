"""A watch polled through a real server: shared by connections, and resumed after the server was killed."""

import signal

from support.raw_client import Client, error_of, rows_of
from support.served_clinic import Served

COUNT = "SELECT COUNT(*) FROM patients"
NEVER, ALWAYS = 10**15, -(10**15)


def polling(clinic: Served, threshold: int, hits: int = 2) -> Client:
    """Return a monitoring tool's connection with the options of a watch."""
    return clinic.client(options=f"-c dp.threshold={threshold} -c dp.watch=alarm -c dp.hits={hits}")


def test_connections_share_a_run_and_a_killed_server_pays_for_the_next_one(own_clinic: Served) -> None:
    """No comparison is repeated for free: the noisy threshold ends with the server, and its run is spent."""
    own_clinic.start()
    before = own_clinic.charges()
    first, second = polling(own_clinic, NEVER), polling(own_clinic, NEVER)
    for client in (first, second, first):
        assert rows_of(client.query(COUNT)) == [[b"f", None, None, b"t", b"1"]]
    assert own_clinic.charges() == before + 1, "one run, whichever connection asks"
    own_clinic.stop(signal.SIGKILL)
    own_clinic.start()
    again = polling(own_clinic, NEVER)
    assert rows_of(again.query(COUNT)) == [[b"f", None, None, b"t", b"0"]]
    assert own_clinic.charges() == before + 2, "the next run, and the last of two"
    ((above, value, error, under_way, left),) = rows_of(polling(own_clinic, ALWAYS).query(COUNT))
    assert (above, under_way, left) == (b"t", b"f", b"0") and value is not None and error is not None
    assert own_clinic.charges() == before + 2, "an answer above ends the run that is paid for"
    refused = error_of(again.query(COUNT))
    assert refused["C"] == "55000" and "all 2 runs of watch alarm" in refused["M"]
    assert own_clinic.charges() == before + 2
    own_clinic.stop(signal.SIGKILL)
    own_clinic.start()
    assert error_of(polling(own_clinic, NEVER).query(COUNT))["C"] == "55000", "and stays over after another start"
    assert rows_of(polling(own_clinic, NEVER, hits=3).query(COUNT)) == [[b"f", None, None, b"t", b"0"]]
    assert own_clinic.charges() == before + 3
    own_clinic.stop()
