"""A tool that misbehaves on command.

How it starts is the variable START: a word, and a number for some. What a run
does is the input "do", with the input "arg". Each start adds a line to
starts.log in the tool's folder.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

START, _, START_ARG = os.environ.get("START", "").partition(" ")
with open("starts.log", "a") as f:
    f.write("%d\n" % os.getpid())

began = time.monotonic()
lock = threading.Lock()
runs = {}  # run id -> event that is set by a cancel
streams = {}  # run id -> inputs
now, most, count = 0, 0, 0
hoard = []

if START == "gate":  # fails when it is let through
    while not os.path.exists("open"):
        time.sleep(0.01)
    raise RuntimeError("behind the gate")
if START == "raise":
    raise RuntimeError("no good start")
if START == "import":
    import a_package_that_is_not_there  # noqa: F401
if START == "exit":
    sys.exit(int(START_ARG or 0))
if START == "spawn":  # somebody that would outlive it
    import subprocess

    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if START == "session":  # somebody in a session of its own, and somebody whose parent has gone
    import subprocess

    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", orphan], check=True)
if START == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def schema():
    with open("tool.json") as f:
        s = json.load(f)
    if START == "drift":
        s["name"] = "another name"
        s["outputs"][0]["type"] = "text"
    return s


def health():
    if START == "slow" and time.monotonic() - began < float(START_ARG):
        return 200, {"ok": False}
    if START == "empty":
        return 200, {}
    if START == "sick":
        return 503, {"ok": True}
    if START == "tired" and count > 0:  # well until the first run
        return 200, {"ok": False}
    return 200, {"ok": True}


def form(kind, body):
    """A run's request that came as multipart/form-data."""
    import email.parser
    import email.policy

    head = b"Content-Type: " + kind.encode() + b"\r\n\r\n"
    fields, files = {}, {}
    for part in email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body).iter_parts():
        key, data = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if part.get_filename() is None:
            fields[key] = data.decode()
        else:
            files.setdefault(key, []).append([part.get_filename(), part.get_content_type(), data.decode("latin-1")])
    inputs = {"do": fields["do"], "arg": {"fields": {k: v for k, v in fields.items() if k[0] != "_" and k != "run_id"}, "files": files}}
    return {"run_id": fields["run_id"], "_pixie": json.loads(fields["_pixie"]), "inputs": inputs}


