"""Answers questions about notebooks with the official nbformat package.

Reads JSON lines from standard input and writes one answer a line:
  {"do": "validate", "text": ...}  "" or why the notebook breaks the schema
  {"do": "upgrade", "text": ...}   the notebook as nbformat 4.5, without ids
  {"do": "read", "text": ...}      the notebook as nbformat 4.5 reads it
"""

import json
import sys
import warnings

# It takes more than a second to be imported, for formats that notebooks have not.
sys.modules["rfc3987_syntax"] = None

import nbformat
from nbformat.validator import get_validator

warnings.simplefilter("ignore")


def validate(text):
    nb = json.loads(text)
    minor = nb.get("nbformat_minor")
    # nbformat.validate mends missing ids before it looks; the schema does not.
    major = 4 if "cells" in nb else 3
    errors = get_validator(major, minor if isinstance(minor, int) else 5 if major == 4 else 0).iter_errors(nb)
    reasons = [str(e.message)[:200] for e in errors]
    if not reasons and major == 4:
        # It also mends ids that repeat, so these are looked at first.
        ids = [c["id"] for c in nb["cells"] if "id" in c]
        if len(ids) != len(set(ids)):
            reasons = ["ids repeat"]
        nbformat.validate(nb)
    return "; ".join(reasons)


def upgrade(text):
    nb = nbformat.convert(nbformat.reader.reads(text), 4)
    nbformat.v4.rwbase.strip_transient(nb)
    for cell in nb.cells:
        cell.pop("id", None)
    return nbformat.v4.rwbase.split_lines(nb)


def read(text):
    return nbformat.reads(text, as_version=4)


for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = globals()[question["do"]](question["text"])
    except Exception as e:
        answer = f"{type(e).__name__}: {e}"
    print(json.dumps(answer), flush=True)
