"""Keeps descriptors for a host, and hands them to the next one that proves itself.

It has copies of them and uses none. Its working directory is the folder of the custody,
descriptor 0 the link to the first host. A message is two numbers of 4 bytes, how long it
is and how many descriptors come with it, and then JSON; package custody says what it
guarantees."""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from _operator import _compare_digest as same

HEAD, FD, MOST_FDS, MOST_BODY = 8, 4, 16, 2 << 20
HELLO_WAIT = 5.0  # seconds that one who asks has to say all of it
COMPACT = 1 << 20  # bytes of the file of names from which on it is written again


class Refused(Exception):
    """Says why a host is not believed, or what it asks for not done."""


def patient(sock, until):
    """Has the next read of a socket wait until then at most, None for ever."""
    if until is not None:
        sock.settimeout(max(until - time.monotonic(), 0.001))


def exactly(sock, n, until):
    data = b""
    while len(data) < n:
        patient(sock, until)
        more = sock.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def receive(sock, until=None):
    """Returns a message and its descriptors."""
    patient(sock, until)
    head, extra, flags, _ = sock.recvmsg(HEAD, socket.CMSG_SPACE(FD * MOST_FDS), socket.MSG_CMSG_CLOEXEC)
    fds = []
    try:
        for level, kind, data in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds += [int.from_bytes(data[i : i + FD], sys.byteorder) for i in range(0, len(data) - FD + 1, FD)]
        if not head:
            raise EOFError
        size, count = struct.unpack("<II", head + exactly(sock, HEAD - len(head), until))
        if size > MOST_BODY:
            raise EOFError  # it is no host of ours
        body = json.loads(exactly(sock, size, until))
        if not isinstance(body, dict):
            raise EOFError
        body["short"] = len(fds) != count or bool(flags & socket.MSG_CTRUNC)
        return body, fds
    except (ValueError, RecursionError):
        let_go(fds)
        raise EOFError from None
    except BaseException:
        let_go(fds)
        raise


def send(sock, body, fds=()):
    data = json.dumps(body).encode()
    data = struct.pack("<II", len(data), len(fds)) + data
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=%di" % len(fds), *fds))] if fds else []
    sent = sock.sendmsg([data], rights)
    sock.sendall(data[sent:])


def let_go(fds):
    for fd in fds:
        os.close(fd)


def began(pid):
    """Returns when a process started, "" when there is none."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        # The state is that of its first thread, which others may outlive.
        return "" if fields[0] == b"X" or fields[0] == b"Z" and int(fields[17]) <= 1 else fields[19].decode()
    except (OSError, ValueError, IndexError):
        return ""


def lock(fd):
    """Says whether the open file holds the lock now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False


def holds(fds):
    """Says whether what came is the open file that holds the lock of the host."""
    if len(fds) != 1:
        return False
    try:
        own = os.open("host.lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        a, b = os.fstat(own), os.fstat(fds[0])
        # The lock is free when we get it, and held by this very file when it gets it and
        # we do not.
        return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino) and not lock(own) and lock(fds[0])
    finally:
        os.close(own)


