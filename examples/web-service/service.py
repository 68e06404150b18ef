"""A small web service with two routes. Its argument is the extra work of /search."""
import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write for each response

    def do_GET(self):
        digest = b""
        if self.path.startswith("/search"):
            for _ in range(ROUNDS):
                digest = hashlib.sha256(digest + b"stillwell").digest()
        body = b'{"path": "%s"}\n' % self.path.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", 9130), Handler).serve_forever()
