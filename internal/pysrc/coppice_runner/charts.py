"""The data of what is shown: charts of matplotlib, and tables of pandas.

Both are looked at only when the user has imported them, and only in sessions that ask for
it with COPPICE_CHARTS in their environment. What cannot be read is left out: data never
keeps a figure or a table from being shown. The module uses nothing of the others, because
Jupyter kernels get it by itself."""

import os
import re
import sys

CHART = "application/vnd.coppice.chart+json"
TABLE = "application/vnd.coppice.table+json"

# How many values one chart or table may have; one with more has no data.
MOST = 200_000


def wanted():
    """Says whether the session asks for data."""
    return os.environ.get("COPPICE_CHARTS", "0") not in ("", "0")


def forms(value):
    """Returns the data of a value as a MIME bundle, empty when it has none."""
    made = {}
    try:
        if is_a(value, "matplotlib.figure", "Figure"):
            found = chart(value)
            if found:
                made[CHART] = found
        elif is_a(value, "pandas", "DataFrame"):
            found = table(value)
            if found is not None:
                made[TABLE] = found
    except Exception:
        pass  # it has a shape that no one has thought of
    return made


def is_a(value, module, name):
    """Says whether value is of a class of a module, which is not imported for that."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


class TooMuch(Exception):
    """There are more values than MOST."""


def plain(value):
    """Returns a value as JSON has it: numbers, texts, None for what is no number."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        if type(value).__name__ == "datetime64":
            return str(value.astype("datetime64[s]"))
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else float(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if hasattr(value, "isoformat"):
        return None if type(value).__name__ == "NaTType" else value.isoformat()
    if type(value).__name__ in ("NAType", "MaskedConstant"):
        return None
    try:
        return plain(float(value))
    except (TypeError, ValueError):
        return str(value)


def number(value):
    """Returns a number without the noise that the last bits of a float hold."""
    return plain(float("%.12g" % float(value)))


# Tables.


def table(frame):
    """Returns the columns of a table by name; None when there are too many values."""
    if frame.shape[0] * frame.shape[1] > MOST:
        return None
    return {str(name): [plain(v) for v in frame.iloc[:, at].tolist()] for at, name in enumerate(frame.columns)}


# Charts.


def chart(figure):
    """Returns the data of a figure; None when nothing is drawn in it."""
    axes = [ax for ax in figure.get_axes() if ax.get_label() != "<colorbar>"]
    if not any(ax.has_data() for ax in axes):
        return None
    if len(axes) == 1:
        return of_axes(axes[0])
    title = getattr(figure, "_suptitle", None)
    return {"type": "superchart", "title": title.get_text() or None if title is not None else None, "elements": [of_axes(ax) for ax in axes]}


def of_axes(ax):
    """Returns the data of one diagram. Each kind is told by what it consists of."""
    made = {"type": "unknown", "title": ax.get_title() or None, "elements": []}
    patches = list(ax.patches)
    if patches and all(type(p).__name__ == "Wedge" for p in patches):
        return dict(made, type="pie", elements=[slice_(p) for p in patches])
    bars = [c for c in ax.containers if type(c).__name__ == "BarContainer"]
    lines = [line for line in ax.get_lines() if not straight(ax, line)]
    dots = [c for c in ax.collections if type(c).__name__ == "PathCollection"]
    boxes = [] if bars or dots else boxes_of(ax)
    kinds = [bool(bars), bool(dots), bool(boxes) or bool(lines)]
    if sum(kinds) != 1 or (patches and not bars and not boxes):
        return dict(made, **labels(ax))
    if bars:
        return bar_chart(ax, dict(made, type="bar"), bars)
    if dots:
        elements = [points(c.get_label(), c.get_offsets()) for c in dots]
        return dict(made, type="scatter", elements=elements, **labels(ax), **scales(ax))
    if boxes:
        return box_chart(ax, dict(made, type="box_and_whisker"), *boxes)
    elements = [points(line_label(line), zip(line.get_xdata(), line.get_ydata())) for line in lines]
    return dict(made, type="line", elements=elements, **labels(ax), **scales(ax))


def straight(ax, line):
    """Says whether a line belongs to the diagram and not to its data, as axhline and
    axvline make them: it is given in parts of the diagram."""
    return line.get_transform() not in (ax.transData,) and len(line.get_xdata()) == 2


_UNIT = re.compile(r"\(([^()]+)\)|\[([^\[\]]+)\]")


def labels(ax):
    """Returns the labels of both axes, and the units in them."""
    made = {}
    for name, text in (("x", ax.get_xlabel()), ("y", ax.get_ylabel())):
        unit = _UNIT.search(text or "")
        made[name + "_label"] = text or None
        made[name + "_unit"] = (unit.group(1) or unit.group(2)) if unit else None
    return made


def turned(made):
    """Exchanges what is said of the axes, for what lies on its side."""
    other = {"x": "y", "y": "x"}
    return dict(made, **{other[k[0]] + k[1:]: v for k, v in made.items() if k[:2] in ("x_", "y_")})


def ticks(axis):
    """Returns the places on an axis that are marked, and their labels."""
    places = [float(v) for v in axis.get_ticklocs()]
    texts = [t.get_text() for t in axis.get_ticklabels()]
    return places, texts


def scales(ax):
    """Returns the scale of each axis, its ticks and their labels."""
    made = {}
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        places, texts = ticks(axis)
        converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
        kind, scale = type(converter).__name__, axis.get_scale()
        if "Date" in kind:
            dates = sys.modules["matplotlib.dates"]
            scale, shown = "datetime", [dates.num2date(v).isoformat() for v in places]
        else:
            shown = [number(v) for v in places]
            named = bool(texts) and shown == list(range(len(shown))) and any(t != "%g" % v for t, v in zip(texts, shown))
            if scale == "linear" and ("Category" in kind or named):
                scale = "categorical"
        made[name + "_ticks"], made[name + "_tick_labels"], made[name + "_scale"] = shown, texts, scale
    return made


def points(label, pairs):
    """Returns one row of points."""
    found = []
    for x, y in pairs:
        found.append([plain(x), plain(y)])
        if len(found) > MOST:
            raise TooMuch
    return {"label": label, "points": found}


def line_label(line):
    """Returns the name of a line; matplotlib calls one without a name _child0."""
    label = line.get_label()
    return "Line " + label[6:] if label.startswith("_child") else label


def slice_(wedge):
    """Returns one slice of a pie."""
    return {"label": wedge.get_label(), "angle": number(abs(wedge.theta2 - wedge.theta1)), "radius": number(wedge.r)}


def nearest(places, texts, at):
    """Returns the label of the tick at a place, else the place itself."""
    for place, text in zip(places, texts):
        if text and abs(place - at) < 1e-6 * max(1.0, abs(place)):
            return text
    return "%g" % at


def bar_chart(ax, made, containers):
    """Completes a bar chart. One that lies on its side is told as if it stood."""
    across = all(getattr(c, "orientation", None) == "horizontal" for c in containers)
    places, texts = ticks(ax.yaxis if across else ax.xaxis)
    # Of several groups the bars stand beside the ticks, in their order.
    tidy = [t for t in texts if t]
    made["elements"] = []
    for n, container in enumerate(containers):
        group = container.get_label()
        group = "Group %d" % n if group.startswith("_container") else group
        for k, bar in enumerate(container):
            middle = bar.get_y() + bar.get_height() / 2 if across else bar.get_x() + bar.get_width() / 2
            label = nearest(places, texts, middle)
            if len(containers) > 1 and len(tidy) == len(container):
                label = tidy[k]
            made["elements"].append({"label": label, "group": group, "value": number(bar.get_width() if across else bar.get_height())})
    made.update(labels(ax))
    return turned(made) if across else made


# Box plots consist of lines and patches that nothing holds together: what belongs to a
# box is found by where it stands.


def _shape(vertices):
    xs, ys = [float(v[0]) for v in vertices], [float(v[1]) for v in vertices]
    return {"x": (min(xs), max(xs)), "y": (min(ys), max(ys))}


def boxes_of(ax):
    """Returns the boxes of a box plot, and the axis on which their values are; an empty
    list when it is none."""
    lines = [(list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))) for line in ax.get_lines() if _numbers(line)]
    boxes = [_shape(p.get_path().vertices[:-1]) for p in ax.patches if type(p).__name__ == "PathPatch"]
    boxes += [_shape(list(zip(xs, ys))) for xs, ys in lines if len(xs) >= 5 and (xs[0], ys[0]) == (xs[-1], ys[-1])]
    if not boxes or len(ax.patches) > len(boxes):
        return []
    for values, place in (("y", "x"), ("x", "y")):
        pairs = [dict(zip("xy", line)) for line in lines]
        found = [_box(box, [(p[place], p[values]) for p in pairs], place, values) for box in boxes]
        if all(found):
            return [found, values]
    return []


