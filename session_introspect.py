# Answers Session.Complete and Session.Inspect from inside a session. It runs in a
# namespace of its own with these names: ns is the namespace of the session, show its
# display; what, code and cursor are the question, cursor in characters.
import inspect
import re
import rlcompleter


def complete():
    line = code[:cursor].rsplit("\n", 1)[-1]  # noqa: F821
    word = re.search(r"[\w.]*$", line).group()
    shell = ns["get_ipython"]() if "get_ipython" in ns else None  # noqa: F821
    if hasattr(shell, "complete"):
        word, found = shell.complete(None, line, len(line))
    elif word:
        completer = rlcompleter.Completer(ns)  # noqa: F821
        found = []
        while len(found) < 200:
            one = completer.complete(word, len(found))
            if one is None:
                break
            found.append(one)
    else:
        found = []
    found = list(dict.fromkeys(m.strip() for m in found[:200]))
    return {"matches": found, "start": cursor - len(word)}  # noqa: F821


def inspected():
    before = re.search(r"[\w.]*$", code[:cursor]).group()  # noqa: F821
    name = before + re.match(r"\w*", code[cursor:]).group()  # noqa: F821
    if not before and code[:cursor].rstrip().endswith("("):  # noqa: F821
        name = re.search(r"([\w.]*)\s*\(\s*$", code[:cursor]).group(1)  # noqa: F821
    if not all(part.isidentifier() for part in name.split(".")):
        return {"text": ""}
    try:
        value = eval(name, dict(ns))  # noqa: F821
    except Exception:
        return {"text": ""}
    try:
        head = name + str(inspect.signature(value))
    except (TypeError, ValueError):
        head = f"{name}: {type(value).__name__}"
    doc = inspect.getdoc(value) if callable(value) or inspect.ismodule(value) else repr(value)
    return {"text": (head + "\n" + (doc or "")).strip()[:4000]}


show({"application/json": {"complete": complete, "inspect": inspected}[what]()}, raw=True)  # noqa: F821
