"""The side thread: it answers pings while a cell runs, delivers interrupts and
input, forwards what was written to the descriptors 1 and 2, and ends the
process when the host is gone."""

from __future__ import annotations

import _thread
import errno
import os
import select
import signal
import sys
import threading
import traceback
from time import monotonic
from typing import Any, Dict

from . import processes
from .wire import DONTWAIT, Lines, RequestTooLong, encode, parse

# A control line that is longer is skipped: results of host calls can be long.
_MAX_CONTROL = 16 << 20
# The stack of the side thread, in bytes.
_STACK = 256 << 10
# The exit code of a session whose code has closed what connects it with its host.
CUT_EXIT = 128 + 108
# What a call for such a descriptor fails with; that the host is gone is another error.
_CLOSED = (errno.EBADF, errno.ENOTSOCK, errno.ENOTCONN)
# How soon an interrupt that nothing came of is sent again.
_AGAIN_MS = 30


def end_group(why: str) -> None:
    """Kills this process and what it started. It does not return."""
    del why  # for who reads the call
    try:
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(137)


def end_cut_off(err: OSError) -> None:
    """Ends the process after a call for a descriptor that connects it with its host has
    failed. Where code has closed that, it says so by its exit code, which a signal to all of
    the group would hide, and the host ends the rest of the group. It does not return."""
    if err.errno not in _CLOSED:
        end_group("the host is gone")
    try:
        for pid in processes.descendants_of(os.getpid()):
            processes.kill(pid)
    finally:
        os._exit(CUT_EXIT)


