"""One server process: binds the socket, opens the book, and serves until the stop signal.

The event loop is uvloop where it is available: it costs less for each event of a stream.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

from bythebook.errors import ConfigurationError, Unavailable
from bythebook.telemetry import TelemetryListener, install_listeners

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from fastapi import FastAPI

    from bythebook.book import Book
    from bythebook.server.signals import StopSignal
    from bythebook.settings import Settings


CLOSE_SECONDS = 1.5
"""An upper listener for sending the last events and closing all resources after the grace period."""

GC_THRESHOLD = 10_000
"""How many new objects trigger a garbage collection."""

PRELOADED_MODULES = (
    "bythebook.server.app",
    "bythebook.server.http_protocol",
    "bythebook.conversations.store",
    "bythebook.access.api_keys",
)


@dataclass(frozen=True, slots=True)
class StartupReport:
    """What a server reports when it is ready."""

    generation: str
    chunks: int
    open: bool
    """Whether no key is required, because none was ever created."""


async def serve_book(
    settings: Settings,
    listener: socket.socket,
    *,
    stop: StopSignal,
    ready: Callable[[StartupReport], None],
    say: Callable[[str], None],
    metrics_folder: Path | None = None,
) -> None:
    """Serve on this socket until the stop signal, then finish active requests within the grace period.

    Several processes merge their metrics in `metrics_folder`.
    """
    from bythebook.book import Book

    with _short_switch_interval(), configure_telemetry(settings, metrics_folder=metrics_folder):
        importing = asyncio.create_task(asyncio.to_thread(_preload_modules))
        try:
            async with Book.open(settings, say=say) as book:
                await importing
                app, report = await _build_app(book, settings)

                def report_ready() -> None:
                    # Loaded modules and the index live as long as the process: freeze them, because scanning them
                    # delays requests. Collect rarely, because reference counting frees nearly all of a question.
                    gc.freeze()
                    gc.set_threshold(GC_THRESHOLD)
                    ready(report)

                await _run_server(app, listener, stop=stop, started=report_ready, grace=settings.shutdown_seconds)
        finally:
            await importing


@contextmanager
def configure_telemetry(settings: Settings, *, metrics_folder: Path | None = None) -> Iterator[None]:
    """Log, count and trace until the block ends, as the settings say."""
    from bythebook.telemetry.logging import LoggingListener, configure_logging
    from bythebook.telemetry.prometheus import PrometheusListener
    from bythebook.telemetry.redaction import register_secrets

    register_secrets(settings.secrets())
    content = settings.log_content
    with ExitStack() as stack:
        listeners: list[TelemetryListener] = [LoggingListener(content=content), PrometheusListener(metrics_folder)]
        trace_id: Callable[[], str] = str
        if settings.traces:
            from bythebook.telemetry.tracing import TracingListener, current_trace_id, open_tracer_provider

            listeners.append(TracingListener(stack.enter_context(open_tracer_provider())))
            trace_id = current_trace_id
        form, level = settings.log_format, settings.log_level
        stack.enter_context(configure_logging(sys.stderr, level=level, form=form, content=content, trace_id=trace_id))
        stack.enter_context(install_listeners(*listeners))
        yield


@contextmanager
def _short_switch_interval() -> Iterator[None]:
    """Switch threads every 0.5 ms instead of 5 ms, so that none waits long for the GIL.

    Model, index and libraries load in parallel at start-up. Later, threads embed and write while the event loop runs.
    """
    previous = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(previous)


def _preload_modules() -> None:
    for name in PRELOADED_MODULES:
        import_module(name)


async def _build_app(book: Book, settings: Settings) -> tuple[FastAPI, StartupReport]:
    """The app of this book and its start-up report. Raises NotFound before the first ingest."""
    from bythebook.server.app import create_app

    async with book.snapshot() as snapshot:
        found = StartupReport(snapshot.name, snapshot.chunk_count, open=await _is_open(book, settings))
    return create_app(book, settings), found


async def _is_open(book: Book, settings: Settings) -> bool:
    from bythebook.book import make_key_store

    try:
        return await make_key_store(settings, await book.database()).is_open()
    except Unavailable:
        return False  # without its database the server is alive, not ready, and accepts no caller


async def _run_server(
    app: FastAPI, listener: socket.socket, *, stop: StopSignal, started: Callable[[], None], grace: float
) -> None:
    from bythebook.server.http_protocol import HttpServer

    server = HttpServer(app, started=started)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stop.orphaned:
            server.stop_listening()
        if stop:
            await app.state.context.admission.close(grace=grace)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving


T = TypeVar("T")


def run_event_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a server's coroutine to its end, in uvloop where available."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ModuleNotFoundError:
        return None
    return new_event_loop


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket. Clients cannot connect until it listens. Port 0 means any free port."""
    family, kind, protocol, _, address = _resolve_address(host, port)
    listener = socket.socket(family, kind, protocol)
    try:
        # The connections of a server that has just stopped are in TIME_WAIT, which blocks the port otherwise.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as exc:
        listener.close()
        raise ConfigurationError(_explain_bind_error(exc, host, port)) from exc
    return listener


def format_url(listener: socket.socket) -> str:
    """The URL of the socket from this machine."""
    host, port = listener.getsockname()[:2]
    if ip_address(host).is_unspecified:  # listens on every address, but browsers need a concrete one
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolve_address(host: str, port: int) -> tuple[Any, ...]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as exc:
        raise ConfigurationError(f"there is no address {host!r}. {_HOST_ADVICE}") from exc
    # Prefer IPv4: most clients try it for "localhost", even if the resolver lists IPv6 first.
    return min(entries, key=lambda entry: entry[0] != socket.AF_INET)


_HOST_ADVICE = "Use --host 127.0.0.1 for this machine only, or 0.0.0.0 for all its addresses."


def _explain_bind_error(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use. Stop what listens there, or choose another port with --port."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be taken by this user. Choose one above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine does not have the address {host}. {_HOST_ADVICE}"
    return f"the server cannot listen on port {port} of {host}: {error.strerror}."
