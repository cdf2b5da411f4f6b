"""Compares what the same notebooks came to on ipykernel and on kernels of coppice.

What differs in every process is set equal: addresses, times, the names of temporary files, and
where a stream is cut in pieces. What is meant to differ is told in FORMS, for the runner's
form of errors, and cell by cell in TOLD. A difference that is not told is wrong, and so is one
that is told and not there.
"""

import json
import pathlib
import re

import nbformat
from told import FORMS, SOMETIMES, TOLD, WIDGETS

FAILED = "failed"  # how papermill says that a cell raised
TOOLS = ("nbconvert", "papermill")
# The tags of the cells that papermill puts into a notebook with an error.
MARKERS = ("papermill-error-cell-tag", "papermill-error-cell")


def normal(value):
    """A value without what differs from process to process."""
    if isinstance(value, str):
        value = re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", value)
        value = re.sub(r"(/[\w.+-]+)*/ipykernel_\d+/\d+\.py", "ipykernel_PID/N.py", value)
        return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "TIME", value)
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    return value


def joined(outputs: list) -> list:
    """Outputs with the pieces of a stream that follow each other in one."""
    whole: list = []
    for one in outputs:
        if whole and one["output_type"] == whole[-1]["output_type"] == "stream" and one["name"] == whole[-1]["name"]:
            whole[-1]["text"] += one["text"]
        else:
            whole.append(json.loads(json.dumps(one)))
    return [normal(one) for one in whole]


class Run:
    """What one tool made of a notebook on one kernel."""

    def __init__(self, path: pathlib.Path):
        book = nbformat.read(path, 4)
        nbformat.validate(book)
        cells = [c for c in book.cells if not set(c.metadata.get("tags", [])) & set(MARKERS)]
        self.cells = [(c.source, c.get("execution_count"), joined(c.get("outputs", []))) for c in cells]
        self.widgets = normal(book.metadata.get("widgets"))
        self.statuses = [c.metadata.get("papermill", {}).get("status") for c in cells]


def in_form(form: str, outputs: list) -> list:
    """Outputs with one form of the runner set equal to IPython's."""
    if form == "tracebacks":
        return [{k: v for k, v in one.items() if k != "traceback"} for one in outputs]
    text = json.dumps(outputs)
    return json.loads(re.sub(r"ipykernel_PID/N\.py|<cell \d+>", "CELL", text))


def compare(kernel: str, name: str, want: Run, got: Run) -> tuple[dict, list]:
    """Compares two runs. Returns why which cells differ, as it was told, and what was not told."""
    why, bad = {}, []
    told = TOLD.get((kernel, name), {})
    if [source for source, _, _ in want.cells] != [source for source, _, _ in got.cells]:
        return why, ["the cells are others"]
    for n, ((source, *one), (_, *other)) in enumerate(zip(want.cells, got.cells)):
        differs = one != other
        for form in FORMS.get(kernel, ()):
            if one != other:
                one, other = ([count, in_form(form, outputs)] for count, outputs in (one, other))
                if one == other:
                    why[n] = FORMS[kernel][form]
        if one != other and n in told:
            why[n] = told[n]
        elif one != other:
            bad.append(f"cell {n} ({source.splitlines()[0] if source else ''}):\n      ipykernel: {json.dumps(one)[:1500]}\n      {kernel}: {json.dumps(other)[:1500]}")
        elif n in told and not differs and told[n] not in SOMETIMES:
            bad.append(f"cell {n} is the same, and is told to differ")
        if FAILED in (want.statuses[n], got.statuses[n]):  # papermill ends with the first error
            if None is not want.statuses[n] != got.statuses[n] and n not in told:
                bad.append(f"cell {n}: {want.statuses[n]} on ipykernel, {got.statuses[n]} on {kernel}")
            break
    if want.widgets != got.widgets:
        if WIDGETS in told:
            why[WIDGETS] = told[WIDGETS]
        else:
            bad.append("the state of the widgets is another")
    return why, bad


def tell(folder: pathlib.Path, names: list, kernels: tuple, times: dict) -> list:
    """Prints how the runs of notebooks compare, on the first of the kernels and on the others.
    Returns what is not as it was told."""
    wrong, counts = [], {}
    reference, *others = kernels

    def line(*key):
        took = (times.get((key[0], kernel, *key[1:])) for kernel in kernels)
        print(f"{' '.join(key):30} " + "  ".join(f"{k} {'   recorded' if t is None else f'{t:7.2f} s'}" for k, t in zip(kernels, took)), flush=True)

    line("start")
    for tool in TOOLS:
        for name in names:
            line(tool, name)
            want = Run(folder / f"{tool}-{reference}" / f"{name}.ipynb")
            for kernel in others:
                why, bad = compare(kernel, name, want, Run(folder / f"{tool}-{kernel}" / f"{name}.ipynb"))
                for reason, cells in grouped(why).items():
                    print(f"    {kernel}, {'cell ' if WIDGETS not in cells else ''}{', '.join(map(str, cells))}: {reason}")
                wrong += [f"{tool}, {kernel}, {name}: {b}" for b in bad]
                counts.setdefault((tool, kernel), []).append("wrong" if bad else "differ" if why else "same")
    for (tool, kernel), ended in counts.items():
        both = [name for name in names if (tool, reference, name) in times]
        spent = {k: sum(times[tool, k, name] for name in both) for k in (reference, kernel)}
        print(f"{tool} on {kernel}: {ended.count('same')} of {len(ended)} notebooks are the same as on {reference}, {ended.count('differ')} differ as told, {ended.count('wrong')} do not; {spent[kernel]:.1f} s, {reference} {spent[reference]:.1f} s")
    return wrong


def grouped(why: dict) -> dict:
    """The cells of each reason."""
    of: dict = {}
    for n, reason in why.items():
        of.setdefault(reason, []).append(n)
    return of
