"""Playing a reply on a connection, with whatever is to go wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bythebook.testing.completions import chunked, error, whole
from bythebook.testing.replies import Fault

if TYPE_CHECKING:
    from bythebook.testing.completions import Chunks
    from bythebook.testing.connection import Connection
    from bythebook.testing.replies import Quirk, Reply, Request

_DONE = b"data: [DONE]\n\n"
_STREAM_HEAD = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
_BROKEN = '{"choices": [{"index": 0, "delta": {"content": '
_REFUSALS: dict[Fault | None, tuple[int, str]] = {
    Fault.RATE_LIMIT: (429, "rate_limit_exceeded"),
    Fault.SERVER_ERROR: (500, ""),
}


async def play(connection: Connection, request: Request, reply: Reply, *, quirks: frozenset[Quirk]) -> None:
    """Send the reply, as far as it is to come."""
    status, code = _REFUSALS.get(reply.fault, (reply.status, reply.error_code))
    await connection.pause(reply.delay_first)
    if status >= 400:
        headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
        connection.send_json(error(status, code=code, message=reply.error_message), status=status, headers=headers)
    elif reply.fault_after == 0 and await _broken_off(connection, reply.fault):
        return
    elif request.streams:
        await _play_stream(connection, reply, chunked(request, reply, quirks))
    else:
        await _play_whole(connection, reply, whole(request, reply, quirks))


async def _broken_off(connection: Connection, fault: Fault | None) -> bool:
    """Whether the connection itself was the fault."""
    if fault is Fault.HANG:
        await connection.hang()
    elif fault is Fault.RESET:
        connection.reset()
    elif fault is Fault.HALF_CLOSE:
        await connection.half_close()
    return fault in (Fault.HANG, Fault.RESET, Fault.HALF_CLOSE)


async def _play_stream(connection: Connection, reply: Reply, chunks: Chunks) -> None:
    connection.send_head(200, _STREAM_HEAD)
    if reply.fault is Fault.NO_CHOICES:
        chunks = _without_choices(chunks)
    for chunk in chunks.opening:
        connection.send_chunk(_event(chunk))
    sound = reply.fault in (None, Fault.NO_CHOICES)
    for place, piece in enumerate(chunks.pieces if sound else chunks.pieces[: reply.fault_after]):
        await connection.pause(reply.delay_token if place else 0)
        connection.send_chunk(_event(piece))
    if sound:
        connection.send_chunk(b"".join([*map(_event, chunks.closing), _DONE]))
    elif await _broken_off(connection, reply.fault):
        return
    else:
        await _spoil_stream(connection, reply, chunks)
    connection.send_chunk(b"")


async def _spoil_stream(connection: Connection, reply: Reply, chunks: Chunks) -> None:
    if reply.fault is Fault.CUT_CHUNK:
        due = _event([*chunks.pieces, *chunks.closing][min(reply.fault_after, len(chunks.pieces))])
        connection.send_chunk(due[: len(due) // 2])
    elif reply.fault is Fault.BAD_JSON:
        connection.send_chunk(f"data: {_BROKEN}\n\n".encode())
    elif reply.fault is Fault.ERROR_IN_STREAM:
        connection.send_chunk(_event(error(500)))
    elif reply.fault is Fault.DRIP:
        while True:
            for piece in chunks.pieces or chunks.opening:
                await connection.pause(reply.drip)
                connection.send_chunk(_event(piece))


async def _play_whole(connection: Connection, reply: Reply, body: dict[str, Any]) -> None:
    await connection.pause(reply.delay_token * len(reply.text.split()))
    data = json.dumps(_spoiled(body, reply.fault)).encode()
    if reply.fault is Fault.CUT_CHUNK:
        data = data[: len(data) // 2]
    elif reply.fault is Fault.BAD_JSON:
        data = _BROKEN.encode()
    connection.send_head(200, {"content-type": "application/json", "content-length": str(len(data))})
    if reply.fault is Fault.DRIP:
        await _drip_blanks(connection, reply.drip)
    connection.send(data[: len(data) // 2])
    if not await _broken_off(connection, reply.fault):
        connection.send(data[len(data) // 2 :])


def _spoiled(body: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    if fault is Fault.NO_CHOICES:
        return body | {"choices": []}
    if fault is Fault.NO_FINISH_REASON:
        return body | {"choices": [choice | {"finish_reason": None} for choice in body["choices"]]}
    return error(500) if fault is Fault.ERROR_IN_STREAM else body


async def _drip_blanks(connection: Connection, seconds: float) -> None:
    """Blanks may stand before any JSON, so a client cannot know that nothing else will come."""
    while True:
        await connection.pause(seconds)
        connection.send(b" ")


def _without_choices(chunks: Chunks) -> Chunks:
    return type(chunks)(
        opening=tuple(chunk | {"choices": []} for chunk in chunks.opening),
        pieces=(),
        closing=tuple(chunk | {"choices": []} for chunk in chunks.closing),
    )


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
