# What the user of a machine with the package does.
set -eu
. /try/steps.sh
cd

step "coppice " "coppice --version"
step "2" "coppice run -c '1+1'"
step "coppice" "zcat /usr/share/man/man1/coppice.1.gz | head -n 3"
step "" "coppice serve >serve.log 2>&1 &"
until_it "coppice health"
step "http://127.0.0.1:7788" "coppice health; cat serve.log"
step "" "python3 -m venv venv"
step "Successfully installed coppice-" "venv/bin/pip install --no-index --disable-pip-version-check /try/coppice-*.whl"
step "" "cat /try/ten.py"
step "42" "venv/bin/python /try/ten.py"
# Each has variables of its own, and all run at once.
cat >fifty.py <<'END'
import concurrent.futures
import contextlib
import io

with contextlib.redirect_stdout(io.StringIO()):
    lines = {}
    exec(open("/try/ten.py").read(), lines)


def talk(i):
    lines["python"](f"conversation {i}", f"x = {i}")
    return lines["python"](f"conversation {i}", "x * 2").strip() == str(2 * i)


with concurrent.futures.ThreadPoolExecutor(50) as pool:
    print(sum(pool.map(talk, range(50))), "of 50 conversations")
END
step "50 of 50" "venv/bin/python fifty.py"
step "" "kill %1 && { wait %1 || [ \$? = 143 ]; }"
refused "" "coppice health"