def act(run_id, do, arg, folder, cancelled):
    global count
    with lock:
        count += 1
    if do == "echo":
        return {"result": {"echo": arg}}
    if do == "sleep":  # can be cancelled
        cancelled.wait(arg)
        return {"result": {"cancelled": cancelled.is_set()}}
    if do == "sleep_hard":
        time.sleep(arg)
        return {"result": {}}
    if do == "burn":  # processor time
        end = time.process_time() + arg
        while time.process_time() < end:
            pass
        return {"result": {}}
    if do == "raise":
        raise RuntimeError("it broke")
    if do == "say":  # on standard error, and then as the failure
        print(arg[0], file=sys.stderr, flush=True)
        raise ValueError(arg[1])
    if do == "bad":
        return arg
    if do == "exit":
        print("last words", file=sys.stderr, flush=True)
        os._exit(arg)
    if do == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)
    if do == "memory":
        hoard.append(bytearray(arg << 20))
        return {"result": {}}
    if do == "memory_slow":  # touches what it takes, a little at a time
        for _ in range(arg):
            hoard.append(b"x" * (1 << 20))
            time.sleep(0.01)
        return {"result": {}}
    if do == "memory_die":  # an allocation that fails, and nobody who catches it
        try:
            bytearray(arg << 20)
        except MemoryError:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    if do == "memory_spawn":  # what each process takes is allowed, but not all of it
        import subprocess

        take = "x = b'x' * (%d << 20); import time; time.sleep(600)" % arg
        with open("spawned.log", "a") as f:
            for _ in range(2):
                f.write("%d\n" % subprocess.Popen([sys.executable, "-c", take]).pid)
        cancelled.wait(600)
        return {"result": {}}
    if do == "write":
        for i in range(arg["files"]):
            with open(os.path.join(folder, "f%d.bin" % i), "wb") as f:
                f.write(b"x" * arg["bytes"])
        cancelled.wait(arg.get("then", 0))
        return {"result": {"folder": folder}}
    if do == "stderr":
        print("x" * 1000 + "\n", end="", file=sys.stderr, flush=True)
        for i in range(arg):
            print("line %d" % i, file=sys.stderr)
        sys.stderr.flush()
        return {"result": {}}
    if do == "secret":
        print("the secret is " + os.environ.get(arg, ""), file=sys.stderr, flush=True)
        raise RuntimeError("said " + os.environ.get(arg, ""))
    if do == "env":
        return {"result": dict(os.environ)}
    if do == "most":
        cancelled.wait(arg)
        return {"result": {"most": most}}
    if do == "pid":
        return {"result": {"pid": os.getpid(), "run_id": run_id}}
    raise RuntimeError("what is %r?" % do)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # Whoever asked has gone, as a look at the health does that took too long.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        if url.path == "/healthz":
            self.answer(*health())
        elif url.path == "/schema":
            self.answer(200, schema())
        elif url.path == "/stream":
            self.stream(urllib.parse.parse_qs(url.query)["run_id"][0])
        elif url.path == "/autocomplete/cities":
            typed = urllib.parse.parse_qs(url.query).get("q", [""])[0]
            self.answer(200, [c for c in ("Berlin", "Bern", "Bonn") if c.startswith(typed)])
        elif url.path == "/autocomplete/broken":
            self.answer(200, b"Berlin")
        elif url.path.startswith("/files/") and not url.path.endswith("/none"):
            self.answer(200, [urllib.parse.unquote(part) for part in url.path.split("/")[2:]])
        else:
            self.answer(404, {"detail": "there is nothing here"})

    def do_POST(self):
        url = urllib.parse.urlparse(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path == "/cancel":
            run_id = urllib.parse.parse_qs(url.query)["run_id"][0]
            known = run_id in runs
            if START != "stubborn" and known:
                runs[run_id].set()
            self.answer(200, {"cancelled": known})
        elif url.path == "/run":
            kind = self.headers["Content-Type"]
            self.run(form(kind, body) if kind.startswith("multipart/") else json.loads(body))

    def run(self, request):
        global now, most
        run_id, inputs = request["run_id"], request["inputs"]
        assert self.headers["X-Pixie-Run-Id"] == run_id == request["_pixie"]["run_id"]
        do, arg = inputs.get("do"), inputs.get("arg")
        runs[run_id] = threading.Event()
        if do == "422":
            self.answer(422, {"detail": [{"loc": ["body", "inputs", "n"], "msg": "not a number", "type": "x"}]})
            return
        if do == "quiet":
            self.answer(500, {"detail": "something went wrong"})
            return
        if do.startswith("stream"):
            streams[run_id] = inputs
            self.answer(200, {"status": "started"})
            return
        with lock:
            now += 1
            most = max(most, now)
        try:
            value = act(run_id, do, arg, self.headers.get("X-Pixie-Artefacts-Dir"), runs[run_id])
            with lock:
                now -= 1
            self.answer(200, value)
        except BrokenPipeError:
            raise
        except BaseException as e:
            with lock:
                now -= 1
            traceback.print_exc()
            self.answer(500, {"detail": "%s: %s" % (type(e).__name__, e)})

    def stream(self, run_id):
        global now, most
        inputs = streams.pop(run_id)
        with lock:
            now += 1
            most = max(most, now)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.send(run_id, inputs["do"], inputs.get("arg"))
        except (BrokenPipeError, ConnectionResetError):
            with open("gone.log", "a") as f:
                f.write(run_id + "\n")
        finally:
            with lock:
                now -= 1

    def send(self, run_id, do, arg):
        def data(value, name=None):
            text = ("event: %s\n" % name if name else "") + "data: %s\n\n" % json.dumps(value)
            size = 7 if len(text) < 200 else max(600, len(text) // 3)  # lines are cut
            for piece in [text[i : i + size] for i in range(0, len(text), size)]:
                self.wfile.write(piece.encode())
                self.wfile.flush()

        if do == "stream":
            for i in range(arg):
                data({"output_key": "result", "value": "%d " % i, "done": i == arg - 1})
        elif do == "stream_chunks":
            for i in range(arg):
                data({"chunk": "%d " % i, "done": i == arg - 1})
        elif do == "stream_most":
            runs[run_id].wait(arg)
            data({"output_key": "result", "value": str(most), "done": True})
        elif do == "stream_error":
            data({"output_key": "result", "value": "some", "done": False})
            data({"message": "it broke on the way"}, "error")
        elif do == "stream_short":
            data({"output_key": "result", "value": "some", "done": False})
        elif do == "stream_slow":
            for i in range(100000):
                data({"output_key": "result", "value": "%d " % i, "done": False})
                if runs[run_id].wait(0.02):
                    with open("cancelled.log", "a") as f:
                        f.write(run_id + "\n")
                    data({"output_key": "result", "value": "", "done": True})
                    return
        elif do == "stream_flood":
            n, size = arg
            for i in range(n):
                data({"output_key": "result", "value": "x" * size, "done": i == n - 1})
        elif do == "stream_exit":
            data({"output_key": "result", "value": "some", "done": False})
            os._exit(arg)


if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--port") + 1])
    if START == "elsewhere":
        port = 0
    if START == "late":
        time.sleep(float(START_ARG))
    server = Server(("127.0.0.1", port), Handler)
    server.serve_forever()
