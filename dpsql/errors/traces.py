"""Traces of a server for its owner, through OpenTelemetry (the extra `dpsql[otel]`). Off unless the owner starts them.

A trace is one question and the phases of its answer, each with its duration. How long the engine took depends on protected rows
(privacy.md 10), so traces go to the owner's exporter alone, and no answer, notice or error reads them. Everything else in them
follows from the question, the options and the outcome: names, slugs, a receipt. No message of an error is recorded, because it
may quote data, and no number from data.

The SDK is imported by `start` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from dpsql.errors.exceptions import refuse

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

_LONGEST = 2_000
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
        """Send the remaining spans, and stop recording."""
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
                span.set_attribute(f"dpsql.{name}", value[:_LONGEST] if isinstance(value, str) else value)

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
