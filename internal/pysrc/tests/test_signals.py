"""Signals that the fork server sends to its children."""

import os
import signal
import subprocess
import unittest

import sources  # noqa: F401, which makes coppice_runner importable
from coppice_runner import forkserver


class Signals(unittest.TestCase):
    def test_one_that_leads_no_group_yet_gets_its_signal(self):
        p = subprocess.Popen(["sleep", "600"])
        self.assertNotEqual(os.getpgid(p.pid), p.pid)
        forkserver._send(p.pid, signal.SIGTERM, True)
        self.assertEqual(p.wait(60), -signal.SIGTERM)

    def test_a_group_gets_its_signal(self):
        p = subprocess.Popen(["sh", "-c", "sleep 600 & echo; wait"], stdout=subprocess.PIPE, start_new_session=True)
        with p.stdout:
            p.stdout.readline()
            forkserver._send(p.pid, signal.SIGTERM, True)
            self.assertEqual(p.wait(60), -signal.SIGTERM)
            self.assertEqual(p.stdout.read(), b"")  # the other has ended, too


if __name__ == "__main__":
    unittest.main()
