"""Starts processes for a host, and ends all that descends from them when the host is gone.

It is a subreaper: whatever its descendants start stays its descendant, also what left
its session and whose parent has ended. It is two processes: the first only waits, and
has what is left when the second, which works, is killed. If the first is, the second
goes on. If both are, an heir is started: two processes that have no children, and end
what has the marks in their arguments (the higher limits of file locks).

Descriptor 0 is a socket to the host. A request is two numbers of 4 bytes, how long it is
and how many descriptors come with it, and then words with zero bytes between them; an
answer is a line. Descriptor 3 is a pipe whose end is the end of the host."""

import _signal
import _socket
import fcntl
import os
import select
import sys
import time

try:
    import resource
except ImportError:
    resource = None  # the host marks what it has started

HEAD, MOST_FDS, FD = 8, 64, 4
TIOCSCTTY, RLIMIT_LOCKS = 0x540E, 10  # of Linux, but for some machines that the host does not run on
LIFE = 3
PATIENCE = 10  # seconds for the last sweep
me = os.getpid()
marks = {int(mark) for mark in sys.argv[3:]} if "heir" in sys.argv else set()  # after -c and the name
host = _socket.socket(fileno=0)
mine = {}  # children that the host asked for, until it has heard of their end: pid -> it was told
numbers = {}  # of the orders of those: pid -> number
starting = {}  # children that have not become their program yet: descriptor -> (number, pid, what it said)


def prctl(what, value):
    try:
        import _ctypes

        call = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")
        return _ctypes.call_function(call, (what, value, 0, 0, 0)) == 0
    except Exception:
        try:
            import ctypes

            return ctypes.CDLL(None).prctl(what, value, 0, 0, 0) == 0
        except Exception:
            return False


def tell(*words):
    try:
        host.sendall((" ".join(map(str, words)) + "\n").encode())
    except OSError:
        pass  # the host is gone, which the next look shows


def exactly(n):
    data = b""
    while len(data) < n:
        more = host.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def receive():
    """Returns the words of a request, and the descriptors that came with it."""
    head, extra, _, _ = host.recvmsg(HEAD, _socket.CMSG_SPACE(FD * MOST_FDS), _socket.MSG_CMSG_CLOEXEC)
    fds = []
    for level, kind, data in extra:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            fds += [int.from_bytes(data[i : i + FD], sys.byteorder) for i in range(0, len(data) - FD + 1, FD)]
    if not head:
        raise EOFError
    head += exactly(HEAD - len(head))
    words = exactly(int.from_bytes(head[:4], "little")).split(b"\0")
    if len(fds) != int.from_bytes(head[4:], "little"):
        words = [b"short"] + words[1:2]  # no number was left for some of them
    return words, fds


def spawn(number, how, join, mark, limits, user, cwd, path, count, *rest):
    """Starts a program: rest are count arguments and then the environment. how is
    "session", "terminal", a session whose terminal is descriptor 0, "group" or "share";
    each of the last join descriptors moves the process that writes to it into a control
    group. The others become 0, 1, 2 and so on. mark is what it is known by, 0 for none, with
    its part before a colon where it has one. limits are limits and how much each is. user is
    the number of whom it becomes and those of its groups, if it is to be another."""
    fds = request_fds
    args, env = rest[: int(count)], dict(v.split(b"=", 1) for v in rest[int(count) :] if b"=" in v[1:])
    try:
        read, write = os.pipe()
    except OSError as err:
        return tell("failed", number.decode(), err.errno, "set up")
    try:
        pid = os.fork()
    except OSError as err:
        os.close(read)
        os.close(write)
        return tell("failed", number.decode(), err.errno, "fork")
    if pid == 0:
        begin(write, how, int(join), mark, limits, user, cwd, path, args, env, fds)
    os.close(write)
    # It is not waited for: a folder or a program may be on a file system that hangs.
    starting[read] = (number, pid, b"")
    poll.register(read, select.POLLIN)
    tell("begun", number.decode())


def hear(read):
    """Hears of a child that has become its program, or could not."""
    number, pid, said = starting[read]
    more = os.read(read, 64)
    if more:
        starting[read] = (number, pid, said + more)
        return
    poll.unregister(read)
    os.close(read)
    del starting[read]
    if number is None:  # the host has given it up
        pass
    elif said:
        os.waitpid(pid, 0)
        tell("failed", number.decode(), said.decode())
    else:
        mine[pid], numbers[pid] = False, number
        tell("started", number.decode(), pid)
    look()  # it may have ended by now


