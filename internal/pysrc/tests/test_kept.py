"""Compiled code that one start leaves for the next (bootstrap.py)."""

import builtins
import marshal
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

_BOOTSTRAP = pathlib.Path(__file__).resolve().parent.parent / "bootstrap.py"
_SOURCES = {"m": ["<coppice>/m.py", "told = 'of the source'"], "late": ["<coppice>/late.py", "told = 'late'"]}


def kept(path, sources=_SOURCES):
    """What a start keeps in a file whose name begins so."""
    text, _, _ = _BOOTSTRAP.read_text("utf-8").rpartition("\n_boot(")
    scope = {"__builtins__": builtins}
    exec(compile(text, "bootstrap.py", "exec", dont_inherit=True), scope)
    return scope["_Kept"](str(path), sources)


class KeptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "home" / "cache"
        self.prefix = self.folder / "runner-abc"

    def told(self, k, name="m"):
        scope = {}
        exec(k.code(name), scope)
        return scope["told"]

    def first(self):
        """The first start, and the file that it leaves."""
        k = kept(self.prefix)
        self.assertEqual(self.told(k), "of the source")
        k.keep()
        return pathlib.Path(k.path)

    def plant(self, file, data):
        """Writes a file as a start would."""
        import _imp

        file.write_bytes(_imp.source_hash(0, data) + data)

    def planted(self, file):
        code = marshal.dumps(compile("told = 'of the file'", "m.py", "exec"))
        self.plant(file, marshal.dumps({"m": code}))

    def test_the_next_start_finds_it(self):
        file = self.first()
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        for folder in (self.folder, self.folder.parent):
            self.assertEqual(folder.stat().st_mode & 0o777, 0o700, folder)
        self.assertEqual(os.listdir(self.folder), [file.name])
        self.planted(file)
        k = kept(self.prefix)
        self.assertEqual(self.told(k), "of the file")
        before = file.stat()
        k.keep()
        self.assertEqual(file.stat(), before, "nothing was compiled, and nothing is written")

    def test_where_there_can_be_none(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.parent.parent)
        pathlib.Path("file").touch()
        for prefix in ("none", "file/in/runner"):
            k = kept(prefix)
            self.assertEqual(self.told(k), "of the source")
            k.keep()
            self.assertEqual(os.listdir(), ["file"])

    def test_what_comes_late_is_added(self):
        file = self.first()
        k = kept(self.prefix)
        self.assertEqual(set(k.found), {"m"})
        k.complete()
        self.assertEqual(set(kept(self.prefix).found), {"m", "late"})
        self.assertEqual(self.told(kept(self.prefix), "late"), "late")
        self.assertEqual(os.listdir(self.folder), [file.name])

    def test_another_python_has_its_own(self):
        file = self.first()
        for name, value in (("hexversion", 0x3010000), ("implementation", mock.Mock(cache_tag="other-1"))):
            with mock.patch.object(sys, name, value):
                k = kept(self.prefix)
            self.assertNotEqual(k.path, str(file))
            self.assertEqual(k.found, {})

    def test_what_is_damaged_counts_for_nothing(self):
        for damage in (lambda d: d[:-1], lambda d: b"", lambda d: d[:5], lambda d: d[:30] + b"\xff" + d[31:], lambda d: d[8:]):
            file = self.first()
            file.write_bytes(damage(file.read_bytes()))
            k = kept(self.prefix)
            self.assertEqual((k.found, self.told(k)), ({}, "of the source"))
            k.keep()
            self.assertEqual(set(kept(self.prefix).found), {"m"}, "it is written anew")

    def test_what_others_could_have_written_counts_for_nothing(self):
        for mode in (0o620, 0o602, 0o640, 0o604):
            file = self.first()
            self.planted(file)
            file.chmod(mode)
            self.assertEqual(self.told(kept(self.prefix)), "of the source", oct(mode))
            file.unlink()
        file = self.first()
        self.planted(file)
        with mock.patch.object(os, "geteuid", lambda: os.getuid() + 1):
            self.assertEqual(self.told(kept(self.prefix)), "of the source")
        other = self.folder / "other"
        file.rename(other)
        file.symlink_to(other)
        self.assertEqual(self.told(kept(self.prefix)), "of the source", "a link")
        file.unlink()
        os.mkfifo(file)
        self.assertEqual(self.told(kept(self.prefix)), "of the source", "a FIFO, which it does not wait for")

    def test_a_folder_of_others_is_not_used(self):
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o777)
        self.first()
        self.assertEqual(os.listdir(self.folder), [])

    def test_where_nothing_can_be_written(self):
        self.folder.parent.mkdir()
        self.folder.write_text("a file is in its place")
        self.first()

    def test_none_is_kept_where_none_is_asked_for(self):
        k = kept("")
        self.assertEqual(self.told(k), "of the source")
        k.complete()
        k.keep()
        self.assertFalse(self.folder.exists())

    def test_versions_that_nobody_starts_go(self):
        file = self.first()
        for name, age in (("runner-old-cpython", 31), ("runner-recent", 29), ("python-old", 31)):
            (self.folder / name).write_text("")
            then = file.stat().st_mtime - age * 86400
            os.utime(self.folder / name, (then, then))
        file.unlink()
        self.first()
        self.assertEqual(sorted(os.listdir(self.folder)), ["python-old", "runner-abc" + file.name[len("runner-abc") :], "runner-recent"])


if __name__ == "__main__":
    unittest.main()
