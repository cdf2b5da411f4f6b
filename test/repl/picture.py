# Draws what a terminal shows. It reads {"rows": [[cell, ...], ...], "light": bool}
# from standard input and writes the PNG that its argument names. It needs Pillow
# and the fonts that come with matplotlib.
import json
import os
import sys

import matplotlib
from PIL import Image, ImageDraw, ImageFont

SIZE, EDGE = 26, 24
DARK = {
    "ground": "#1e1e2e", "text": "#cdd6f4", "31": "#f38ba8", "32": "#a6e3a1", "33": "#f9e2af",
    "34": "#89b4fa", "35": "#cba6f7", "36": "#94e2d5",
}
LIGHT = {
    "ground": "#ffffff", "text": "#24292f", "31": "#cf222e", "32": "#116329", "33": "#7d4e00",
    "34": "#0550ae", "35": "#8250df", "36": "#1b7c83",
}


def rgb(text):
    return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))


def colour(theme, sgr, default):
    """The colour of an SGR parameter."""
    if not sgr:
        return rgb(theme[default])
    parts = sgr.split(";")
    if parts[0] in ("38", "48") and parts[1] == "2":
        return tuple(int(p) for p in parts[2:5])
    if parts[0] in ("38", "48"):
        n = int(parts[2])
        if n >= 232:
            return (8 + 10 * (n - 232),) * 3
        if n >= 16:
            steps = (0, 95, 135, 175, 215, 255)
            return steps[(n - 16) // 36], steps[(n - 16) // 6 % 6], steps[(n - 16) % 6]
        sgr = str(30 + n % 8)
    return rgb(theme[sgr])  # a colour that our own text does not use is an error


def main(path):
    shown = json.load(sys.stdin)
    theme, rows = LIGHT if shown["light"] else DARK, shown["rows"]
    fonts = os.path.join(matplotlib.get_data_path(), "fonts", "ttf")
    plain = ImageFont.truetype(os.path.join(fonts, "DejaVuSansMono.ttf"), SIZE)
    bold = ImageFont.truetype(os.path.join(fonts, "DejaVuSansMono-Bold.ttf"), SIZE)
    ascent, descent = plain.getmetrics()
    width, height = round(plain.getlength("M")), ascent + descent
    picture = Image.new("RGB", (len(rows[0]) * width + 2 * EDGE, len(rows) * height + 2 * EDGE), rgb(theme["ground"]))
    draw = ImageDraw.Draw(picture)
    for y, row in enumerate(rows):
        for x, cell in enumerate(row):
            left, top = EDGE + x * width, EDGE + y * height
            ink, ground = colour(theme, cell.get("ink"), "text"), colour(theme, cell.get("ground"), "ground")
            if cell.get("dim"):
                ink = tuple((3 * a + 2 * b) // 5 for a, b in zip(ink, ground))
            if cell.get("ground"):
                draw.rectangle((left, top, left + width - 1, top + height - 1), fill=ground)
            if cell["text"] == "▀":
                draw.rectangle((left, top, left + width - 1, top + height // 2 - 1), fill=ink)
            elif cell["text"].strip():
                draw.text((left, top), cell["text"], font=bold if cell.get("bold") else plain, fill=ink)
    picture.quantize(128).save(path, optimize=True)


main(sys.argv[1])