def drop(number):
    """Ends a child that the host has given up, whether or not it has become its program."""
    for read, (one, pid, said) in list(starting.items()):
        if one == number:
            starting[read] = (None, pid, said)
            os.kill(pid, _signal.SIGKILL)  # a child that was not reaped: the number is its own
    for pid, one in list(numbers.items()):
        if one == number:
            os.kill(pid, _signal.SIGKILL)
            del mine[pid], numbers[pid]
    look()


def begin(write, how, join, mark, limits, user, cwd, path, args, env, fds):
    """Becomes the program. It does not return."""
    step = "set up"
    try:
        base = len(fds) + 3
        write = fcntl.fcntl(write, fcntl.F_DUPFD_CLOEXEC, base)
        step = "enter the control group"
        for entry in fds[len(fds) - join :]:
            os.write(entry, b"0")
        fds = fds[: len(fds) - join]
        if user:  # before it says what it dies with, which another user would have forgotten
            step = "become another user"
            uid, gid, *groups = map(int, user.split(b":"))
            os.setgroups(groups)
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
        step = "set up"
        if how != b"session":  # what leads one knows the end of the host by itself
            prctl(1, int(_signal.SIGKILL))  # PR_SET_PDEATHSIG
        if os.getppid() != me:
            os._exit(137)
        if how in (b"session", b"terminal"):
            os.setsid()
        elif how == b"group":
            os.setpgid(0, 0)
        step = "chdir"
        os.chdir(cwd)
        step = "set up"
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, base) for fd in fds]
        for number, fd in enumerate(high):
            os.dup2(fd, number)
        if how == b"terminal":
            fcntl.ioctl(0, TIOCSCTTY, 0)
        part, _, mark = mark.rpartition(b":")
        if int(mark) and resource is not None:
            try:
                resource.setrlimit(RLIMIT_LOCKS, (int(part or mark), int(mark)))
            except (OSError, ValueError):
                pass  # there is no such limit: it is found among the descendants
        for number in restored:
            _signal.signal(number, _signal.SIG_DFL)
        if resource is not None:  # last: from here on this process may have less than it uses
            step = "limit it"
            for one in limits.split():
                what, _, most = one.partition(b"=")
                what, most = int(what), int(most)
                hard = resource.getrlimit(what)[1]
                most = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(what, (most, most))
        step = "exec"
        os.execve(path, args, env)
    except OSError as err:
        os.write(write, ("%d %s" % (err.errno or 0, step)).encode())
    except BaseException as err:
        os.write(write, ("0 %s: %s" % (step, type(err).__name__)).encode())
    finally:
        os._exit(127)


def children():
    try:
        with open("/proc/self/task/%d/children" % me, "rb") as f:
            return [int(pid) for pid in f.read().split()]
    except (OSError, ValueError):
        return [pid for pid, _ in table().get(me, ())]


def look():
    """Tells of children that have ended, and reaps those that it has adopted. The zombie
    of another holds its number and that of its group until the host has done with it."""
    for pid, told in list(mine.items()):
        if told:
            continue
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if end is not None:
            mine[pid] = True
            tell("ended", pid, *((end.si_status, 0) if end.si_code == os.CLD_EXITED else (-1, end.si_status)))
    begins = {pid for number, pid, _ in starting.values() if number is not None}
    for pid in children():
        if pid not in mine and pid not in begins:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def reap(pid):
    if mine.pop(int(pid), None) is not None:
        del numbers[int(pid)]
        os.waitpid(int(pid), 0)


def childless():
    """Says whether this process has no child. It takes no descriptor, as a list would."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return False
    except ChildProcessError:
        return True


def stat(pid):
    """Returns the parent of a process and when it started, or nothing: it has ended."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        # The state is that of its first thread, which others may outlive.
        if fields[0] != b"X" and (fields[0] != b"Z" or int(fields[17]) > 1):
            return int(fields[1]), fields[19]
    except (OSError, ValueError, IndexError):
        pass
    return None


def table():
    """Returns the processes, each with its start, by their parent."""
    found = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for pid in pids:
        known = stat(pid)
        if known:
            found.setdefault(known[0], []).append((pid, known[1]))
    return found


def kill(pid, start):
    """Kills a process, if it is still the one that began then."""
    try:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
    except OSError:
        handle = -1  # it has ended, or the system has no such handles
    try:
        now = stat(pid)
        if now is None or now[1] != start:
            return
        if handle >= 0:
            _signal.pidfd_send_signal(handle, _signal.SIGKILL)
        else:
            os.kill(pid, _signal.SIGKILL)
    except OSError:
        pass  # it has ended, or is another user's by now
    finally:
        if handle >= 0:
            os.close(handle)


