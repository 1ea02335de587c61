"""What every route needs: the book, its settings, the desk, and who is asking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from bythebook.assemble import Book
from bythebook.settings import Settings
from bythebook.web.desk import Desk


@dataclass(frozen=True, slots=True)
class Door:
    """What was opened for this app."""

    book: Book
    settings: Settings
    desk: Desk


def _door(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


def _user_id(request: Request) -> str:
    user_id: str = request.scope["state"].get("user_id", "")
    return user_id


TheDoor = Annotated[Door, Depends(_door)]
UserId = Annotated[str, Depends(_user_id)]
