# The first code that an interpreter runs (python -c): it reads the package
# coppice_runner from a socket and hands the process over to it. The arguments
# are the role, how many bytes the package has, the descriptor of the socket and
# those that follow it.
import sys


def _boot(role, size, *fds):
    import json
    import socket

    if sys.path and sys.path[0] == "":
        del sys.path[0]  # -c puts the working directory first
    sock = socket.socket(fileno=fds[0])
    parts = []
    while size:
        data = sock.recv(size)
        if not data:
            return
        parts.append(data)
        size -= len(data)
    load = json.loads(b"".join(parts))
    sources = load["modules"]
    spec = type(sys.__spec__)

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
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)

    sys.meta_path.insert(0, Finder)
    from coppice_runner import main

    sys.meta_path.remove(Finder)
    main.run(role, sock, list(fds[1:]), load)


_boot(sys.argv[1], *map(int, sys.argv[2:]))
