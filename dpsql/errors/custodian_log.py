"""The owner's logs. The custodian's log: details that may quote data are written there and nowhere else.

The audit log: logins, refusals, charges, stopped questions, and changes by the owner. One event is one line of JSON on the logger
`dpsql.audit`: only ASCII, with every control character escaped, so that no name or text that a client sends can begin another
line or field. It contains no answer and no password.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from dpsql.errors.exceptions import Error, refuse
from dpsql.storage.files import state_directory

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer


LOST: Counter[str] = Counter()
"""The number of lines of this process that could not be written, of the "audit" and of the "custodian" log."""
DATASETS: set[str] = set()
"""The data sets whose policies this process has read: each line of a log names them, since it may quote any of them."""


class CustodianLog(logging.Handler):
    """A log handler that appends to `custodian.log` in the state directory (see `dpsql.storage.files`), which only its
    owner can read."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record. If that fails, the record is dropped and counted: it must not stop a question or go elsewhere."""
        try:
            place = self.place()
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(place, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "ab+", 0) as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 1))
                begin = "" if file.read(1) in (b"", b"\n") else "\n"  # a full disk has taken a part of the last line
                line = f"{begin}{self.format(record)}\n".encode()
                if file.write(line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except (OSError, Error):
            _count_lost(record)

    @staticmethod
    def place() -> Path:
        return state_directory() / "custodian.log"


class JsonLine(logging.Formatter):
    """A formatter of a record as one line of JSON in ASCII, so that no text quoted in it can begin another line or field."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, logger, level and message, and the traceback if there is one."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "datasets": sorted(DATASETS),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


class AuditLog(CustodianLog):
    """A log handler that appends the events of `audit` to `audit.log` in the same directory. A rotated file is
    created again."""

    @staticmethod
    def place() -> Path:
        return state_directory() / "audit.log"


class _StandardError(logging.StreamHandler[TextIO]):
    """Standard error as a log; a separate class, so that `keep_log` can see that it is attached and attaches it once."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Count the record: a traceback would go where the record could not."""
        _count_lost(record)


def _count_lost(record: logging.LogRecord) -> None:
    LOST["audit" if record.name == "dpsql.audit" else "custodian"] += 1


def keep_log() -> None:
    """Send the log records of dpsql and the warnings of libraries to the custodian's log, and none of them to the terminal.

    `DPSQL_LOG=stderr` sends both logs to standard error instead, for platforms that collect it.
    """
    logging.captureWarnings(True)
    to_stderr = os.environ.get("DPSQL_LOG") == "stderr"
    handler: logging.Handler = _StandardError() if to_stderr else CustodianLog()
    handler.setFormatter(JsonLine())
    for logger in map(logging.getLogger, ("dpsql", "sqlglot", "opentelemetry", "py.warnings")):
        if not any(isinstance(attached, (CustodianLog, _StandardError)) for attached in logger.handlers):
            logger.addHandler(handler)
        logger.propagate = False
    # sqlglot's warnings quote questions, which `log_sql: false` keeps out of logs.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    events = logging.getLogger("dpsql.audit")
    if not any(isinstance(attached, (AuditLog, _StandardError)) for attached in events.handlers):
        events.addHandler(_StandardError() if to_stderr else AuditLog())
    events.setLevel(logging.INFO)
    events.propagate = False


def keep_incidents() -> None:
    """Send the log records of dpsql to the custodian's log in a process that is not dpsql's own and has no handler for them, so
    that the reason of an incident is recorded. Other loggers, and handlers that the program attached, stay as they are."""
    logger = logging.getLogger("dpsql")
    if not logger.hasHandlers():
        handler = CustodianLog()
        handler.setFormatter(JsonLine())
        logger.addHandler(handler)


def unexpected(error: BaseException) -> Error:
    """Log an exception outside the register, whose text may quote data; return one generic error with the incident's id."""
    incident = uuid.uuid4().hex[:12]
    logging.getLogger("dpsql.custodian").error("incident %s", incident, exc_info=error)
    return refuse("unexpected", incident=incident)


def registered(error: BaseException, *, charged: bool) -> Error:
    """Return an error of the register for any exception, which says whether the charge stays."""
    failure = error if isinstance(error, Error) else unexpected(error)
    failure.charged = failure.charged or charged
    return failure


@contextmanager
def registering(*, charged: bool = False, passing: type[Exception] = Error) -> Iterator[None]:
    """Raise errors of the register alone, each of which says whether the charge stays; `passing`: others that pass as they are.

    As a decorator it does so for a function.
    """
    try:
        yield
    except (Error, passing) as error:
        if isinstance(error, Error):
            error.charged = error.charged or charged
        raise
    except Exception as error:
        raise registered(error, charged=charged) from None


def unexpected_text(error: BaseException) -> str:
    """Return `unexpected` as text for a person. It does not say whether something was charged, because that is unknown."""
    registered = unexpected(error)
    return f"{registered.sqlstate} {registered.slug}: {registered.message}\nhint: {registered.hint}"


_log = logging.getLogger("dpsql.audit")
_LONGEST = 2_000


def audit(event: str, **facts: str | int | float | bool | None) -> None:
    """Write one event; facts that are None are left out, and texts are cut at 2,000 characters."""
    if not _log.isEnabledFor(logging.INFO):
        return
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line: dict[str, object] = {"time": time, "event": event, "datasets": sorted(DATASETS)}
    for name, value in facts.items():
        if value is not None:
            line[name] = value[:_LONGEST] if isinstance(value, str) else value
    _log.info("%s", json.dumps(line, ensure_ascii=True))


# --- traces of a server for its owner, through OpenTelemetry (the extra `dpsql[otel]`) --------------------------------
# Off unless the owner starts them.
#
# A trace is one question and the phases of its answer, each with its duration. How long the engine took depends on
# protected rows (privacy.md 10), so traces go to the owner's exporter alone, and no answer, notice or error reads them.
# Everything else in them follows from the question, the options and the outcome: names, slugs, a receipt. No message of
# an error is recorded, because it may quote data, and no number from data.
#
# The SDK is imported by `start` alone.

_LONGEST_VALUE = 2_000
_OFF: AbstractContextManager[None] = nullcontext()


class Traces:
    """The traces of one process."""

    def __init__(self) -> None:
        """Start switched off; `start` switches traces on."""
        self._provider: TracerProvider | None = None
        self._tracer: Tracer | None = None

    def start(self, processor: SpanProcessor | None = None) -> None:
        """Start recording. `processor` receives spans that have ended; without one, they are sent in the background by OTLP over
        HTTP to the address in the environment (OTEL_EXPORTER_OTLP_ENDPOINT and so on). Raises traces_missing."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ModuleNotFoundError:
            raise refuse("traces_missing") from None
        # Attributes of this process from the environment, but not those that other detectors read, such as its command line.
        resource = Resource({"service.name": "dpsql"}).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._provider, self._tracer = provider, provider.get_tracer("dpsql")

    def stop(self) -> None:
        provider, self._provider, self._tracer = self._provider, None, None
        if provider is not None:
            provider.shutdown()

    def span(self, name: str) -> AbstractContextManager[None]:
        """Return a context that records a question, or a phase of the question that this thread answers."""
        return _OFF if self._tracer is None else self._recorded(self._tracer, name)

    @contextmanager
    def _recorded(self, tracer: Tracer, name: str) -> Iterator[None]:
        from opentelemetry.trace import StatusCode

        with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", getattr(error, "slug", type(error).__name__))
                span.set_status(StatusCode.ERROR)
                raise

    def note(self, **facts: str | bool | None) -> None:
        """Add facts to the question of this thread, as `dpsql.NAME`; those that are None are left out, and texts are cut at 2,000
        characters. A question that was refused before it had a span gets one."""
        if self._tracer is None:
            return
        from opentelemetry.trace import get_current_span

        span = get_current_span()
        if not span.get_span_context().is_valid:
            with self._tracer.start_as_current_span("question"):
                self.note(**facts)
            return
        for name, value in facts.items():
            if value is not None:
                span.set_attribute(f"dpsql.{name}", value[:_LONGEST_VALUE] if isinstance(value, str) else value)

    def carried(self, step: Callable[[], None]) -> Callable[[], None]:
        """Return `step` for another thread, such that its phases belong to the question of this thread."""
        if self._tracer is None:
            return step
        from opentelemetry.context import attach, get_current

        present = get_current()

        def carrying() -> None:
            attach(present)
            step()

        return carrying


TRACES = Traces()
