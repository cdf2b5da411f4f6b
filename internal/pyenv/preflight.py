# Says which packages can be imported, without importing them.
import sys

# "" is the working directory, whose files are not installed packages.
sys.path[:] = [p for p in sys.path if p]

from importlib.util import find_spec

for pair in sys.argv[1:]:
    module, _, dist = pair.partition("=")
    try:
        found = find_spec(module) is not None
    except Exception:
        found = False
    version = "?"
    if found:
        try:
            from importlib import metadata  # takes longer than all else here

            version = metadata.version(dist)
        except Exception:
            pass
    print("coppice-package", module, "yes" if found else "no", version)
