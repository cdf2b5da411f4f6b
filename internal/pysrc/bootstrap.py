# The first code of ours that an interpreter runs. It brings package
# coppice_runner, which comes on the socket, into the interpreter and hands the
# process over to it. sys.argv is a role, how many bytes this code and the package
# have, the descriptor of the socket, which is open as sock, and those that follow.
import sys


class _Kept:
    """Compiled code that an earlier process has left in a file: compiling takes longer
    than all else of a start. Its name says by which Python, and of which sources. What
    is not as it was written counts for nothing, nor what another user could have
    written."""

    def __init__(self, path, sources):
        import _frozen_importlib_external as external

        self.path = path and "%s-%s-%x-%s%d" % (
            path, sys.implementation.cache_tag, sys.hexversion, external.MAGIC_NUMBER.hex(), sys.flags.optimize
        )
        self.sources = sources
        self.found = self.read() if path else {}
        self.made = {}

    def read(self):
        import _imp
        import marshal
        import os

        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return {}
        with open(fd, "rb") as f:
            told = os.fstat(fd)
            if told.st_uid != os.geteuid() or told.st_mode & 0o170077 != 0o100000:
                return {}
            data = f.read()
        if data[:8] != _imp.source_hash(0, data[8:]):
            return {}
        return marshal.loads(data[8:])

    def code(self, name):
        """Returns the code of a module."""
        import marshal

        if name in self.found:
            return marshal.loads(self.found[name])
        path, text = self.sources[name]
        code = compile(text, path, "exec", dont_inherit=True)
        if self.path:
            self.made[name] = marshal.dumps(code)
        return code

    def complete(self):
        """Compiles what no start needs, and leaves all for those who come."""
        if self.path:
            for name in self.sources.keys() - self.found.keys() - self.made.keys():
                self.code(name)
            self.keep()

    def folders(self, path):
        """Makes a folder and those above it, all for their user alone: what os.makedirs makes
        above may be open to others."""
        import os

        if path and not os.path.isdir(path):
            self.folders(os.path.dirname(path))
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                pass  # another start has been quicker

    def keep(self):
        """Leaves what was compiled, if any of it was, for those who come."""
        if not self.made:
            return
        import _imp
        import marshal
        import os

        self.found, self.made = {**self.found, **self.made}, {}
        data = marshal.dumps(self.found)
        folder, own = os.path.dirname(self.path), "%s.%d.tmp" % (self.path, os.getpid())
        try:
            self.folders(folder)
            told = os.stat(folder)
            if told.st_uid != os.geteuid() or told.st_mode & 0o022:
                return
            fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                with open(fd, "wb") as f:
                    f.write(_imp.source_hash(0, data) + data)
                os.replace(own, self.path)
            except OSError:
                os.unlink(own)
            now = os.stat(self.path).st_mtime
            for name in os.listdir(folder):  # those of versions that nobody has started for long
                old = os.path.join(folder, name)
                if name.startswith("runner-") and os.stat(old).st_mtime < now - 30 * 86400:
                    os.unlink(old)
        except OSError:
            pass  # it is compiled the next time, too


def _boot(sock, role, size, fds):
    import builtins
    import json
    import socket

    if sys.path and sys.path[0] == "":
        del sys.path[0]  # -c puts the working directory first
    load = json.loads(sock.recv(size, socket.MSG_WAITALL))
    sources = load["modules"]
    spec = type(sys.__spec__)
    names = dict(vars(builtins))
    kept = _Kept(load.get("code") or "", sources)

    def execute(name, module):
        exec(kept.code(name), module.__dict__)

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name in sources:
                return spec(name, Finder, origin=sources[name][0], is_package=name.count(".") == 0)

        @staticmethod
        def create_module(spec):
            return None

        @staticmethod
        def exec_module(module):
            if not module.__name__.startswith("coppice_prelude"):
                # Code that replaces builtins is not to replace the runner's.
                module.__dict__["__builtins__"] = names
            execute(module.__name__, module)

    sys.meta_path.insert(0, Finder)
    from coppice_runner import main

    sys.meta_path.remove(Finder)
    # What most sessions never need is compiled when one does.
    late = {name: source[0] for name, source in sources.items() if name.startswith("coppice_runner.") and name not in sys.modules}
    sys.modules["coppice_runner"].late = late, names, execute
    kept.keep()
    load["keep"] = kept.complete
    main.run(role, sock, fds, load)


_boot(sock, sys.argv[1].rpartition("-")[2], int(sys.argv[3]), [int(fd) for fd in sys.argv[5:]])  # noqa: F821, sock is there already
