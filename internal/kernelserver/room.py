# Keeps room for the connections of this server in kernels whose code has opened as many files as it
# may: ZeroMQ ends a process that has no descriptor left for one that comes over a Unix socket.
import time

try:
    import resource
except ImportError:  # Windows, where connections come over TCP
    resource = None


# How long a kernel may take to close a connection that was closed here, in seconds.
LATE = 10


class Room:
    """What a kernel's process may open besides what it has set itself."""

    def __init__(self, process):
        self.process = process
        self.limit = None  # as it was left here
        self.sockets = {}  # for which it was raised, and when they were seen to be closed

    def make(self, pid):
        """Raises the limit for one socket more, and lowers it for those that were closed since. As far
        as the process might do so by itself: where walls are in the way, it stays as it is."""
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return
        if soft != self.limit:  # the process has set it, and counted what there was
            self.sockets = {}
        now = time.monotonic()
        closed = {s: since or now for s, since in self.sockets.items() if s.closed}
        kept = {s: closed.get(s) for s in self.sockets if closed.get(s, now) > now - LATE}
        most = soft + 1 + len(kept) - len(self.sockets)
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        if most != soft:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))
        self.limit, self.sockets = most, kept


def make():
    """Has each connection to a kernel come with the descriptor that it takes there."""
    if not hasattr(resource, "prlimit"):
        return
    from jupyter_client.connect import ConnectionFileMixin

    connect = ConnectionFileMixin._create_connected_socket

    def connected(self, *args, **kwargs):
        provisioner = getattr(self, "provisioner", None)
        process = getattr(provisioner, "process", None)
        if process is None or getattr(process, "returncode", None) is not None:
            return connect(self, *args, **kwargs)  # whose number may be another's
        room = getattr(self, "_coppice_room", None)
        if room is None or room.process is not process:
            room = self._coppice_room = Room(process)
        try:
            room.make(provisioner.pid)
        except (OSError, TypeError, ValueError):
            return connect(self, *args, **kwargs)
        sock = connect(self, *args, **kwargs)
        room.sockets[sock] = None
        return sock

    ConnectionFileMixin._create_connected_socket = connected
