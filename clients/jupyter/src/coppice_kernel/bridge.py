"""What stands between the sockets of a kernel and the WebSocket of its session.

    client --ZeroMQ, signed--> Bridge --WebSocket, token--> coppice serve --> session

Requests keep their headers, so that what comes back has the parents that clients look for.
A reply goes to whoever made the request, a question of input() to whose code asks it, and
the rest to all. The bridge ends when its session does, when its client asks for the end, on
SIGTERM, and when the process that started it is gone; it takes the session with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any, Dict, List, Optional

import zmq
import zmq.asyncio
from jupyter_client.session import Session
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from . import frames
from .server import Server, ServerError, choose

# The sockets, and the channels that they are for the server.
_ROUTERS = ("shell", "control", "stdin")

# How large a message may be, in bytes.
_MOST = 256 << 20
# How many requests are remembered that have no reply.
_WAITING = 4096
# How often the parent is looked at, in seconds.
_LOOK = 1.0


class Bridge:
    """One kernel. Its methods run in the event loop."""

    def __init__(self, connection: Dict[str, Any], server: Server, ident: str) -> None:
        self._connection, self._server, self._ident = connection, server, ident
        self._session = Session(key=connection.get("key", "").encode(), signature_scheme=connection.get("signature_scheme") or "hmac-sha256")
        self._context = zmq.asyncio.Context()
        self._sockets: Dict[str, Any] = {}
        self._asked: Dict[str, List[bytes]] = {}  # who made a request, by its id
        self._ws: Optional[WebSocketClientConnection] = None
        self._over = asyncio.Event()
        self.failed = False  # the session or the server has gone

    async def run(self) -> None:
        """Serves until the end."""
        for name, kind in (("shell", zmq.ROUTER), ("control", zmq.ROUTER), ("stdin", zmq.ROUTER), ("iopub", zmq.PUB), ("hb", zmq.ROUTER)):
            self._bind(name, kind)
        ws = f"ws{self._server.url[len('http'):]}/api/kernels/{self._ident}/channels?session_id={self._session.session}"
        try:
            self._ws = await websocket_connect(
                HTTPRequest(ws, headers={"Authorization": f"token {self._server.token}"}, request_timeout=60),
                subprotocols=[frames.PROTOCOL], max_message_size=_MOST,
            )
        except (OSError, HTTPClientError) as err:
            raise ServerError(f"connect to the session: {err}") from None
        tasks = [asyncio.ensure_future(work) for work in (self._beat(), self._receive(), self._follow_parent(), *(self._take(name) for name in _ROUTERS))]
        over = asyncio.ensure_future(self._over.wait())
        try:
            done, _ = await asyncio.wait([over, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # raises what ended it
        finally:
            for task in (over, *tasks):
                task.cancel()
            await asyncio.gather(over, *tasks, return_exceptions=True)
            self._ws.close()
            for socket in self._sockets.values():
                socket.close(linger=1000)
            self._context.term()

    def end(self) -> None:
        """Ends run."""
        self._over.set()

    def interrupt(self) -> None:
        """Interrupts what runs."""
        asyncio.get_running_loop().run_in_executor(None, self._server.request, "POST", f"kernels/{self._ident}/interrupt")

    def _bind(self, name: str, kind: int) -> None:
        socket = self._context.socket(kind)
        socket.linger = 1000
        if kind == zmq.ROUTER:
            socket.router_handover = 1
        socket.sndhwm = 0  # nothing is lost where a client is slow
        if self._connection.get("curve_secretkey"):
            socket.curve_server = 1
            socket.curve_secretkey = self._connection["curve_secretkey"].encode()
            socket.curve_publickey = self._connection["curve_publickey"].encode()
        ip, port = self._connection["ip"], self._connection[f"{name}_port"]
        socket.bind(f"tcp://{ip}:{port}" if self._connection.get("transport", "tcp") == "tcp" else f"ipc://{ip}-{port}")
        self._sockets[name] = socket

    async def _beat(self) -> None:
        """Says that this process lives."""
        while True:
            await self._sockets["hb"].send_multipart(await self._sockets["hb"].recv_multipart())

    async def _take(self, name: str) -> None:
        """Passes on what clients send."""
        socket = self._sockets[name]
        while True:
            idents, parts = self._session.feed_identities(await socket.recv_multipart())
            try:
                request = self._session.deserialize(parts)  # which looks at the signature
            except (ValueError, TypeError, KeyError) as err:
                print(f"coppice_kernel: a message was refused: {err}", file=sys.stderr)
                continue
            if request["msg_type"] == "shutdown_request" and name != "stdin":
                await self._shutdown(name, idents, request)
                return
            if name != "stdin":
                self._asked[request["msg_id"]] = idents
                while len(self._asked) > _WAITING:
                    del self._asked[next(iter(self._asked))]
            assert self._ws is not None
            await self._ws.write_message(frames.encode(name, parts[1:]), binary=True)

    async def _shutdown(self, name: str, idents: List[bytes], request: Dict[str, Any]) -> None:
        """Ends the kernel. A restart is another process of this program, with a session of its own."""
        content = {"status": "ok", "restart": bool(request["content"].get("restart"))}
        reply = self._session.msg("shutdown_reply", content, parent=request)
        packed = self._session.serialize(reply)
        await self._sockets[name].send_multipart([*idents, *packed])
        await self._sockets["iopub"].send_multipart([b"shutdown", *packed])
        self.end()

    async def _receive(self) -> None:
        """Passes on what the session sends."""
        assert self._ws is not None
        while True:
            frame = await self._ws.read_message()
            if frame is None:
                self.failed = True
                self.end()
                return
            if not isinstance(frame, bytes):
                continue
            channel, parts = frames.decode(frame)
            header, parent = json.loads(parts[0]), json.loads(parts[1])
            if channel == "iopub":
                to = [f"kernel.{self._ident}.{header['msg_type']}".encode()]
            elif channel == "stdin":
                to = self._asked.get(parent.get("msg_id"), [])
            else:
                to = self._asked.pop(parent.get("msg_id"), [])
            if to and channel in self._sockets:
                await self._sockets[channel].send_multipart([*to, b"<IDS|MSG>", self._session.sign(parts[:4]), *parts])

    async def _follow_parent(self) -> None:
        """Ends the kernel with the process that started it, unless it shall outlive that one."""
        parent = os.getppid()
        while "JPY_PARENT_PID" not in os.environ or os.getppid() == parent:
            await asyncio.sleep(_LOOK)
        self.end()


async def _serve(connection: Dict[str, Any], server: Server, ident: str) -> bool:
    bridge = Bridge(connection, server, ident)
    loop = asyncio.get_running_loop()
    for number, handle in ((signal.SIGTERM, bridge.end), (signal.SIGINT, bridge.interrupt)):
        loop.add_signal_handler(number, handle)
    await bridge.run()
    return bridge.failed


def main(args: List[str]) -> int:
    """Runs a kernel and returns the exit code. Options are left out, and what follows the
    connection file: clients give those of ipykernel to every kernel that has its name,
    python3, and jupyter run the names of what it is to run."""
    args = [arg for arg in args if not arg.startswith("--")]
    if not args:
        print("usage: python -m coppice_kernel CONNECTION_FILE", file=sys.stderr)
        return 2
    with open(args[0]) as f:
        connection = json.load(f)
    server: Optional[Server] = None
    ident = ""
    try:
        server = choose(os.environ, os.getcwd())
        ident = server.start_kernel(os.getcwd())
        return 1 if asyncio.run(_serve(connection, server, ident)) else 0
    except ServerError as err:
        print(f"coppice_kernel: {err}", file=sys.stderr)
        return 1
    finally:
        if server is not None:
            if ident:
                server.end_kernel(ident)
            server.close()
