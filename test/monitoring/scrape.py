"""Has promtool look at what a server shows Prometheus, after calls of each outcome.

    python scrape.py COPPICE PROMTOOL
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 600  # seconds, for a machine that is busy with other things
TOKEN = "token-of-the-scrape"


def main(coppice, promtool):
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "COPPICE_HOME": home, "COPPICE_TOKEN": TOKEN}
        server = subprocess.Popen(
            [coppice, "serve", "--addr", "127.0.0.1:0", "--backend", "runner", "--python", sys.executable, "--cwd", home, "--json"],
            env=env, stdout=subprocess.PIPE)
        try:
            told = b""
            while not told.strip().endswith(b"}"):
                part = server.stdout.readline()
                if not part:
                    raise SystemExit("the server ended: " + told.decode())
                told += part
            url = json.loads(told)["url"]

            def ask(method, path, body=None):
                request = urllib.request.Request(
                    url + path, method=method, data=body and json.dumps(body).encode(),
                    headers={"Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.read()

            for code in ("1 + 1", "1 / 0", "import os; os.kill(os.getpid(), 9)", "2 + 2"):
                x = json.loads(ask("POST", "/api/executions", {"session": "scraped", "cells": [{"code": code}]}))
                until = time.monotonic() + PATIENCE
                while json.loads(ask("GET", "/api/executions/" + x["id"]))["state"] != "ended":
                    if time.monotonic() > until:
                        raise SystemExit("this never ended: " + code)
                    time.sleep(0.1)
            text = ask("GET", "/metrics")
            for name in (b"coppice_results_total", b"coppice_restarts_total", b"coppice_start_duration_seconds_bucket", b"coppice_build_info"):
                if name not in text:
                    raise SystemExit(f"the server does not show {name.decode()}")
            subprocess.run([promtool, "check", "metrics"], input=text, check=True)
            samples = sum(not line.startswith(b"#") for line in text.splitlines())
            print(f"  SUCCESS: {samples} samples, {len(text)} bytes")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


main(*sys.argv[1:])