class Side:
    """The thread and its descriptors. All methods but sit, start and
    close_descriptors run in it."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._lines = Lines(_MAX_CONTROL)
        self._control: Any = None  # from start on
        self._unsent = b""  # the end of an answer that the host had no room for
        self._main = -1
        self._lifeline = -1  # its other end is the host's alone
        self._working = threading.Lock()  # held but for the time in which the thread waits

    def start(self, main: int, control: Any, lifeline: int) -> None:
        """Starts the thread. It is not a threading.Thread, so that code which
        looks at the threads of a program does not see it."""
        self._main, self._lifeline = main, lifeline
        self.sit(control)
        die_with(lifeline)
        old = threading.stack_size(_STACK)
        _thread.start_new_thread(self._run, ())
        threading.stack_size(old)

    def sit(self, control: Any) -> None:
        """Begins to serve a control socket."""
        self._control = control
        self._lines.attach(control)

    def pause(self) -> None:
        """Waits until the thread is between two requests, and holds it there."""
        self._working.acquire()

    def go_on(self) -> None:
        """Ends a pause."""
        self._working.release()

    def leave(self) -> int:
        """Lets go of the control socket, in a copy, which has no such thread.
        Returns the lifeline."""
        self._control.close()
        return self._lifeline

    def close_descriptors(self) -> None:
        """Lets go of the descriptors, in a process forked off."""
        try:
            self._control.close()
            os.close(self._lifeline)
        except OSError:
            pass  # the user's code has closed them

    def _run(self) -> None:
        try:
            self._serve()
        except OSError as err:
            end_cut_off(err)
        except BaseException:  # nothing else would answer the host any more
            os.write(2, traceback.format_exc().encode("utf-8", "replace"))
            end_group("the side thread failed")

    def _serve(self) -> None:
        output, control, main = self._session.output, self._control.fileno(), self._main
        captured = list(output.captured.values())
        poll = select.poll()
        poll.register(control, select.POLLIN)
        poll.register(self._lifeline, select.POLLIN)
        for fd in captured:
            poll.register(fd, select.POLLIN)
        # While the host takes nothing, nothing is taken from the descriptors.
        blocked = select.poll()
        blocked.register(control, select.POLLIN)
        blocked.register(self._lifeline, select.POLLIN)
        blocked.register(main, select.POLLOUT)
        writable = select.poll()  # the channel has one for its own threads: none serves two
        writable.register(main, select.POLLOUT)
        # Nor while those who print gather lines there, and send them.
        left = select.poll()
        left.register(control, select.POLLIN)
        left.register(self._lifeline, select.POLLIN)
        channel, interrupts, limits = self._session._channel, self._session.interrupts, self._session.limits
        due = 0.0  # when there is something to do besides, while lines are gathered
        while True:
            leave = output.patience()
            wait = _AGAIN_MS if interrupts.unheeded() else limits.patience()
            if channel.waiting() or not writable.poll(0):
                leave, due, events = None, 0.0, blocked.poll(wait)
            elif leave is None:
                due, events = 0.0, poll.poll(wait)
            else:
                events = left.poll(leave)
            with self._working:
                if leave is not None and not events:
                    output.gathered()
                    now = monotonic()
                    if wait is None or not due or now < due:
                        due = 0.0 if wait is None else due or now + wait / 1000
                        continue
                    due = 0.0
                if not events:
                    interrupts.again()
                if limits.processes and interrupts.current:
                    limits.look()
                written = False
                for fd, event in events:
                    if fd == control:
                        self.serve()
                    elif fd == self._lifeline and not event & select.POLLHUP:
                        raise OSError(errno.EBADF, "the number is not that of the lifeline any more")
                    elif fd == self._lifeline:
                        end_group("the host is gone")
                    elif fd in captured and not event & select.POLLIN:
                        # The user's code closed the descriptor that feeds it.
                        if event & select.POLLNVAL or not output.hold_open(fd):
                            poll.unregister(fd)
                    else:
                        written = True
                if written and (channel.waiting() or output.patience() is None):
                    output.pump()

    def serve(self) -> None:
        """Takes the requests that have come. There is one, or the end."""
        while True:
            try:
                line = self._lines.next()
                if line is None:
                    end_group("the host is gone")
                self._answer(parse(line))
            except RequestTooLong:
                pass
            except OSError:
                raise  # there is no socket any more
            except Exception:  # whatever is in the request, and what the user's code has hooked into
                self._reply({"type": "protocol_error", "message": "the control request cannot be read"})
            if not self._lines.buffered():
                return

    def _answer(self, request: Dict[str, Any]) -> None:
        kind = request["type"]
        if kind == "ping":
            self._reply({"type": "pong", "n": request.get("n", 0)})
        elif kind == "interrupt":
            self._session.interrupts.request(int(request["id"]))
            self._reply({"type": "interrupting", "n": request.get("n", 0)})
        elif kind == "input":
            self._session.input.answer(str(request["request"]), request.get("value"), float(request.get("idle") or 0), str(request.get("reason") or ""))
        elif kind == "host_result":
            self._session.calls.answer(request)
        else:
            self._reply({"type": "protocol_error", "message": f"unknown control request {kind!r}"})

    def _reply(self, frame: Dict[str, Any]) -> None:
        """Answers, unless the host does not read its answers: this thread never
        waits for it."""
        if not self._unsent:
            self._unsent = self._session._channel.mark + encode(frame)
        try:
            sent = self._control.send(self._unsent, DONTWAIT)
        except BlockingIOError:
            sent = 0
        self._unsent = self._unsent[sent:] if sent else b""


def die_with(lifeline: int) -> None:
    """Has the kernel kill this process group when the other end of the lifeline
    is closed, so that not even native code that holds the interpreter's lock
    outlives the host. Linux only; the side thread does the same a moment later.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        import fcntl

        F_SETSIG = 10
        # Owner and signal belong to the open file description, which all
        # sessions of a fork server share: each opens one of its own.
        own = os.open(f"/proc/self/fd/{lifeline}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.dup2(own, lifeline, inheritable=False)
        os.close(own)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp() if os.getpgrp() == os.getpid() else os.getpid())
        fcntl.fcntl(lifeline, F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        pass  # a sandbox without /proc or without these signals
