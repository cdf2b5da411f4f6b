"""The Python side of Coppice's runner backend.

Standard library only, Python 3.9 and newer. The package is never installed: the
host hands its source to an interpreter (bootstrap.py), which becomes a session
(session.py) or a fork server that makes sessions (forkserver.py). The frames
are described in PROTOCOL.md of package ndjson.

Who runs what in a session's process:

    main thread   reads requests and runs cells (session.py)
    side thread   answers pings, delivers interrupts and input, forwards what
                  was written to the descriptors 1 and 2, and ends the process
                  when the host is gone (side.py)
"""
