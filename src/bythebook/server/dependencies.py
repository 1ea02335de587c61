"""What every route needs: the book, its settings, the desk, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from bythebook.access import Caller
from bythebook.book import Book
from bythebook.server.admission import Desk
from bythebook.server.auth import Gate
from bythebook.settings import Settings


@dataclass(frozen=True, slots=True)
class Door:
    """What was opened for this app."""

    book: Book
    settings: Settings
    desk: Desk
    gate: Gate


# Asynchronous, though they wait for nothing: a plain function is called in a thread, and every request waits for that.
async def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


async def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def _user_id(request: Request) -> str:
    return (await _caller(request)).user_id


TheDoor = Annotated[Door, Depends(_door)]
TheCaller = Annotated[Caller, Depends(_caller)]
UserId = Annotated[str, Depends(_user_id)]
