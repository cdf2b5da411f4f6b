"""Checkpoints on disk, by both clients, of a server and of the one after it."""

import asyncio
import datetime
import unittest

import coppice
from blocking import Blocking
from server import Server


def setUpModule():
    global server
    server = Server("--hibernate", "lossless")


def tearDownModule():
    server.end()
    assert server.code in (0, 143), server.said


class Saved:
    """What both clients do."""

    def refused(self, code, hint, call, *args, **kwargs):
        with self.assertRaises(coppice.ServerError) as caught:
            call(*args, **kwargs)
        self.assertEqual((caught.exception.code, caught.exception.hint if hint is not None else None), (code, hint))

    def test_save_and_restore(self):
        name = type(self).__name__
        first, second = (self.client.session(f"{name}/{which}") for which in "ab")
        for session in (first, second):
            self.addCleanup(session.close)
        first.run("x = 40; sock = __import__('socket').socket()")
        self.refused("hibernate_refused", "lossy", first.save, name)
        kept = first.save(name, lossy=True)
        self.assertEqual((kept.kept, kept.changed), (("x",), ()))
        self.assertEqual([(one.name, one.type) for one in kept.lost], [("sock", "socket.socket")])
        self.assertTrue(kept.lost[0].reason)
        self.refused("hibernate_refused", "exists", first.save, name, lossy=True)
        first.run("sock.close(); del sock; x = 41")
        self.assertEqual(first.save(name, replace=True).lost, ())
        first.run("x = 0")

        found = [c for c in self.client.saved_checkpoints() if c.name == name]
        self.assertEqual(len(found), 1)
        saved = found[0]
        self.assertEqual((saved.session, saved.workspace, saved.owners, saved.open, saved.memory.kept), (first.name, "", (), True, ("x",)))
        self.assertEqual(saved.expires - saved.made, datetime.timedelta(days=90))
        self.assertGreater(saved.bytes, 0)
        for session, checkpoint in ((first, name), (second, saved)):
            self.assertEqual(session.restore(checkpoint).kept, ("x",))
            result = session.run("x += 1; x")
            self.assertEqual((result.state, result.cells[0].output), ("restored", "42"))
        self.client.drop_saved_checkpoint(saved)
        self.assertNotIn(name, [c.name for c in self.client.saved_checkpoints()])
        self.refused("not_found", None, first.restore, name)
        self.assertEqual(first.run("x").cells[0].output, "42")
        with self.assertRaises(ValueError):
            first.save("")

    def test_owners(self):
        name = type(self).__name__ + "-owned"
        mine = self.client.session(name, owner="me")
        yours = self.client.session(name + "-yours", owner="you")
        for session in (mine, yours):
            self.addCleanup(session.close)
        mine.run("x = 1")
        yours.run("x = 2")
        mine.save(name)
        self.refused("restore_refused", "owner", yours.restore, name)
        self.refused("hibernate_refused", "owner", yours.save, name, replace=True)
        self.refused("restore_refused", "owner", self.client.drop_saved_checkpoint, name, owner="you")
        self.client.drop_saved_checkpoint(name, owner="me")


class SyncTest(Saved, unittest.TestCase):
    def setUp(self):
        self.client = coppice.Client(home=server.home)


class AsyncTest(Saved, unittest.TestCase):
    def setUp(self):
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        self.client = Blocking(coppice.AsyncClient(home=server.home), self.loop)


if __name__ == "__main__":
    unittest.main()
