#!/usr/bin/env python3
"""Stands in for coppice in tests of its clients, as the front of a fleet.

    COPPICE_FLEET=... front.py serve --json FLAG...

It begins two nodes and a front, prints what the front prints, and ends them when it is asked to.
"""

import json
import os
import pathlib
import signal
import sys
import threading

from fleet import Fleet


def main() -> int:
    if sys.argv[1:2] != ["serve"]:
        sys.exit("front.py: only serve is there")
    home = pathlib.Path(os.environ["COPPICE_HOME"])
    over = threading.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: over.set())
    fleet = Fleet(os.environ["COPPICE_FLEET"], home, pathlib.Path.cwd(), dict(os.environ), *sys.argv[2:])
    print(json.dumps(fleet.told), flush=True)
    over.wait()
    code = fleet.end()
    sys.stderr.write(fleet.log.read_text())
    return code


if __name__ == "__main__":
    sys.exit(main())
