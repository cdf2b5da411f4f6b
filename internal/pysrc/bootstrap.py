# The first code of ours that an interpreter runs. It brings package
# coppice_runner, which comes on the socket, into the interpreter and hands the
# process over to it. sys.argv is a role, how many bytes this code and the package
# have, the descriptor of the socket, which is open as sock, and those that follow.
import sys


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
            path, text = sources[module.__name__]
            if not module.__name__.startswith("coppice_prelude"):
                # Code that replaces builtins is not to replace the runner's.
                module.__dict__["__builtins__"] = names
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)

    sys.meta_path.insert(0, Finder)
    from coppice_runner import main

    sys.meta_path.remove(Finder)
    # What most sessions never need is compiled when one does.
    late = {name: source for name, source in sources.items() if name.startswith("coppice_runner.") and name not in sys.modules}
    sys.modules["coppice_runner"].late = late, names
    main.run(role, sock, fds, load)


_boot(sock, sys.argv[1].rpartition("-")[2], int(sys.argv[3]), [int(fd) for fd in sys.argv[5:]])  # noqa: F821, sock is there already
