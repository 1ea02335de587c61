"""URLs of a site in normal form, and which of them belong to the site."""

import ipaddress
import posixpath
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

from bythebook.errors import InputError

MAX_URL_LENGTH = 2_000
"""A longer URL is not the URL of a page."""
MAX_PATH_DEPTH = 20
"""A path with more folders is a crawler trap."""

_PORTS = {"http": 80, "https": 443}
_UNESCAPED = "/-._~!$&'()*+,;=:@"
_UNESCAPED_QUERY = _UNESCAPED + "?"
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\<>\"^`{|}]")
_HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.(?!-)[a-z0-9_-]{1,63})*\.?")
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|mc_[ce]id|ref_src")
_DOTS = re.compile(r"(?:^|/)\.\.?(?:/|$)")


class RejectedUrl(InputError):
    """A URL that is not fetched: it is invalid, or its target is forbidden."""


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A parsed and normalized URL. It is parsed once, so that the checked host is the host that is connected to."""

    scheme: str
    host: str
    """In lower case and in ASCII; an IPv6 address without brackets."""
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
        """The request target: the path and the query."""
        return self.path + (f"?{self.query}" if self.query else "")

    @property
    def has_usual_port(self) -> bool:
        return self.port == _PORTS[self.scheme]

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(url: str, *, base: WebUrl | None = None) -> WebUrl:
    """Parse and normalize a URL. Raises RejectedUrl with the reason.

    The fragment and tracking parameters are removed: they do not identify another page.
    """
    url = url.strip()
    if len(url) > MAX_URL_LENGTH:
        raise RejectedUrl(f"the address has {len(url)} characters; at most {MAX_URL_LENGTH} are used")
    if _UNSAFE.search(url):
        url = quote(url, safe="%" + _UNESCAPED_QUERY + "#[]")
    try:
        parts = urlsplit(urljoin(str(base), url) if base else url)
        port = parts.port
    except ValueError as exc:
        raise RejectedUrl(f"{url!r} is not an address: {exc}") from exc
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise RejectedUrl(f"{url!r} is not an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise RejectedUrl("an address with a user name or password in it is not used; take them out")
    path = _normalize_path(parts.path)
    return WebUrl(
        scheme, _normalize_host(parts.hostname or "", url), port or _PORTS[scheme], path, _normalize_query(parts.query)
    )


def _normalize_host(name: str, url: str) -> str:
    if ":" in name:
        try:
            return str(ipaddress.IPv6Address(name))
        except ValueError as exc:
            raise RejectedUrl(f"{url!r} does not have a valid host name") from exc
    try:
        # DNS uses the ASCII form of an internationalized name.
        name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError as exc:
        raise RejectedUrl(f"{url!r} does not have a valid host name") from exc
    name = name.lower()
    if not _HOST_NAME.fullmatch(name) or len(name) > 253:
        raise RejectedUrl(f"{url!r} does not have a valid host name")
    return name.removesuffix(".")


def _normalize_path(path: str) -> str:
    """Resolve dot segments and normalize escapes: `%41` becomes `A`, `ä` becomes `%C3%A4`."""
    if _DOTS.search(path):
        resolved = posixpath.normpath("/" + path.lstrip("/"))
        path = resolved + "/" if path.endswith(("/", "/.", "/..")) and resolved != "/" else resolved
    path = "/".join(_escape(part, _UNESCAPED.replace("/", "")) for part in path.split("/"))
    return path if path.startswith("/") else "/" + path


def _normalize_query(query: str) -> str:
    kept = [part for part in query.split("&") if part and not _TRACKING.fullmatch(part.partition("=")[0])]
    return "&".join(_escape(part, _UNESCAPED_QUERY) for part in kept)


def _escape(text: str, safe: str) -> str:
    # An escaped reserved character, such as %2F, must stay escaped.
    parts = re.split(r"(%[0-9A-Fa-f]{2})", text)
    return "".join(_normalize_escape(part) if index % 2 else quote(part, safe=safe) for index, part in enumerate(parts))


def _normalize_escape(escape: str) -> str:
    char = unquote_to_bytes(escape)
    return char.decode("ascii") if re.fullmatch(rb"[A-Za-z0-9._~-]", char) else escape.upper()


@dataclass(frozen=True, slots=True)
class SiteScope:
    """The URLs that belong to the site: everything below the folder of its start URL."""

    origin: str
    folder: str

    @classmethod
    def of(cls, start: WebUrl) -> "SiteScope":
        """The scope of a start URL: the folder of a page, or the URL itself if it has no file suffix."""
        last = start.path.rpartition("/")[2]
        is_page = re.search(r"\.\w{1,5}$", last) is not None
        folder = start.path.rpartition("/")[0] if is_page else start.path.rstrip("/")
        return cls(start.origin, folder + "/")

    def contains(self, url: WebUrl) -> bool:
        inside = url.path.startswith(self.folder) or url.path + "/" == self.folder
        return url.origin == self.origin and inside


def is_same_site(one: WebUrl, other: WebUrl) -> bool:
    """Whether two origins are the same site: they differ only in a `www.` prefix or an upgrade from http to https.

    A downgrade from https to http is not the same site.
    """
    names = {one.host.removeprefix("www."), other.host.removeprefix("www.")}
    upgraded = one.scheme == other.scheme or (one.scheme, other.scheme) == ("http", "https")
    same_port = one.port == other.port or (one.has_usual_port and other.has_usual_port)
    return len(names) == 1 and upgraded and same_port


def is_crawler_trap(url: WebUrl) -> bool:
    """Whether a path is very deep or repeats itself. Calendars and wrong relative links produce such paths."""
    parts = [part for part in url.path.split("/") if part]
    return len(parts) > MAX_PATH_DEPTH or any(parts.count(part) > 3 for part in set(parts))


def change_origin(url: WebUrl, *, to: str) -> str:
    """The same path and query at another origin."""
    scheme, netloc = urlsplit(to)[:2]
    return urlunsplit((scheme, netloc, url.path, url.query, ""))
