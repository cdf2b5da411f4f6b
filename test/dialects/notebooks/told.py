"""What differs between ipykernel and kernels of coppice, and why."""

CELLS = "cells are named <cell N>, and not after a temporary file"
TRACEBACKS = "the traceback is in CPython's form"

# What the runner writes in another form, in all notebooks.
FORMS = {"runner": {"names": CELLS, "tracebacks": TRACEBACKS}}

NO_LOOP = "no event loop runs between the cells of the runner: a task has to be awaited where it is made"
LATE = "what is printed between two cells is shown by the next one, and is lost on ipykernel"
REPR = "the runner shows values by repr(), IPython by its own printer"
SYNTAX = "a SyntaxError says what is wrong, and not that the input is incomplete"
LEAVING = "IPython warns of SystemExit"
FORMATTER = "a rich form that raises is left out, IPython shows its traceback"
NO_IPYTHON = "the runner is not IPython: no get_ipython, no In and Out, some of the magics"
AFTER = "it needs what an earlier cell could not make"
TERMINAL = "a command of the runner writes to a pipe, one of IPython to a terminal"
USAGE = "a magic that is not there is an error, on ipykernel a line on stderr"
COUNT = "name? is answered by the server, and not counted by IPython"
STDIN = "another error says that no one can be asked"
STOPS = "papermill ends with an error that a widget has taken, nbconvert, which made what it is compared with, does not"

WIDGETS = "the state of the widgets"  # in the place of a cell

# What else differs: by kernel and notebook, the cells, counted from 0, with the reason.
TOLD = {
    ("runner", "async"): {5: NO_LOOP, 6: AFTER},
    ("runner", "classes"): {2: REPR, 3: REPR, 4: REPR, 5: REPR},
    ("runner", "errors"): {4: SYNTAX, 6: LEAVING},
    ("runner", "formatters"): {0: FORMATTER},
    ("runner", "history"): {2: NO_IPYTHON, 7: NO_IPYTHON},
    ("runner", "input"): {0: STDIN, 1: STDIN},
    ("runner", "large"): {2: REPR},
    ("runner", "magics"): {2: NO_IPYTHON, 4: TERMINAL, 8: USAGE, 10: NO_IPYTHON, 11: NO_IPYTHON},
    ("runner", "pager"): {1: NO_IPYTHON, 2: NO_IPYTHON},
    ("runner", "updates"): {6: NO_IPYTHON},
    ("runner", "widgets"): {0: NO_IPYTHON, 1: AFTER, 2: AFTER, 3: AFTER, 4: AFTER, 5: AFTER, WIDGETS: AFTER},
    ("gateway", "async"): {6: LATE},
    ("gateway", "errors"): {4: SYNTAX},
    ("gateway", "magics"): {8: USAGE},
    ("gateway", "pager"): {1: COUNT},
    ("gateway", "widgets"): {WIDGETS: STOPS},
}

# What is a matter of time, and may be the same: these reasons.
SOMETIMES = {LATE}
