# Keeps room for the connections of this server in kernels whose code has opened as many files as it
# may: ZeroMQ ends a process that has no descriptor left for one that comes over a Unix socket.
import os

try:
    import resource
except ImportError:  # Windows, where connections come over TCP
    resource = None

# How many descriptors a kernel has left when a connection comes. A client has a few at a time.
ROOM = 32


def widen(pid):
    """Raises how many descriptors a process may have where few are left, as far as it might itself."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    most = len(os.listdir("/proc/%d/fd" % pid)) + ROOM
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if most > soft:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, hard))


def make():
    """Has each connection to a kernel find room there."""
    if not hasattr(resource, "prlimit"):
        return
    from jupyter_client.connect import ConnectionFileMixin

    connect = ConnectionFileMixin._create_connected_socket

    def connected(self, *args, **kwargs):
        provisioner = getattr(self, "provisioner", None)
        process = getattr(provisioner, "process", None)
        if process is not None and getattr(process, "returncode", None) is None:  # else the number may be another's
            try:
                widen(provisioner.pid)
            except (OSError, TypeError, ValueError):
                pass  # what cannot be seen or changed stays as it is
        return connect(self, *args, **kwargs)

    ConnectionFileMixin._create_connected_socket = connected
