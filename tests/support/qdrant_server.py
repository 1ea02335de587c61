"""A server with the part of Qdrant's REST API that we use, over a real socket and with the Qdrant Edge engine.

Each collection is a shard of Qdrant Edge, so that scores, filters and fusion are the engine's. What a Qdrant server
does around its engine is done here: collections, aliases, keys, statuses. Faults can be ordered.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import qdrant_edge as edge

from bythebook.index.qdrant.client import QdrantAddress, QdrantServer, open_server

LIVE = os.environ.get("LIVE_QDRANT_URL", "")
"""The address of a real server, if QDRANT_URL is set."""

Json = dict[str, Any]

_DISTANCES = {"Cosine": edge.Distance.Cosine, "Dot": edge.Distance.Dot, "Euclid": edge.Distance.Euclid}


class Refused(Exception):
    """A request that the server rejects."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


@dataclass
class Fault:
    """A fault instead of a response: a status with headers, a hang, or a cut connection."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    hang: bool = False
    reset: bool = False


@dataclass
class Collection:
    """One collection: its parameters and its points."""

    config: Json
    shard: Any
    """The engine's shard, or `Payloads` for a collection without vectors, which the engine does not support."""
    schema: dict[str, Any] = field(default_factory=dict)

    @property
    def unnamed(self) -> bool:
        return "size" in self.config.get("vectors", {})

    def points(self, given: list[Json]) -> list[edge.Point]:
        return [edge.Point(point["id"], self._vectors(point["vector"]), point.get("payload")) for point in given]

    def _vectors(self, given: Any) -> Any:
        if isinstance(given, list):
            self._check(given, self.config["vectors"])
            return given
        for name, vector in given.items():
            if isinstance(vector, list):
                self._check(vector, self.config["vectors"][name])
        return {name: _vector(vector) for name, vector in given.items()}

    def _check(self, vector: list[float], params: Json) -> None:
        if len(vector) != params["size"]:
            raise Refused(
                400, f"Wrong input: Vector dimension error: expected dim: {params['size']}, got {len(vector)}"
            )

    def using(self, name: str | None) -> str | None:
        if name is None and not self.unnamed:
            raise Refused(400, "Wrong input: Collection requires specified vector name in the request")
        return name

    def query(self, query: Any, using: str | None) -> Any:
        query = query["nearest"] if isinstance(query, dict) and "nearest" in query else query
        if isinstance(query, list):
            params = self.config["vectors"]
            self._check(query, params if self.unnamed else params[using])
        return edge.Query.Nearest(_vector(query), using=self.using(using))


def _vector(given: Any) -> Any:
    return edge.SparseVector(given["indices"], given["values"]) if isinstance(given, dict) else given


def _filter(given: Json | None) -> edge.Filter | None:
    return edge.Filter(must=[_condition(each) for each in given["must"]]) if given else None


def _condition(given: Json) -> Any:
    if "has_id" in given:
        return edge.HasIdCondition(set(given["has_id"]))
    match = given["match"]
    kind = edge.MatchPrefix(match["prefix"]) if "prefix" in match else edge.MatchValue(match["value"])
    return edge.FieldCondition(key=given["key"], match=kind)


def _shown(point: Any, *, score: bool = False) -> Json:
    vector = getattr(point, "vector", None)
    shown: Json = {"id": _id(point.id), "payload": point.payload, "vector": _shown_vector(vector)}
    return shown | {"score": point.score, "version": 0} if score else shown


def _id(given: Any) -> Any:
    return given if isinstance(given, int) else str(given)


def _shown_vector(vector: Any) -> Any:
    if isinstance(vector, dict):
        return {name: _shown_vector(inner) for name, inner in vector.items()}
    if isinstance(vector, edge.SparseVector):
        return {"indices": list(vector.indices), "values": list(vector.values)}
    return vector


class Payloads:
    """Points without vectors."""

    def __init__(self) -> None:
        self.points: dict[int, Json] = {}

    def count(self, _request: edge.CountRequest) -> int:
        return len(self.points)

    def answer(self, method: str, path: list[str], body: Json) -> Any:
        match [method, *path]:
            case ["PUT", "points"]:
                self.points |= {point["id"]: point["payload"] for point in body["points"]}
                return _DONE
            case ["POST", "points", "payload"]:
                for number in body["points"]:
                    self.points[number] |= body["payload"]
                return _DONE
            case ["POST", "points"]:
                found = [number for number in body["ids"] if number in self.points]
                return [{"id": number, "payload": self.points[number]} for number in found]
        raise Refused(404, "")