class Custodian:
    def __init__(self, link):
        self.link = link  # None while there is no host
        self.items = {}  # name -> (descriptors, note, common)
        self.deadline = 0.0  # of a host to come, while there is none
        self.over = False  # the host said so
        body, fds = receive(link)
        let_go(fds)
        self.token, self.keep_for, self.dir = body["token"], float(body["keep_for"]), body["dir"]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("s")
        os.chmod("s", 0o600)
        self.listener.listen(16)
        self.listener.setblocking(False)
        self.names = os.open("names", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.poll = select.poll()
        self.poll.register(self.listener, select.POLLIN)
        self.poll.register(link, select.POLLIN)
        # What a signal asks for is done between two steps of Python: one that comes after the
        # last step before poll has to end poll, too.
        self.woken, wake = os.pipe()
        os.set_blocking(self.woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.poll.register(self.woken, select.POLLIN)
        send(link, {"n": body.get("n", 0), "pid": os.getpid()})

    def serve(self):
        """Returns when nothing is kept any more."""
        while not self.over:
            wait = None
            if self.link is None:
                left = self.deadline - time.monotonic()
                if left <= 0 or not any(not common for _, _, common in self.items.values()):
                    return
                wait = left * 1000 + 1
            for fd, _ in self.poll.poll(wait)[:1]:  # one at a time: it may be closed by what another says
                if fd == self.woken:
                    os.read(self.woken, 64)
                elif fd == self.listener.fileno():
                    self.ask()
                else:
                    self.follow()

    def follow(self):
        """Does what the host asks for next."""
        try:
            body, fds = receive(self.link)
        except (EOFError, OSError):
            return self.alone()
        try:
            try:
                reply, given = self.do(body, fds)
            except Refused as err:
                reply, given = {"refused": str(err)}, ()
            except Exception as err:  # whatever is in it: it costs this request
                reply, given = {"refused": "the request cannot be followed: %s: %s" % (type(err).__name__, err)}, ()
        finally:
            let_go(fds)
        try:
            send(self.link, {**reply, "n": body.get("n", 0)}, given)
        except OSError:
            return self.alone()
        if body.get("op") == "leave":
            self.alone()

    def do(self, body, fds):
        """Follows a request. It empties fds of what it keeps."""
        op = body["op"]
        if body["short"]:
            raise Refused("the process that keeps sessions has no numbers for descriptors left")
        if op == "put":
            name = str(body["name"])
            let_go(self.items.pop(name, ((), None, True))[0])
            self.items[name] = list(fds), body.get("note"), bool(body.get("common"))
            fds.clear()
            if not body.get("common"):
                self.note("+", name)
        elif op == "note":
            held = self.items.get(str(body["name"]))
            if held is None:
                raise Refused("nothing of that name is kept")
            self.items[str(body["name"])] = held[0], body.get("note"), held[2]
        elif op == "drop":
            held = self.items.pop(str(body["name"]), None)
            if held is not None:
                let_go(held[0])
                if not held[2]:
                    self.note("-", str(body["name"]))
        elif op == "hand":
            held = self.items.get(str(body["name"]))
            if held is None:
                raise Refused("nothing of that name is kept")
            return {"note": held[1], "common": held[2]}, held[0]
        elif op == "end":
            self.over = True
            self.remove()
        elif op != "leave":
            raise Refused("there is no request of that kind")
        return {}, ()

    def note(self, sign, name):
        """Writes down what is kept, for who finds no custodian. Without it nothing else
        is wrong."""
        try:
            os.write(self.names, json.dumps([sign, name]).encode() + b"\n")
            if os.fstat(self.names).st_size > COMPACT:
                os.ftruncate(self.names, 0)
                for other, held in self.items.items():
                    if not held[2]:
                        os.write(self.names, json.dumps(["+", other]).encode() + b"\n")
        except OSError:
            pass

    def alone(self):
        """Begins to wait for a host."""
        self.poll.unregister(self.link)
        self.link.close()
        self.link = None
        self.deadline = time.monotonic() + self.keep_for

    def ask(self):
        """Hears one who says that it is the next host."""
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        body, fds = {}, []
        try:
            sock.settimeout(HELLO_WAIT)
            try:
                pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
                if uid != os.geteuid():
                    raise Refused("it is not a process of the same user")
                body, fds = receive(sock, time.monotonic() + HELLO_WAIT)
                sock.settimeout(HELLO_WAIT)
                self.check(body, fds, pid)
            except Refused as err:
                send(sock, {"n": body.get("n", 0), "refused": str(err)})
                return sock.close()
            finally:
                let_go(fds)
            send(sock, {"n": body.get("n", 0), "pid": os.getpid(), "names": [name for name, held in self.items.items() if not held[2]]})
            keep_for = float(body.get("keep_for") or self.keep_for)
        except Exception:  # whatever it is: it must not cost what is kept
            return sock.close()
        sock.settimeout(None)
        if self.link is not None:
            self.alone()
        self.link = sock
        self.keep_for = keep_for
        self.poll.register(sock, select.POLLIN)

    def check(self, body, fds, pid):
        """Raises Refused when a host does not prove itself."""
        if not same(str(body.get("token")).encode(), self.token.encode()):
            raise Refused("the token is wrong")
        if body.get("pid") != pid or not began(pid) or str(body.get("start")).partition("@")[0] != began(pid):
            raise Refused("it is not the process that it says it is")
        if not holds(fds):
            raise Refused("it does not hold the lock of the host")

    def remove(self):
        """Removes the folder: from now on no host finds it."""
        try:
            os.unlink("record.json")
        except OSError:
            pass
        try:
            for name in os.listdir("."):
                os.unlink(name)
            os.rmdir(self.dir)
        except OSError:
            pass  # it was removed before, or somebody has put a folder there


def stop(*_):
    raise SystemExit


def main():
    # The host has no child, which it would have to wait for: this process is nobody's.
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        os.read(read, 1)  # until the other leads a session of its own
        os._exit(0)
    os.setsid()
    os.close(write)
    os.close(read)
    # What a user or a terminal sends is for the host.
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    os.umask(0o077)
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ImportError, OSError, ValueError):
        pass  # the limit stays as it is
    link = socket.socket(fileno=os.dup(0))
    try:
        custodian = Custodian(link)
    except EOFError:
        return  # the host is gone
    except Exception as err:  # for the host to say
        return send(link, {"n": 1, "refused": "%s: %s" % (type(err).__name__, err)})
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    try:
        custodian.serve()
    finally:
        custodian.remove()


main()
