"""Locations: the addresses of a site, written in one way, and which of them belong to it."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

from bythebook.errors import InputError

LONGEST = 2_000
"""Characters beyond which an address was made by a machine for machines."""
DEEPEST = 20
"""Folders beyond which a path leads round in circles."""

_PORTS = {"http": 80, "https": 443}
_UNESCAPED = "/-._~!$&'()*+,;=:@"
_UNESCAPED_QUERY = _UNESCAPED + "?"
_UNSEEN = re.compile(r"[\x00-\x20\x7f\\<>\"^`{|}]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*\.?")
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|ref_src")
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")


class Refused(InputError):
    """An address that is not fetched, for what it is or where it leads."""


@dataclass(frozen=True, slots=True)
class Location:
    """An address of the web, taken apart once, so that what is checked is what is connected to."""

    scheme: str
    host: str
    """In lower case and in ASCII; an IPv6 address without its brackets."""
    port: int
    path: str
    query: str = ""

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def target(self) -> str:
        """What is asked of the server: the path and the query."""
        return self.path + (f"?{self.query}" if self.query else "")

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS[self.scheme]

    def __str__(self) -> str:
        return self.origin + self.target


def locate(url: str, *, base: Location | None = None) -> Location:
    """The location an address names, written in the one way we write it. Raises Refused, saying what is wrong.

    The fragment is left out, and so is what only tracks readers: neither makes another page.
    """
    url = url.strip()
    if len(url) > LONGEST:
        raise Refused(f"the address has {len(url)} characters; at most {LONGEST} are used")
    if _UNSEEN.search(url):
        url = quote(url, safe="%" + _UNESCAPED_QUERY + "#[]")
    try:
        parts = urlsplit(urljoin(str(base), url) if base else url)
        port = parts.port
    except ValueError as exc:
        raise Refused(f"{url!r} is not an address: {exc}") from exc
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise Refused(f"{url!r} is not an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise Refused("an address with a user name or password in it is not used; take them out")
    path = _path(parts.path)
    return Location(scheme, _host(parts.hostname or "", url), port or _PORTS[scheme], path, _query(parts.query))


def _host(name: str, url: str) -> str:
    if ":" in name:
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError as exc:
            raise Refused(f"{url!r} does not name a host") from exc
    try:
        # The form names are looked up in, whatever alphabet they are written in.
        name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as exc:
        raise Refused(f"{url!r} does not name a host") from exc
    name = name.lower()
    if not _NAME.fullmatch(name) or len(name) > 253:
        raise Refused(f"{url!r} does not name a host")
    return name.removesuffix(".")


def _path(path: str) -> str:
    """The path with dots resolved and characters escaped one way only: `%41` is `A`, `ä` is `%C3%A4`."""
    if _DOTS.search(path):
        resolved = posixpath.normpath("/" + path.lstrip("/"))
        path = resolved + "/" if path.endswith(("/", "/.", "/..")) and resolved != "/" else resolved
    path = "/".join(_escaped(part, _UNESCAPED.replace("/", "")) for part in path.split("/"))
    return path if path.startswith("/") else "/" + path


def _query(query: str) -> str:
    kept = [part for part in query.split("&") if part and not _TRACKING.fullmatch(part.partition("=")[0])]
    return "&".join(_escaped(part, _UNESCAPED_QUERY) for part in kept)


def _escaped(text: str, safe: str) -> str:
    # What is escaped and stands for a character with a meaning, such as %2F, must stay escaped.
    pieces = re.split(r"(%[0-9A-Fa-f]{2})", text)
    return "".join(_one_way(piece) if index % 2 else quote(piece, safe=safe) for index, piece in enumerate(pieces))


def _one_way(escape: str) -> str:
    char = unquote_to_bytes(escape)
    return char.decode("ascii") if re.fullmatch(rb"[A-Za-z0-9._~-]", char) else escape.upper()


@dataclass(frozen=True, slots=True)
class Scope:
    """What belongs to the site: everything below the folder of the address it was given by."""

    origin: str
    folder: str

    @classmethod
    def of(cls, start: Location) -> Scope:
        """A start that looks like a page stands for the folder it is in; one that does not is a folder itself."""
        last = start.path.rpartition("/")[2]
        is_page = re.search(r"\.\w{1,5}$", last) is not None
        folder = start.path.rpartition("/")[0] if is_page else start.path.rstrip("/")
        return cls(start.origin, folder + "/")

    def holds(self, location: Location) -> bool:
        inside = location.path.startswith(self.folder) or location.path + "/" == self.folder
        return location.origin == self.origin and inside

    def moved_to(self, origin: str) -> Scope:
        return Scope(origin, self.folder)


def is_same_site(one: Location, other: Location) -> bool:
    """Whether a redirect from one host to the other is a matter of writing: `www.` in front, or https instead of http.

    Never from https back to http.
    """
    names = {one.host.removeprefix("www."), other.host.removeprefix("www.")}
    upgraded = one.scheme == other.scheme or (one.scheme, other.scheme) == ("http", "https")
    same_port = one.port == other.port or (one.has_usual_port and other.has_usual_port)
    return len(names) == 1 and upgraded and same_port


def leads_in_circles(location: Location) -> bool:
    """Whether a path repeats itself or never ends, as calendars and wrong relative links make them."""
    parts = [part for part in location.path.split("/") if part]
    return len(parts) > DEEPEST or any(parts.count(part) > 3 for part in set(parts))


def moved(location: Location, *, to: str) -> str:
    """The same path and query below another origin."""
    scheme, netloc = urlsplit(to)[:2]
    return urlunsplit((scheme, netloc, location.path, location.query, ""))
