"""The helpers, each with its result, its status event and its way of failing."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import sources  # noqa: F401, it is what makes the next import work

import coppice_prelude
from coppice_prelude import ignore

MIME = "application/x-test-status"
DOCS = pathlib.Path(__file__).resolve().parent.parent / "prelude_docs.json"


class PreludeTest(unittest.TestCase):
    def setUp(self):
        self.events = []
        self.ns = {}

        def display(bundle, raw):
            self.assertTrue(raw)
            json.dumps(bundle)  # it can be sent
            self.events.append(bundle[MIME])

        coppice_prelude.install(self.ns, display, MIME)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.base = pathlib.Path(folder.name).resolve()
        os.chdir(self.base)

    def __getattr__(self, name):
        try:
            return self.__dict__["ns"][name]
        except KeyError:
            raise AttributeError(name) from None

    def files(self, **texts):
        for name, text in texts.items():
            file = self.base / name.replace("__", "/").replace("_dot_", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def event(self):
        return self.events[-1]

    # The list.

    def test_the_list_of_helpers_is_true(self):
        listed = self.ns[coppice_prelude.DOCS]()
        self.assertEqual(json.loads(DOCS.read_text("utf-8")), listed, "write prelude_docs.json again")
        for one in listed:
            self.assertTrue(one["docstring"], one["name"])
            self.assertNotIn("'", one["signature"].replace("'raw'", "").replace("'file'", "").replace("'.'", "").replace("'*'", ""))

    def test_functions_of_the_user_can_be_listed(self):
        exec("def mine(x):\n    'Does it.'\nmine.__prelude_category__ = 'Mine'", self.ns)
        self.assertIn({"name": "mine", "signature": "(x)", "docstring": "Does it.", "category": "Mine"}, self.ns[coppice_prelude.DOCS]())

    # Shell.

    def test_env(self):
        self.addCleanup(os.environ.pop, "PRELUDE_X", None)
        self.assertEqual("1", self.env("PRELUDE_X", 1))
        self.assertEqual({"op": "env", "key": "PRELUDE_X", "value": "1", "action": "set"}, self.event())
        self.assertEqual("1", self.env("PRELUDE_X"))
        self.assertIsNone(self.env("PRELUDE_NONE"))
        self.assertIn("PRELUDE_X", self.env())
        self.assertEqual({"op", "count", "keys"}, set(self.event()))

    def test_secrets_are_not_told(self):
        for key in ("OPENAI_API_KEY", "GITHUB_TOKEN", "my_secret", "DB_PASSWORD", "APIKEY", "AWS_SECRET_ACCESS_KEY", "X_PASS", "COOKIE", "Authtoken", "GOOGLE_CREDENTIALS"):
            with self.subTest(key):
                self.addCleanup(os.environ.pop, key, None)
                self.assertEqual("hush", self.env(key, "hush"))
                self.assertEqual("hush", self.env(key))
        self.env()
        self.assertNotIn("hush", json.dumps(self.events))

    def test_run(self):
        r = self.ns["run"]("echo out; echo err >&2; exit 3")
        self.assertEqual(("out\n", "err\n", 3, 3, 3), (r.stdout, r.stderr, r.returncode, r.code, r.exit_code))
        self.assertFalse(r)
        self.assertEqual("exit code 3", repr(r))
        with self.assertRaises(subprocess.CalledProcessError):
            r.check_returncode()
        self.assertEqual({"op": "sh", "cmd": "echo out; echo err >&2; exit 3", "code": 3, "output": "out\nerr\n"}, self.event())
        r = self.ns["run"]("pwd; cat", cwd=self.base)
        self.assertTrue(r)
        self.assertEqual("", repr(r))
        self.assertEqual(str(self.base) + "\n", r.stdout)
        r = self.ns["run"]("echo begun; sleep 600 & sleep 600", timeout=0.5)
        self.assertEqual((-9, "begun\n"), (r.code, r.stdout))
        self.assertEqual("\ufffd", self.ns["run"](r"printf '\377'").stdout)

    def test_an_interrupt_ends_the_command_and_the_cell(self):
        main = threading.main_thread().ident
        timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.ns["run"]("sleep 600 & echo $! > pid; wait")
        self.assertLess(time.monotonic() - begin, 30)
        with self.assertRaises(ProcessLookupError):
            pid = int((self.base / "pid").read_text())
            for _ in range(200):
                os.kill(pid, 0)
                time.sleep(0.05)

    # Files.

    def test_read_and_write(self):
        self.assertEqual(pathlib.Path("a/b.txt"), self.write("a/b.txt", "one\r\ntwo\nthree"))
        self.assertEqual({"op": "write", "path": "a/b.txt", "chars": 14}, self.event())
        self.assertEqual("one\r\ntwo\nthree", self.read("a/b.txt"))
        self.assertEqual("two\n", self.read("a/b.txt", 2, 1))
        self.assertEqual("two\nthree", self.read("a/b.txt", offset=2))
        self.assertEqual("", self.read("a/b.txt", offset=9))
        self.assertEqual("", self.read("a/b.txt", limit=0))
        with self.assertRaises(ValueError):
            self.read("a/b.txt", 0)
        self.append("c/d.txt", "x")
        self.append("c/d.txt", "é\n")
        self.assertEqual("xé\n", self.read("c/d.txt"))
        self.write("long", "y" * 1000)
        self.read("long")
        self.assertEqual(501, len(self.event()["preview"]))
        with self.assertRaises(FileNotFoundError):
            self.read("none")

    def test_names_with_a_scheme(self):
        self.addCleanup(os.environ.pop, "PI_EVAL_LOCAL_ROOTS", None)
        os.environ["PI_EVAL_LOCAL_ROOTS"] = json.dumps({"local": str(self.base / "root")})
        self.write("local://x/y.txt", "z")
        self.assertEqual("z", (self.base / "root/x/y.txt").read_text())
        for bad in ("local:///etc/passwd", "local://../x", "other://x"):
            with self.assertRaises(ValueError):
                self.read(bad)

    def test_rm_mv_cp(self):
        self.files(a="1", d__e="2", f__g="3")
        self.rm("a")
        self.assertFalse((self.base / "a").exists())
        self.rm("a")
        self.assertEqual("missing", self.event()["error"])
        self.rm("d")
        self.assertEqual("directory, use recursive=True", self.event()["error"])
        self.assertTrue((self.base / "d/e").exists())
        self.cp("d", "f")
        self.assertEqual("23", (self.base / "f/e").read_text() + (self.base / "f/g").read_text())
        self.rm("d", recursive=True)
        self.mv("f/e", "new/place/e")
        self.assertEqual("2", (self.base / "new/place/e").read_text())
        self.cp("f/g", "h/i")
        self.assertEqual("3", (self.base / "h/i").read_text())
        os.symlink(self.base / "f", self.base / "link")
        self.rm("link", recursive=True)
        self.assertTrue((self.base / "f/g").exists(), "a link is removed, not what it leads to")

    # Search.

    def names(self, found):
        return sorted(str(p.relative_to(self.base)) for p in found)

    def test_find(self):
        self.files(a_dot_py="", s__b_dot_py="", s__t__c_dot_py="", s__d_dot_txt="", _dot_h__e_dot_py="", node_modules__x_dot_py="")
        self.assertEqual(["a.py", "s/b.py", "s/t/c.py"], self.names(self.find("*.py")))
        self.assertEqual(3, self.event()["count"])
        self.assertEqual([".h/e.py", "a.py", "s/b.py", "s/t/c.py"], self.names(self.find("*.py", hidden=True)))
        self.assertEqual(["s/b.py"], self.names(self.find("s/*.py")))
        self.assertEqual(["s/b.py", "s/t/c.py"], self.names(self.find("s/**/*.py")))
        self.assertEqual(["s", "s/t"], self.names(self.find("*", type="dir")))
        self.assertEqual(["a.py"], self.names(self.find("*.py", maxdepth=1)))
        self.assertEqual(["s/t/c.py"], self.names(self.find("*.py", mindepth=3)))
        self.assertEqual(1, len(self.find("*.py", limit=1)))
        self.assertTrue(all(p.is_absolute() for p in self.find("*", "s")))
        os.utime("s/b.py", (1, 1))
        self.assertEqual("b.py", self.find("*.py", sort_by_mtime=True)[-1].name)
        self.assertEqual(["a.py"], self.names(self.glob_files("*.py")))
        with self.assertRaises(ValueError):
            self.find("*", type="socket")

    def test_what_git_ignores(self):
        self.files(
            _dot_git__HEAD="", _dot_gitignore="*.log\n!keep.log\nbuild/\n/top.txt\nd/*.tmp\n\\#x\n[ab].c\n", keep_dot_log="", x_dot_log="",
            build__y="", s__build__y="", s__build2="", top_dot_txt="", s__top_dot_txt="", d__q_dot_tmp="", s__d__q_dot_tmp="", a_dot_c="", c_dot_c="",
            s___dot_gitignore="!x.log\nown\n", s__x_dot_log="", s__own="",
        )
        self.assertEqual(["c.c", "keep.log", "s/build2", "s/d/q.tmp", "s/top.txt", "s/x.log"], self.names(self.find("*")))
        self.assertEqual(["s/build2", "s/d/q.tmp", "s/top.txt", "s/x.log"], self.names(self.find("*", "s")), "the rules above count")

    def test_what_is_above_the_folder_does_not_hide_it(self):
        self.files(_dot_x__node_modules__build__a_dot_py="")
        self.assertEqual(1, len(self.find("*.py", ".x/node_modules/build")))

    def test_patterns_of_git(self):
        for pattern, path, fits in (
            ("a", "a", True), ("a", "b/a", True), ("/a", "b/a", False), ("a/b", "a/b", True), ("a/b", "c/a/b", False),
            ("**/a", "c/d/a", True), ("a/**", "a/b/c", True), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
            ("*.py", "a.py", True), ("*.py", "a.pyc", False), ("?", "a", True), ("?", "ab", False), ("[!a]", "b", True), ("[!a]", "a", False),
            ("[a-c]x", "bx", True), ("a\\*", "a*", True), ("a\\*", "ab", False), ("[", "[", True), ("[]a]", "]", True),
        ):
            with self.subTest(f"{pattern} {path}"):
                self.assertEqual(fits, any(rule.pattern.match(path) for rule in ignore.parse(pattern)))

    def test_grep(self):
        self.files(a="one\ntwo\nthree\nTWO.\n", s__b="two\n")
        (self.base / "s/binary").write_bytes(b"two \xff\n")
        self.assertEqual([(2, "two")], self.grep("two", "a"))
        self.assertEqual([(2, "two"), (4, "TWO.")], self.grep("two", "a", ignore_case=True))
        self.assertEqual([(4, "TWO.")], self.grep(".", "a", literal=True))
        self.assertEqual([(1, "one"), (2, "two"), (3, "three")], self.grep("two", "a", context=1))
        self.assertEqual({"op": "grep", "pattern": "two", "path": "a", "count": 1, "hits": [{"line": 2, "text": "two"}]}, self.event())
        self.assertEqual([(self.base / "a", 2, "two"), (self.base / "s/b", 1, "two")], self.rgrep("two"))
        self.assertEqual(1, len(self.rgrep("two", limit=1)))
        self.assertEqual(1, len(self.rgrep("two", glob_pattern="b")))
        self.assertEqual(1, len(self.rgrep("two", "s/b")), "a file is searched as it is")

    # Replacing.

    def test_replace(self):
        self.files(a="x.x\n", s__b="x1\n", c="none\n")
        before = os.stat("c").st_mtime_ns
        self.assertEqual(2, self.replace("a", "x", "y"))
        self.assertEqual("y.y\n", (self.base / "a").read_text())
        self.assertEqual(3, self.replace("a", r"[y.]", "z", regex=True))
        self.assertEqual(1, self.sed("s/b", r"x(\d)", r"y\1"))
        self.assertEqual("y1\n", (self.base / "s/b").read_text())
        self.assertEqual(0, self.replace("c", "q", "r"))
        self.assertEqual(0, self.replace("c", "", "r"))
        self.assertEqual(before, os.stat("c").st_mtime_ns, "what does not change is not written")
        self.assertEqual(3, self.rsed("[yn]", "k", glob_pattern="*"))
        self.assertEqual((3, 2, 2), (self.event()["count"], self.event()["files"], len(self.event()["changed"])))
        self.assertEqual("k1\n", (self.base / "s/b").read_text())

    # Text.

    def test_text(self):
        self.assertEqual("a\nb\nb", self.sort_lines("b\na\nb"))
        self.assertEqual("b\na", self.sort_lines("b\na\nb", reverse=True, unique=True))
        self.assertEqual("a\nb\na", self.uniq("a\na\nb\na"))
        self.assertEqual([(2, "a"), (1, "b"), (1, "a")], self.uniq("a\na\nb\na", count=True))
        self.assertEqual([(2, "x"), (1, "y")], self.counter("x\ny\nx"))
        self.assertEqual([(1, 3)], self.counter([1, 1, 3], limit=1, reverse=False))
        self.assertEqual("a c\nd", self.cols("a b c\nd", 0, 2))
        self.assertEqual("b\ne", self.cols("a,b\nd,e", -1, sep=","))

    # Navigation.

    def test_tree_stat_diff(self):
        self.files(B="", a__c__d__e="", _dot_h="")
        self.assertEqual("./\n├── a/\n│   └── c/\n└── B".replace("./", str(pathlib.Path(".")) + "/"), self.tree(max_depth=2))
        self.assertIn(".h", self.tree(show_hidden=True))
        with self.assertRaises(NotADirectoryError):
            self.tree("B")
        self.files(f="12")
        found = self.stat("f")
        self.assertEqual((2, True, False), (found["size"], found["is_file"], found["is_dir"]))
        self.assertTrue(found["mode"].startswith("0o100"))
        self.files(x="a\nb\n", y="a\nc")
        text = self.diff("x", "y")
        self.assertIn("-b\n+c\n\\ No newline at end of file\n", text)
        self.assertFalse(self.event()["identical"])
        self.assertEqual("", self.diff("x", "x"))

    # Lines.

    def test_lines(self):
        self.files(a="1\n2\n3\n4")
        self.assertEqual("2\n3", self.lines("a", 2, 3))
        self.assertEqual("1\n2\n3\n4", self.lines("a"))
        self.assertEqual("", self.lines("a", 9))
        self.assertEqual(2, self.delete_lines("a", 2, 3))
        self.assertEqual("1\n4", (self.base / "a").read_text())
        self.assertEqual(0, self.delete_lines("a", 9))
        self.assertEqual(0, self.delete_lines("a", 2, 1))
        self.insert_at("a", 1, "x\ny")
        self.assertEqual("1\nx\ny\n4", (self.base / "a").read_text())
        self.insert_at("a", 1, "0", after=False)
        self.insert_at("a", 99, "end")
        self.assertEqual("0\n1\nx\ny\n4\nend", (self.base / "a").read_text())
        self.assertEqual(2, self.delete_matching("a", "[xy]"))
        self.assertEqual(0, self.delete_matching("a", ".", regex=False))
        self.assertEqual("0\n1\n4\nend", (self.base / "a").read_text())
        (self.base / "w").write_bytes(b"1\r\n2\r\n")
        self.insert_at("w", 0, "0")
        self.assertEqual(b"0\r\n1\r\n2\r\n", (self.base / "w").read_bytes())
        for wrong in (lambda: self.lines("a", 0), lambda: self.insert_at("a", -1, "x"), lambda: self.insert_at("a", 0, "x", after=False)):
            with self.assertRaises(ValueError):
                wrong()

    # Agents.

    def test_output(self):
        self.addCleanup(os.environ.pop, "PI_SESSION_FILE", None)
        os.environ.pop("PI_ARTIFACTS_DIR", None)
        with self.assertRaisesRegex(RuntimeError, "No session - output artifacts unavailable"):
            self.output("a")
        os.environ["PI_SESSION_FILE"] = str(self.base / "s.jsonl")
        with self.assertRaisesRegex(RuntimeError, "No artifacts directory found"):
            self.output("a")
        self.files(s__a_dot_md="1\n2\n3", s__j_dot_md='{"k": [{"x y": 5}]}', s__c_dot_md="\x1b[31mred\x1b[0m")
        self.assertEqual("1\n2\n3", self.output("a"))
        self.assertEqual("2", self.output("a", offset=2, limit=1))
        self.assertEqual({"start_line": 2, "end_line": 3, "total_lines": 3}, self.output("a", offset=2, format="json")["range"])
        self.assertEqual("red", self.output("c", format="stripped"))
        self.assertEqual("5", self.output("j", query='.k[0]["x y"]'))
        self.assertEqual("null", self.output("j", query=".none[3]"))
        self.assertEqual([{"id": "a", "content": "1\n2\n3"}, {"id": "c", "content": "\x1b[31mred\x1b[0m"}], self.output("a", "c"))
        for wrong, says in (
            (lambda: self.output(), "At least one output ID is required"),
            (lambda: self.output("j", query=".k", limit=1), "query cannot be combined with offset/limit"),
            (lambda: self.output("j", query=".k["), "query: cannot read"),
            (lambda: self.output("c", query=".k"), "Output c is not valid JSON"),
            (lambda: self.output("a", offset=9), r"Offset 9 is beyond end of output \(3 lines\) for a"),
            (lambda: self.output("a", format="xml"), "format is"),
        ):
            with self.assertRaisesRegex(ValueError, says):
                wrong()
        for bad in ("none", "../s", ".", ""):
            with self.assertRaisesRegex(FileNotFoundError, "Available outputs: a, c, j"):
                self.output(bad)
        self.assertIn("error", self.event())

    # Flow.

    def test_parallel(self):
        gate = threading.Barrier(3, timeout=20)

        def meet(n):
            gate.wait()
            return n

        self.assertEqual([0, 1, 2], self.parallel([lambda n=n: meet(n) for n in range(3)]))
        self.assertEqual([], self.parallel([]))
        ended = []

        def fail(n):
            ended.append(n)
            raise ValueError(n)

        with self.assertRaisesRegex(ValueError, "0"):
            self.parallel([lambda: fail(0), lambda: fail(1), lambda: ended.append(2)], limit=1)
        self.assertEqual([0, 1, 2], ended)
        self.assertEqual([4, 6], self.pipeline([1, 2], lambda x: x + 1, lambda x: 2 * x))
        self.log("here")
        self.assertEqual({"op": "log", "message": "here"}, self.event())
        self.phase("now")
        self.assertEqual({"op": "phase", "title": "now"}, self.event())


if __name__ == "__main__":
    unittest.main()
