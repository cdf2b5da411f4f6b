"""@NAME@: change run(), and tool.json with it.

It answers GET /healthz, GET /schema, POST /run and POST /cancel on the loopback
interface, and only requests with the token that it was started with.
"""

import argparse
import hmac
import http.server
import json
import os
import pathlib
import sys
import threading
import traceback

SCHEMA = json.loads((pathlib.Path(__file__).parent / "tool.json").read_text(encoding="utf-8"))
TOKEN = os.environ.get("COPPICE_TOOL_TOKEN", "")


class InputError(Exception):
    """Inputs that the tool cannot work with."""


def run(inputs):
    text = inputs.get("text")
    if not isinstance(text, str):
        raise InputError("text: expected a text")
    return {"result": text.upper()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def allowed(self):
        given = self.headers.get("X-Coppice-Token", "")
        if TOKEN and not hmac.compare_digest(given, TOKEN):
            self.close_connection = True
            self.answer(403, {"detail": "the token is missing or wrong"})
            return False
        return True

    def do_GET(self):
        if not self.allowed():
            return
        if self.path == "/healthz":
            self.answer(200, {"ok": True})
        elif self.path == "/schema":
            self.answer(200, SCHEMA)
        else:
            self.answer(404, {"detail": "there is nothing here"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.allowed():
            return
        if self.path.startswith("/cancel"):
            self.answer(200, {"cancelled": False})  # a run takes milliseconds
        elif self.path == "/run":
            self.run(body)
        else:
            self.answer(404, {"detail": "there is nothing here"})

    def run(self, body):
        try:
            request = json.loads(body)
            self.answer(200, run(request["inputs"]))
        except InputError as e:
            self.answer(422, {"detail": str(e)})
        except Exception as e:
            traceback.print_exc()
            self.answer(500, {"detail": "%s: %s" % (type(e).__name__, e)})

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # connections that wait to be accepted: many runs may begin at once


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    # Each connection has a thread, and the stacks of all of them count in
    # max_memory_mb: 8 MiB each, as many systems have it, would soon be too much.
    threading.stack_size(1 << 20)
    server = Server(("127.0.0.1", parser.parse_args().port), Handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
