# Must run under any Python, so that an old one can say how old it is.
import sys
sys.stdout.write("coppice-python %d %d %d %s\n" % (sys.version_info[:3] + (sys.executable,)))
