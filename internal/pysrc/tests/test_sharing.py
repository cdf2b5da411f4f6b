"""Tests of what a fork server does ahead so that its sessions share memory."""

import builtins
import linecache
import os
import random
import signal
import subprocess
import sys
import threading
import unittest

import sources  # noqa: F401, it finds coppice_runner
from coppice_runner import forks, magics
from coppice_runner.rehearsal import rehearse
from coppice_runner.session import Session

PRELUDE = "from os.path import join as made_by_prelude"


def state():
    return {
        "streams": (sys.stdin, sys.stdout, sys.stderr), "main": sys.modules["__main__"], "argv": sys.argv, "path": list(sys.path),
        "env": dict(os.environ), "builtins": dict(vars(builtins)), "sigint": signal.getsignal(signal.SIGINT), "cwd": os.getcwd(),
        "cells": [n for n in linecache.cache if n.startswith("<cell")], "threads": threading.enumerate(), "files": len(os.listdir("/proc/self/fd")),
    }


class RehearsalTest(unittest.TestCase):
    def test_it_goes_well_and_leaves_nothing(self):
        before = state()
        self.assertTrue(rehearse(Session, PRELUDE))
        self.assertEqual(before, state())
        self.assertFalse(hasattr(builtins, magics.COMMANDS))

    def test_a_prelude_that_raises_does_no_harm(self):
        def session():
            made = Session()
            made._init = lambda request: exec(request["prelude"])
            return made

        before = state()
        self.assertFalse(rehearse(session, "raise OSError('no')"))
        self.assertEqual(before, state())


class PrepareTest(unittest.TestCase):
    """Session.prepare changes the process, so each test has one of its own."""

    def check(self, code):
        text = "import sources, os, sys\nfrom coppice_runner.session import Session\n" + code
        done = subprocess.run([sys.executable, "-B", "-c", text], cwd=os.path.dirname(__file__), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual((0, b""), (done.returncode, done.stdout))

    def test_the_prelude_runs_once(self):
        self.check(
            "s = Session()\ns._send = lambda frame: None\ns.prepare('import os; os.times_run = getattr(os, \"times_run\", 0) + 1; p = 1')\n"
            "assert s.namespace['p'] == 1 and os.times_run == 1\n"
            "s._init({'version': 1, 'prelude': s._prelude})\nassert os.times_run == 1 and s.namespace['p'] == 1\n"
            "s.reset()\nassert s.namespace['p'] == 1"
        )

    def test_another_prelude_runs(self):
        self.check(
            "s = Session()\ns._send = lambda frame: None\ns.prepare('p = 1')\n"
            "s._init({'version': 1, 'prelude': 'p = 2'})\nassert s.namespace['p'] == 2"
        )

    def test_one_that_raises_is_left_to_the_session(self):
        self.check(
            "s = Session()\nsent = []\ns._send = sent.append\ns.prepare('p = 1\\nraise OSError(\"no\")')\n"
            "assert 'p' not in s.namespace and s._prelude == ''\n"
            "os._exit = lambda code: (_ for _ in ()).throw(SystemExit(0))\n"
            "try:\n    s._init({'version': 1, 'prelude': 'raise OSError(\"no\")'})\nexcept SystemExit:\n    pass\n"
            "assert sent[0]['type'] == 'failed' and 'OSError: no' in sent[0]['message'], sent"
        )

    def test_reset_puts_the_environment_back(self):
        self.check(
            "os.environ['COPPICE_GONE'] = '1'\nos.environ['COPPICE_STAYS'] = '1'\n"
            "s = Session()\ns._send = lambda frame: None\ns.prepare('')\n"
            "s._init({'version': 1, 'env': {'COPPICE_GONE': None, 'COPPICE_NEW': 'n'}})\n"
            "os.environ.update(COPPICE_GONE='2', COPPICE_NEW='3', COPPICE_STAYS='4', COPPICE_CELL='5')\n"
            "s._reset_all()\n"
            "assert {k: v for k, v in os.environ.items() if k in ('COPPICE_STAYS', 'COPPICE_NEW', 'COPPICE_GONE', 'COPPICE_CELL')} == {'COPPICE_STAYS': '1', 'COPPICE_NEW': 'n'}, os.environ"
        )


class ForksTest(unittest.TestCase):
    def child(self, fork, check):
        """Forks, and returns what check says in the child."""
        read, write = os.pipe()
        pid = fork()
        if pid == 0:
            try:
                os.write(write, repr(check()).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as f:
            found = f.read().decode()
        os.waitpid(pid, 0)
        return found

    def test_functions_of_the_library_are_left_out_of_our_forks_alone(self):
        code = """
import sources, os, sys
from coppice_runner import forks
called = []
def register(name):
    exec(compile("import os\\nos.register_at_fork(before=lambda: called.append(('before', NAME)), after_in_parent=lambda: called.append(('parent', NAME)))", name, "exec"), {"__name__": name, "NAME": name, "called": called})
forks.share()
register("logging")
register("numpy")
forks.settle()
register("random")
for fork in (forks.fork, os.fork):
    called.clear()
    pid = fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(called)
"""
        done = subprocess.run([sys.executable, "-B", "-c", code], cwd=os.path.dirname(__file__), stdout=subprocess.PIPE, timeout=60)
        ours, others = done.stdout.decode().splitlines()
        self.assertEqual("[('before', 'random'), ('before', 'numpy'), ('parent', 'numpy'), ('parent', 'random')]", ours)
        self.assertEqual(
            "[('before', 'random'), ('before', 'numpy'), ('before', 'logging'), ('parent', 'logging'), ('parent', 'numpy'), ('parent', 'random')]", others
        )

    def test_what_threading_registered_before_is_left_out_too(self):
        code = """
import sources, os, threading
from coppice_runner import forks
lock = threading._active_limbo_lock
forks.share()
forks.settle()
for fork in (forks.fork, os.fork):
    pid = fork()
    if pid == 0:
        print(threading._active_limbo_lock is lock, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""
        done = subprocess.run([sys.executable, "-B", "-c", code], cwd=os.path.dirname(__file__), stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(["True", "False"], done.stdout.decode().split())

    def test_threads_work_in_a_child(self):
        def check():
            forks.new_main_thread()
            random.seed()
            threading.Thread(target=lambda: None).start()
            main = threading.main_thread()
            return main is threading.current_thread(), getattr(main, "native_id", os.getpid()) == os.getpid(), len(threading.enumerate()) <= 2

        self.assertEqual("(True, True, True)", self.child(forks.fork, check))


if __name__ == "__main__":
    unittest.main()
