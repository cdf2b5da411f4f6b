"""A Jupyter kernel that is a session of coppice.

``python -m coppice_kernel CONNECTION_FILE`` is the kernel for Jupyter: it has the five
sockets of ZeroMQ, and passes on what comes there to the WebSocket of a kernel of
``coppice serve --jupyter``, and back. The code itself runs in a session there.
"""

__version__ = "0.1.0"
