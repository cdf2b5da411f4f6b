# %%
from dataclasses import dataclass
@dataclass
class Point:
    x: int
    y: float = 1.5

Point(1)
# %%
class Table:
    """What a data frame does."""

    def _repr_html_(self):
        return "<style>td {color: red}</style>\n<table>\n<tr><td>1</td></tr>\n</table>"

    def __repr__(self):
        return "   a\n0  1"

Table()
# %%
object()
# %%
lambda x: x
# %%
len
# %%
import collections
collections.OrderedDict(a=1), {1, 2, 3}, b"bytes", 1e300, float("nan"), 10**40