def _numbers(line):
    try:
        list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))
    except (TypeError, ValueError):
        return False
    return True


def _box(box, lines, place, values):
    """Returns one box with its whiskers; None when none are there on this axis."""
    (left, right), (low, high) = box[place], box[values]
    middle, near = (left + right) / 2, 1e-9 * max(1.0, abs(left), abs(right)) + 1e-9
    made = {"at": middle, "first_quartile": low, "third_quartile": high, "median": None, "min": None, "max": None, "outliers": []}
    widest = 0.0  # of the lines across: the median's; the ends of whiskers are shorter
    for at, value in lines:
        inside = all(left - near <= p <= right + near for p in at)
        if not at or not inside:
            continue
        centred = all(abs(p - middle) <= near for p in at)
        if len(at) == 2 and centred and value[0] != value[1]:
            ends = sorted(value)
            if abs(ends[1] - low) <= near or ends[1] <= low:
                made["min"] = ends[0]
            elif abs(ends[0] - high) <= near or ends[0] >= high:
                made["max"] = ends[1]
        elif len(at) == 2 and centred:  # a whisker without length
            for name, quartile in (("min", low), ("max", high)):
                if value[0] == quartile and made[name] is None:
                    made[name] = quartile
        elif len(at) == 2 and value[0] == value[1] and low - near <= value[0] <= high + near:
            if abs(at[1] - at[0]) > widest:
                widest, made["median"] = abs(at[1] - at[0]), value[0]
        elif centred:
            made["outliers"] += value
    return made if made["median"] is not None and made["min"] is not None and made["max"] is not None else None


def box_chart(ax, made, boxes, values):
    """Completes a box plot. One that lies on its side is told as if it stood."""
    places, texts = ticks(ax.xaxis if values == "y" else ax.yaxis)
    for box in boxes:
        at = box.pop("at")
        element = {k: [number(v) for v in v_] if k == "outliers" else number(v_) for k, v_ in box.items()}
        made["elements"].append(dict(element, label=nearest(places, texts, at)))
    made.update(labels(ax))
    return made if values == "y" else turned(made)
