// Small time series, drawn as SVG.

const NS = "http://www.w3.org/2000/svg", W = 240, H = 44;

/** svg makes an element of a drawing. @param {string} tag @param {Record<string, any>} attributes */
function svg(tag, attributes) {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, String(v));
  return e;
}

/** spark makes a drawing that Spark.draw fills. */
export class Spark {
  /** @param {string[]} classes one for each line */
  constructor(classes) {
    this.e = svg("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", class: "spark" });
    this.parts = classes.map((cls, i) => {
      const area = svg("path", { class: "area " + cls }), line = svg("path", { class: "line " + cls });
      if (i === 0) this.e.append(area);
      this.e.append(line);
      return { area, line };
    });
    this.drawn = "";
  }

  /**
   * draw shows values from 0 on; the last is at the right, and null is a gap.
   * @param {(number | null)[][]} lines @param {number} room how many values fit @param {string} label what a screen reader says
   */
  draw(lines, room, label) {
    const most = Math.max(1e-9, ...lines.flat().map((v) => v ?? 0)), key = label + lines.map((l) => `${l.length}:${l.at(-1)}`).join();
    if (key === this.drawn) return;
    this.drawn = key;
    this.e.setAttribute("aria-label", label);
    this.parts.forEach(({ area, line }, i) => {
      const list = lines[i] ?? [], step = W / Math.max(1, room - 1), left = W - step * (list.length - 1);
      let path = "", open = false;
      list.forEach((v, at) => {
        if (v === null) { open = false; return; }
        path += `${open ? "L" : "M"}${(left + at * step).toFixed(1)} ${(H - 2 - (H - 6) * v / most).toFixed(1)}`;
        open = true;
      });
      line.setAttribute("d", path);
      area.setAttribute("d", i === 0 && list.length > 1 && !list.includes(null) ? `${path}L${W} ${H}L${left.toFixed(1)} ${H}Z` : "");
    });
  }
}
