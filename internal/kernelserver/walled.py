# What a gateway and its kernels do behind walls. It is beside them only where there are
# some, with walls.json, which says what they were given.
import asyncio
import ctypes
import json
import os
import signal
import socket

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "walls.json")) as f:
    told = json.load(f)

# Calls of Landlock, which have the same numbers on all architectures.
CREATE_RULESET, RESTRICT_SELF = 444, 446


def serve():
    """Has the server take the socket that it was given: it can open none of the network.
    Is called before Jupyter is imported."""
    import tornado.netutil
    import tornado.tcpserver

    if told["calls"]:
        given = Handed(told["calls"])
    else:
        given = socket.socket(fileno=told["listener"])
        given.set_inheritable(False)
        given.setblocking(False)

    def listen(server, *args, **kwargs):
        server.add_socket(given)
        if isinstance(given, Handed):
            tornado.netutil.add_accept_handler(given.calls, given.called)

    tornado.tcpserver.TCPServer.listen = listen
    tornado.netutil.bind_sockets = lambda *args, **kwargs: []  # by which Jupyter Server looks for a free port


class Handed:
    """Stands for a socket that listens, in a kernel whose network is its own: connections come
    one by one, as descriptors over standard input, which the host has the other end of.

    What the host says is one byte each: c, with a connection to serve; h, with one to the host's
    functions, which was asked for by an h; k, with the number of a kernel that is to end. The end
    of it is that of the host. It belongs to the thread of the event loop.
    """

    def __init__(self, path):
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=os.dup(0))
        self.control.setblocking(False)
        none = os.open(os.devnull, os.O_RDONLY)
        os.dup2(none, 0)
        os.close(none)
        self.number = None  # what has come of one
        self.waiting = []  # who wants to call the host
        self.relays = set()
        self.calls = socket.socket(socket.AF_UNIX)
        self.calls.setblocking(False)
        self.calls.bind(path)
        self.calls.listen(100)

    def fileno(self):
        return self.control.fileno()

    def close(self):
        pass  # the host ends it

    def accept(self):
        """Returns the next connection to serve, or raises BlockingIOError."""
        while True:
            said, descriptors, _, _ = socket.recv_fds(self.control, 1, 1)
            given = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=fd) for fd in descriptors]
            if not said:
                os._exit(0)  # and with the first process of its kernel all that is in there
            if self.number is not None:
                self.number += said
                if len(self.number) == 4:
                    end(int.from_bytes(self.number, "big"))
                    self.number = None
            elif said == b"k":
                self.number = b""
            elif given and said == b"c":
                return given[0], ("", 0)
            elif given and self.waiting:
                relay = asyncio.ensure_future(carry(self.waiting.pop(0), given[0]))
                self.relays.add(relay)
                relay.add_done_callback(self.relays.discard)

    def called(self, connection, address):
        """Asks for a connection to the host, for code that calls it."""
        self.waiting.append(connection)
        self.control.setblocking(True)  # the host always reads
        try:
            self.control.sendall(b"h")
        finally:
            self.control.setblocking(False)


def end(pid):
    """Ends a kernel. It is a child of this process, and its number its own until this thread
    waits for its end."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            parent = int(f.read().rpartition(b")")[2].split()[1])
        if parent == os.getpid():
            os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        pass  # it has ended


async def carry(one, other):
    """Carries what is said on two connections from each to the other, until one has ended."""
    streams = [await asyncio.open_connection(sock=s) for s in (one, other)]
    (here, there), (from_host, to_host) = streams
    ways = [asyncio.ensure_future(copy(here, to_host)), asyncio.ensure_future(copy(from_host, there))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        there.close()
        to_host.close()


async def copy(reader, writer):
    while True:
        data = await reader.read(65536)
        if not data:
            return
        writer.write(data)
        await writer.drain()


def apart():
    """Keeps this process from its siblings, and from the gateway: it signals and traces only
    what it has started. Is called while there is one thread."""
    if not told["scopes"]:
        return
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    rules = (ctypes.c_uint64 * 3)(0, 0, told["scopes"])  # of files, of ports, scopes
    none = ctypes.c_long(0)
    fd = call(ctypes.c_long(CREATE_RULESET), rules, ctypes.c_size_t(ctypes.sizeof(rules)), none)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "make a set of rules")
    try:
        if call(ctypes.c_long(RESTRICT_SELF), ctypes.c_long(fd), none) < 0:
            raise OSError(ctypes.get_errno(), "restrict the process")
    finally:
        os.close(fd)
