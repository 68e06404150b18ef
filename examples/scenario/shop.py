#!/usr/bin/env python3
"""A small shop: log in with POST /login, then list and read items with the token.

Usage: shop.py [PORT]; with port 0 the system chooses one. Prints the URL once it listens.
"""
import http.server
import json
import secrets
import socketserver
import sys

USERS = {"ann": "tea", "bob": "coffee"}
ITEMS = {str(number): {"id": number, "name": f"item {number}"} for number in range(1, 6)}
TOKENS = {}


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def answer(self, status, value, headers=()):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        user = json.loads(body)
        if self.path != "/login" or USERS.get(user.get("user")) != user.get("password"):
            return self.answer(401, {"error": "wrong user or password"})
        token = secrets.token_hex(8)
        TOKENS[token] = user["user"]
        session = [("set-cookie", f"session={token}; Path=/; HttpOnly")]
        self.answer(200, {"token": token, "user": user["user"]}, session)

    def do_GET(self):
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        cookie = self.headers.get("cookie", "")
        if token not in TOKENS or f"session={token}" not in cookie:
            return self.answer(401, {"error": "log in first"})
        if self.path == "/items":
            items = list(ITEMS.values())
            return self.answer(200, {"user": TOKENS[token], "items": items})
        item = ITEMS.get(self.path.removeprefix("/items/"))
        self.answer(200 if item else 404, item or {"error": "no such item"})

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    server = Server(("127.0.0.1", port), Shop)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
