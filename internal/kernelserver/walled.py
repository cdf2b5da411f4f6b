# What a gateway and its kernels do behind walls. It is beside them only where there are
# some, with walls.json, which says what they were given.
import ctypes
import json
import os
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

    given = socket.socket(fileno=told["listener"])
    given.set_inheritable(False)
    given.setblocking(False)
    tornado.tcpserver.TCPServer.listen = lambda self, *args, **kwargs: self.add_socket(given)
    tornado.netutil.bind_sockets = lambda *args, **kwargs: []  # by which Jupyter Server looks for a free port


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
