"""The kernel as Jupyter starts it."""

from __future__ import annotations

import sys

from .bridge import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
