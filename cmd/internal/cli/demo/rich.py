import math
import struct
import zlib


class Table:
    """A table that shows itself as text, as Markdown and as HTML."""

    def __init__(self, head, rows):
        self.head, self.rows = head, rows

    def _lines(self):
        cells = [[str(c) for c in row] for row in [self.head, *self.rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.head))]
        return [" | ".join(c.rjust(w) for c, w in zip(row, widths)) for row in cells]

    def _repr_markdown_(self):
        head, *rows = (f"| {line} |" for line in self._lines())
        return "\n".join([head, "|" + "---:|" * len(self.head), *rows])

    def _repr_html_(self):
        row = lambda cells, tag: "<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in cells) + "</tr>"
        return "<table>" + row(self.head, "th") + "".join(row(r, "td") for r in self.rows) + "</table>"

    def __repr__(self):
        return "\n".join(self._lines())


class Picture:
    """A picture, as anything that has a PNG shows itself."""

    def __init__(self, png):
        self.png = png

    def _repr_png_(self):
        return self.png


class Data:
    """Data that a program can use, not only read."""

    def __init__(self, value):
        self.value = value

    def _repr_json_(self):
        return self.value

    def __repr__(self):
        return repr(self.value)


def plot(values, height=120, step=4):
    """Draws values from -1 to 1 as a PNG of one bit for each pixel."""
    width = (len(values) * step + 7) // 8 * 8
    rows = [bytearray(b"\xff" * (width // 8)) for _ in range(height)]
    for i, v in enumerate(values):
        y = round((1 - v) / 2 * (height - 1))
        for x in range(i * step, (i + 1) * step):
            rows[y][x // 8] &= ~(0x80 >> x % 8) & 0xFF

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(r) for r in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


wave = [math.sin(i / 8) * math.exp(-i / 60) for i in range(100)]
display(Table(["x", "sin(x)"], [(x, f"{math.sin(x):.3f}") for x in range(4)]))
for level in (0.75, 0.25, -0.25, -0.75):
    print("".join("█" if abs(v - level) <= 0.25 else " " for v in wave[::2]).rstrip())
display(Picture(plot(wave)))
display(Data({"points": len(wave), "range": [round(min(wave), 3), round(max(wave), 3)]}))
