"""A static web server: `python -m bench.static_site FOLDER LOG` prints its port.

It knows addresses without an ending, entity tags and `304 Not Modified`, and writes a line for each request.
"""

from __future__ import annotations

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TYPES = {".xml": "application/xml", ".gz": "application/gzip", ".json": "application/json", ".txt": "text/plain"}


def serve(folder: Path, log: Path) -> None:
    class Shown(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/")
            file = folder / path
            tried = (file, folder / f"{path}.html", file / "index.html")
            found = next((each for each in tried if each.is_file()), None)
            body = found.read_bytes() if found else b"<title>404</title>"
            etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
            fresh = found is not None and self.headers.get("If-None-Match") == etag
            self.send_response(304 if fresh else 200 if found else 404)
            self.send_header("ETag", etag)
            self.send_header("Content-Type", TYPES.get(found.suffix if found else "", "text/html; charset=utf-8"))
            if not fresh:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not fresh:
                self.wfile.write(body)

        def log_message(self, _format: str, *arguments: object) -> None:
            with log.open("a") as lines:
                lines.write(f"{arguments[0]} {arguments[1]}\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Shown)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]))