def marked(pid):
    """Says whether a process has one of the marks."""
    try:
        return resource.prlimit(pid, RLIMIT_LOCKS)[1] in marks
    except (OSError, AttributeError):
        return False  # it has ended, or is another user's


def bare():
    """Reaps what has ended, and says whether no child is left: then nothing is below this
    process, since a subreaper is given whatever loses its parent there."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    except ChildProcessError:
        return True


def kin(pid):
    """Returns the children of a process, each with its start, as the system lists them."""
    found = []
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as f:
            for child in map(int, f.read().split()):
                known = stat(child)
                if known and known[0] == pid:
                    found.append((child, known[1]))
    return found


def near():
    """Ends what the lists of children lead to. It is quick where there are many processes,
    but a list may miss a child while another ends, and not every system has them."""
    queue = [(me, None)]
    for pid, start in queue:
        try:
            found = kin(pid)
        except (OSError, ValueError):
            found = []  # it has ended
        if start is not None:
            now = stat(pid)
            if now is None or now[1] != start:
                continue  # the number may be a stranger's, and so may be what was found
            kill(pid, start)
        queue += found


def sweep():
    """Ends everything below this process, and what has one of its marks."""
    end, pause, clean, looks = time.monotonic() + PATIENCE, 0.001, 0, 0
    while time.monotonic() < end:
        if not marks and bare():
            return
        looks += 1
        if not marks and looks == 1:
            near()
            time.sleep(pause)
            continue
        below = table()
        found = [one for some in below.values() for one in some if marked(one[0])] if marks else []
        queue = list(below.pop(me, ()))
        for pid, start in queue:
            queue += below.pop(pid, ())
            kill(pid, start)
        for pid, start in found:
            kill(pid, start)
        clean = 0 if found else clean + 1
        if bare() and (not marks or clean > 1):  # what is left of them would be a child; one with a mark that began while the table was read is in the next
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def watch():
    """Returns what is readable when a child has ended, and what waits for that and for
    the end of the host."""
    woken, wake = os.pipe()
    for fd in (woken, wake):
        os.set_blocking(fd, False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(LIFE, select.POLLIN)
    return woken, poll


def guard():
    """Waits for the end of the host, or of all that it has."""
    os.close(host.detach())
    woken, poll = watch()
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            if not marks:  # an heir has more than its children
                return
        for fd, _ in poll.poll():
            if fd == LIFE:
                return
            os.read(woken, 4096)


def main():
    global request_fds, poll
    woken, poll = watch()
    tell("ready", me)
    poll.register(0, select.POLLIN)
    once = "once" in sys.argv  # it ends with the last of its descendants
    began = False
    while not (once and began) or mine or not childless():  # at the latest, until the host ends
        for fd, _ in poll.poll():
            if fd == woken:
                os.read(woken, 4096)
                look()
                continue
            if fd == LIFE:
                return
            if fd in starting:
                hear(fd)
                continue
            if fd != 0:
                continue  # of one that was heard already
            words, request_fds = receive()
            try:
                if words[0] == b"spawn":
                    began = True
                    spawn(*words[1:])
                elif words[0] == b"drop":
                    drop(words[1])
                elif words[0] == b"reap":
                    reap(words[1])
                elif words[0] == b"end":
                    return
                elif words[0] == b"short":
                    tell("failed", words[1].decode(), 24, "receive")  # EMFILE
            finally:
                for fd in request_fds:
                    os.close(fd)


# What a user or a terminal sends is for the host. A program starts with what the host
# was started with; of two Python itself takes no notice.
restored = [_signal.SIGPIPE, _signal.SIGXFSZ]
for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
    if _signal.getsignal(getattr(_signal, name)) != _signal.SIG_IGN:
        _signal.signal(getattr(_signal, name), _signal.SIG_IGN)
        restored.append(getattr(_signal, name))
request_fds, poll = [], None
os.set_inheritable(LIFE, False)
try:
    if not prctl(36, 1):  # PR_SET_CHILD_SUBREAPER
        tell("cannot")
    elif os.fork():
        guard()
    else:
        me = os.getpid()
        os.setsid()
        prctl(36, 1)
        main()
except EOFError:
    pass  # the host is gone
finally:
    sweep()
os._exit(0)  # nothing is left to be written