class Engine:
    """The collections and aliases of a server."""

    def __init__(self, folder: Path, version: str) -> None:
        self.version = version
        self.collections: dict[str, Collection] = {}
        self.aliases: dict[str, str] = {}
        self._folder = folder
        self._made = 0
        self._lock = threading.RLock()

    def answer(self, method: str, path: list[str], body: Json) -> Any:  # noqa: PLR0911 - a table
        """The `result` of a request."""
        with self._lock:
            match [method, *path]:
                case ["GET", ""]:
                    return None
                case ["GET", "collections"]:
                    return {"collections": [{"name": name} for name in self.collections]}
                case ["GET", "aliases"]:
                    listed = [{"alias_name": a, "collection_name": c} for a, c in self.aliases.items()]
                    return {"aliases": listed}
                case ["POST", "collections", "aliases"]:
                    return self._switch(body["actions"])
                case ["PUT", "collections", name]:
                    return self._create(name, body)
                case ["DELETE", "collections", name]:
                    return self._delete(name)
                case ["GET", "collections", name]:
                    return self._described(self._found(name))
                case [_, "collections", name, *rest]:
                    return self._of(self._found(name), method, rest, body)
        raise Refused(404, "")

    def _found(self, name: str) -> Collection:
        try:
            return self.collections[self.aliases.get(name, name)]
        except KeyError:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!") from None

    def _create(self, name: str, config: Json) -> bool:
        if name in self.collections or name in self.aliases:
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        self._made += 1
        vectors = config.get("vectors") or {}
        params = {"": vectors} if "size" in vectors else vectors
        made = {
            key: edge.EdgeVectorParams(size=given["size"], distance=_DISTANCES[given["distance"]])
            for key, given in params.items()
        }
        sparse = {
            key: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if given.get("modifier") == "idf" else None)
            for key, given in (config.get("sparse_vectors") or {}).items()
        }
        if not made and not sparse:
            self.collections[name] = Collection(config, Payloads())
            return True
        shard = edge.EdgeShard.create(
            str(self._folder / f"c{self._made}"),
            edge.EdgeConfig(vectors=made or None, sparse_vectors=sparse, wal_enabled=False),
        )
        self.collections[name] = Collection(config, shard)
        return True

    def _delete(self, name: str) -> bool:
        gone = self.collections.pop(name, None)
        self.aliases = {alias: target for alias, target in self.aliases.items() if target != name}
        return gone is not None

    def _switch(self, actions: list[Json]) -> bool:
        after = dict(self.aliases)
        for action in actions:
            if "delete_alias" in action:
                after.pop(action["delete_alias"]["alias_name"], None)
            else:
                made = action["create_alias"]
                if made["collection_name"] not in self.collections:
                    raise Refused(404, f"Not found: Collection `{made['collection_name']}` doesn't exist!")
                if made["alias_name"] in self.collections:
                    raise Refused(409, f"Wrong input: Collection `{made['alias_name']}` already exists!")
                after[made["alias_name"]] = made["collection_name"]
        self.aliases = after
        return True

    def _described(self, found: Collection) -> Json:
        config = found.config
        params = {
            "vectors": config.get("vectors", {}),
            "sparse_vectors": config.get("sparse_vectors"),
            "shard_number": config.get("shard_number") or 1,
            "replication_factor": config.get("replication_factor") or 1,
        }
        hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
        optimizers = {
            "deleted_threshold": 0.2,
            "vacuum_min_vector_number": 1000,
            "default_segment_number": 0,
            "flush_interval_sec": 5,
        }
        return {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "points_count": found.shard.count(edge.CountRequest()),
            "config": {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizers},
            "payload_schema": found.schema,
        }

    def _of(self, found: Collection, method: str, path: list[str], body: Json) -> Any:  # noqa: PLR0911 - a table
        shard = found.shard
        if isinstance(shard, Payloads):
            return shard.answer(method, path, body)
        match [method, *path]:
            case ["PUT", "index"]:
                schema = body["field_schema"]
                found.schema[body["field_name"]] = {"data_type": schema["type"], "params": schema, "points": 0}
                index = edge.KeywordIndexParams(prefix=schema.get("prefix"))
                shard.update(edge.UpdateOperation.create_field_index(body["field_name"], index))
                return _DONE
            case ["PUT", "points"]:
                shard.update(edge.UpdateOperation.upsert_points(found.points(body["points"])))
                return _DONE
            case ["POST", "points", "delete"]:
                shard.update(edge.UpdateOperation.delete_points(body["points"]))
                return _DONE
            case ["POST", "points", "payload"]:
                shard.update(edge.UpdateOperation.set_payload(body["points"], body["payload"]))
                return _DONE
            case ["POST", "points"]:
                wants = {"with_payload": body.get("with_payload"), "with_vector": body.get("with_vector")}
                return [_shown(record) for record in shard.retrieve(body["ids"], **wants)]
            case ["POST", "points", "count"]:
                return {"count": shard.count(edge.CountRequest(filter=_filter(body.get("filter"))))}
            case ["POST", "points", "scroll"]:
                return _scrolled(shard, body)
            case ["POST", "points", "query"]:
                return {"points": [_shown(point, score=True) for point in _queried(found, body)]}
        raise Refused(404, "")


