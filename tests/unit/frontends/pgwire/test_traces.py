"""Traces for the owner: the phases of each query, without texts, error messages or anything from a row."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.served_clinic import Served, build_clinic, logged_in, serving

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.errors.custodian_log import TRACES
from dpsql.frontends.cli.serve import open_server_state

sdk = pytest.importorskip("opentelemetry.sdk.trace.export", reason="the extra dpsql[otel]")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter", reason="the extra dpsql[otel]")

COUNTED = "SELECT sex, COUNT(*) AS n FROM patients WHERE age > 33 GROUP BY sex"
CELL = "secret-cell-4711"
FACTS = {"dpsql.user", "dpsql.project", "dpsql.door", "dpsql.outcome", "dpsql.slug", "dpsql.charged", "dpsql.receipt",
         "error.type"}  # fmt: skip
"""All attributes that a span may have for a query whose text the policy does not release to logs."""


class Spans:
    """Spans of queries traced into memory, each with its name, parent, trace and attributes."""

    def __init__(self) -> None:
        self.exporter = memory.InMemorySpanExporter()

    @property
    def ended(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def roots(self) -> list[Any]:
        """Return the root spans, which are whole queries, in the order in which they ended."""
        return [span for span in self.ended if span.parent is None]

    def phases(self, root: Any) -> list[str]:
        """Return the phases of a query in the order in which they ended."""
        mine = [span for span in self.ended if span.context.trace_id == root.context.trace_id and span is not root]
        assert all(span.parent.span_id == root.context.span_id for span in mine), "phases are of their question"
        return [span.name for span in mine]

    def text(self) -> str:
        """Return everything that an exporter receives."""
        return "".join(span.to_json() for span in self.ended)


@pytest.fixture
def spans() -> Iterator[Spans]:
    recorded = Spans()
    TRACES.start(sdk.SimpleSpanProcessor(recorded.exporter))
    try:
        yield recorded
    finally:
        TRACES.stop()


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    built = build_clinic(tmp_path)
    monkeypatch.setenv("DPSQL_STATE", str(built.state))
    return built


def ask(clinic: Served, *questions: str) -> None:
    with serving(open_server_state(clinic.policy)) as port:
        client = logged_in(port)
        for sql in questions:
            client.query(sql)


def test_answered_stored_and_refused_questions_have_their_phases(clinic: Served, spans: Spans) -> None:
    ask(clinic, COUNTED, COUNTED, "SELECT age FROM patients", "SELECT 1", "SHOW server_version")
    measured, stored, refused = spans.roots()
    assert {root.name for root in spans.roots()} == {"question"}
    assert [(root.attributes["dpsql.outcome"], root.attributes["dpsql.user"]) for root in spans.roots()] == [
        ("measured", "research"), ("stored", "research"), ("refused", "research")]  # fmt: skip
    assert spans.phases(measured) == [
        "parse", "plan", "price", "rehearse", "reserve", "engine", "noise", "store", "answer"]  # fmt: skip
    assert spans.phases(stored) == ["parse", "rehearse", "answer"]
    assert spans.phases(refused) == ["parse", "plan"]
    assert refused.attributes["dpsql.slug"] == "raw_rows" and refused.attributes["dpsql.charged"] is False
    assert measured.attributes["dpsql.receipt"] in clinic.charged()[-1]["id"]
    assert all(set(span.attributes) <= FACTS and not span.events for span in spans.ended)
    assert "SELECT" not in spans.text() and "patients" not in spans.text()


def test_statements_of_one_message_are_read_before_the_first_is_a_question(clinic: Served, spans: Spans) -> None:
    ask(clinic, f"{COUNTED}; SELECT 1", f"{COUNTED}; SELECT COUNT(*) FROM")
    assert [root.name for root in spans.roots()] == ["describe", "question", "describe", "question"]
    assert spans.roots()[1].attributes["dpsql.outcome"] == "measured"
    assert spans.roots()[-1].attributes["dpsql.outcome"] == "refused"


def test_a_failure_says_no_word_of_the_engine(clinic: Served, spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    run = DuckDBEngine.run

    def failing(engine: DuckDBEngine, query: Any, seconds: float | None = None) -> Any:
        return run(engine, replace(query, sql=f"SELECT CAST('{CELL}' AS INTEGER)"), seconds)

    monkeypatch.setattr(DuckDBEngine, "run", failing)
    ask(clinic, COUNTED)
    (failed,) = spans.roots()
    assert failed.attributes["dpsql.outcome"] == "fault" and failed.attributes["dpsql.charged"] is True
    assert spans.phases(failed)[-2:] == ["reserve", "engine"]
    (engine,) = (span for span in spans.ended if span.name == "engine")
    assert engine.attributes == {"error.type": "engine_failed"} and not engine.status.is_ok
    assert not any(span.events or span.status.description for span in spans.ended)
    assert CELL not in spans.text() and "CAST" not in spans.text()


def test_an_analyst_sees_nothing_of_traces(clinic: Served, spans: Spans) -> None:
    with serving(open_server_state(clinic.policy)) as port:
        client = logged_in(port)
        told = repr(client.query(COUNTED)) + repr(client.query("SHOW ALL"))
    identities = {format(span.context.trace_id, "032x") for span in spans.ended}
    assert identities and not any(identity in told for identity in identities)
    assert "traceparent" not in told and "otel" not in told.lower()


class Collector(BaseHTTPRequestHandler):
    """The owner's collector, which keeps what it receives."""

    sent: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        self.sent.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        return


def test_a_server_sends_traces_where_the_environment_says(clinic: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    Collector.sent = []
    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=clinic-test")
        served = Served(clinic.policy, clinic.state, ("--traces",)).start()
        served.client().query(COUNTED)
        assert served.stop() == 0
        collector.shutdown()
    assert {path for path, _ in Collector.sent} == {"/v1/traces"}
    body = b"".join(body for _, body in Collector.sent)
    assert all(word in body for word in (b"question", b"engine", b"noise", b"service.name", b"dpsql", b"clinic-test"))
    assert b"SELECT" not in body and str(clinic.policy).encode() not in body
