"""The lines of the README, as they stand: fifty conversations at once."""

import os
import pathlib
import re
import threading
import unittest
from unittest import mock

import server

README = pathlib.Path(__file__).resolve().parents[3] / "README.md"


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        self.server = server.Server()
        self.addCleanup(self.server.end)

    def test_fifty_conversations(self):
        block = re.search(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)[1]
        told = []
        lines = {"print": lambda *texts: told.append(texts)}
        with mock.patch.dict(os.environ, {"COPPICE_HOME": self.server.home}):
            exec(compile(block, "README.md", "exec"), lines)
        self.addCleanup(lines["client"].close)
        self.assertEqual([[t.strip() for t in texts] for texts in told], [["(no output)", "42"]])
        results = {}

        def talk(i):
            lines["python"](f"conversation {i}", f"x = {i}")
            results[i] = lines["python"](f"conversation {i}", "x * 2").strip()

        threads = [threading.Thread(target=talk, args=(i,)) for i in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(results, {i: str(2 * i) for i in range(50)})


if __name__ == "__main__":
    unittest.main()