_DONE = {"operation_id": 0, "status": "completed"}


def _scrolled(shard: edge.EdgeShard, body: Json) -> Json:
    request = edge.ScrollRequest(
        offset=body.get("offset"),
        limit=body.get("limit"),
        filter=_filter(body.get("filter")),
        with_payload=body.get("with_payload"),
        with_vector=body.get("with_vector"),
    )
    records, following = shard.scroll(request)
    return {"points": [_shown(record) for record in records], "next_page_offset": following and _id(following)}


def _queried(found: Collection, body: Json) -> Any:
    if body.get("prefetch"):
        sides = [
            edge.Prefetch(
                limit=side["limit"],
                query=found.query(side["query"], side.get("using")),
                filter=_filter(side.get("filter")),
            )
            for side in body["prefetch"]
        ]
        if body["query"] != {"fusion": "dbsf"}:
            raise Refused(400, f"this double fuses by dbsf only, not by {body['query']}")
        fusion: Any = edge.Fusion.Dbsf()
        return found.shard.query(edge.QueryRequest(limit=body["limit"], prefetches=sides, query=fusion))
    request = edge.SearchRequest(
        limit=body["limit"],
        query=found.query(body["query"], body.get("using")),
        filter=_filter(body.get("filter")),
        with_payload=body.get("with_payload"),
    )
    return found.shard.search(request)


@dataclass
class QdrantHere:
    """A running server, its requests and its faults."""

    url: str
    engine: Engine
    api_key: str
    requests: list[str] = field(default_factory=list)
    """The method and path of each request."""
    bodies: list[bytes] = field(default_factory=list)
    """The body of each request."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of the next requests, one each."""
    always: Fault | None = None
    """The fault of every request."""
    judge: Callable[[str], Fault | None] = lambda _request: None
    """The fault of a request by its method and path, if there is no other."""
    broken: list[str] = field(default_factory=list)
    """Unexpected errors inside the server."""
    released: threading.Event = field(default_factory=threading.Event)

    def fault(self, request: str) -> Fault | None:
        return self.faults.pop(0) if self.faults else self.always or self.judge(request)


@asynccontextmanager
async def live_server() -> AsyncIterator[QdrantServer]:
    """The server at QDRANT_URL. Without one, the test is skipped."""
    if not LIVE:
        pytest.skip("no Qdrant server: set QDRANT_URL, and QDRANT_API_KEY where it needs one")
    address = QdrantAddress(LIVE, os.environ.get("LIVE_QDRANT_API_KEY", ""))
    async with open_server(address, reading_seconds=60.0) as server:
        yield server


@contextmanager
def running_qdrant(*, api_key: str = "", version: str = "1.19.0") -> Iterator[QdrantHere]:
    """An empty server on a free local port."""
    memory = Path("/dev/shm")  # noqa: S108 - nothing here must outlive the process, and a disk is slow
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        engine = Engine(Path(folder), version)

        class Handler(_Handler):
            here: QdrantHere

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        here = Handler.here = QdrantHere(f"http://127.0.0.1:{server.server_address[1]}", engine, api_key)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield here
        finally:
            here.released.set()
            server.shutdown()
            server.server_close()
            thread.join()
        assert not here.broken, here.broken


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    here: QdrantHere

    def _handle(self) -> None:
        here, path = self.here, urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        here.requests.append(f"{self.command} {path}")
        here.bodies.append(body)
        if fault := here.fault(here.requests[-1]):
            self._fail(fault)
            return
        if here.api_key and self.headers.get("api-key") != here.api_key:
            self._send(401, b"Invalid API key or JWT", {"content-type": "text/plain"})
            return
        try:
            result = here.engine.answer(
                self.command, [unquote(part) for part in path[1:].split("/")], json.loads(body or b"{}")
            )
        except Refused as refused:
            self._send(refused.status, _json({"status": {"error": str(refused)}, "time": 0.0}), {})
            return
        except Exception as broken:
            here.broken.append(repr(broken))
            self._send(500, _json({"status": {"error": f"Service internal error: {broken!r}"}, "time": 0.0}), {})
            return
        answer = {"result": result, "status": "ok", "time": 0.0}
        if path == "/":
            answer = {"title": "qdrant - vector search engine", "version": here.engine.version, "commit": ""}
        self._send(200, _json(answer), {})

    do_GET = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - as the standard library names them

    def _fail(self, fault: Fault) -> None:
        if fault.hang:
            self.here.released.wait()
        if fault.hang or fault.reset:
            self.close_connection = True
            self.connection.close()
            return
        self._send(fault.status, fault.body, fault.headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"content-type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
