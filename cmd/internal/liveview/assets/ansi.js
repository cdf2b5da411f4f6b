// The colours of terminals, as spans with classes: colours that can be read on the
// page's ground take the place of any others.
import { element } from "./dom.js";

/** @typedef {{fg: number | null, bg: number | null, bold: boolean, dim: boolean, italic: boolean, under: boolean, inverse: boolean}} Style */

/** fresh is a style that changes nothing. @returns {Style} */
export const fresh = () => ({ fg: null, bg: null, bold: false, dim: false, italic: false, under: false, inverse: false });

// One escape sequence: CSI with its parameters and its final letter, OSC, or two letters.
const sequence = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[@-Z\\-_])/g;

/** clean takes escape sequences out. @param {string} text */
export const clean = (text) => text.replace(sequence, "").replace(/\x1b/g, "");

/** nearest is the one of eight colours that three parts are like. @param {number} r @param {number} g @param {number} b @returns {number | null} */
export function nearest(r, g, b) {
  const most = Math.max(r, g, b), least = Math.min(r, g, b);
  if (most - least < 40) return most > 200 || most < 60 ? null : 8; // grey; the text's own colour
  const half = (most + least) / 2;
  return (r > half ? 1 : 0) | (g > half ? 2 : 0) | (b > half ? 4 : 0);
}

/** indexed is a colour of the table of 256. @param {number} n @returns {number | null} */
function indexed(n) {
  if (n < 8) return n;
  if (n < 16) return n === 8 ? 8 : n - 8;
  if (n >= 232) { const v = 8 + 10 * (n - 232); return nearest(v, v, v); }
  const c = n - 16, part = (/** @type {number} */ v) => (v ? 55 + 40 * v : 0);
  return nearest(part(Math.floor(c / 36)), part(Math.floor(c / 6) % 6), part(c % 6));
}

/** apply changes a style as the parameters of an SGR sequence say. @param {Style} style @param {string} params @returns {Style} */
export function apply(style, params) {
  const list = params.split(/[;:]/).map((p) => (p === "" ? 0 : Number(p))), s = { ...style };
  for (let i = 0; i < list.length; i++) {
    const n = list[i];
    if (n === 0) Object.assign(s, fresh());
    else if (n === 1) s.bold = true;
    else if (n === 2) s.dim = true;
    else if (n === 3) s.italic = true;
    else if (n === 4) s.under = true;
    else if (n === 7) s.inverse = true;
    else if (n === 22) s.bold = s.dim = false;
    else if (n === 23) s.italic = false;
    else if (n === 24) s.under = false;
    else if (n === 27) s.inverse = false;
    else if (n >= 30 && n <= 37) s.fg = n - 30;
    else if (n >= 90 && n <= 97) s.fg = n === 90 ? 8 : n - 90;
    else if (n === 39) s.fg = null;
    else if (n >= 40 && n <= 47) s.bg = n - 40;
    else if (n >= 100 && n <= 107) s.bg = n - 100;
    else if (n === 49) s.bg = null;
    else if (n === 38 || n === 48) {
      let colour = null;
      if (list[i + 1] === 5) { colour = indexed(list[i + 2] ?? 0); i += 2; }
      else if (list[i + 1] === 2) { colour = nearest(list[i + 2] ?? 0, list[i + 3] ?? 0, list[i + 4] ?? 0); i += 4; }
      if (n === 38) s.fg = colour; else s.bg = colour;
    }
  }
  return s;
}

/** classOf is the class of a span. @param {Style} s */
export function classOf(s) {
  const out = [];
  if (s.fg !== null) out.push("fg" + s.fg);
  if (s.bg !== null) out.push("bg" + s.bg);
  if (s.bold) out.push("bold");
  if (s.dim) out.push("dim");
  if (s.italic) out.push("italic");
  if (s.under) out.push("under");
  if (s.inverse) out.push("inverse");
  return out.join(" ");
}

/**
 * pieces splits a text by its styles, and says which style comes after it.
 * @param {string} text @param {Style} style
 * @returns {{list: {text: string, cls: string}[], style: Style}}
 */
export function pieces(text, style) {
  /** @type {{text: string, cls: string}[]} */
  const list = [];
  let at = 0;
  const add = (/** @type {string} */ part) => {
    const clear = part.replace(/\x1b/g, "");
    if (clear) list.push({ text: clear, cls: classOf(style) });
  };
  for (const m of text.matchAll(sequence)) {
    add(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] === "m") style = apply(style, m[1]);
  }
  add(text.slice(at));
  return { list, style };
}

/** draw appends a text to an element, and returns the style after it. @param {Element} to @param {string} text @param {Style} [style] */
export function draw(to, text, style = fresh()) {
  const { list, style: after } = pieces(text, style);
  for (const p of list) to.append(p.cls ? element("span", p.cls, p.text) : document.createTextNode(p.text));
  return after;
}

/**
 * overwrite is a line as a terminal shows it: after a carriage return the text begins
 * at its left again.
 * @param {string} line
 */
export function overwrite(line) {
  if (!line.includes("\r")) return line;
  const parts = line.replace(/\r+$/, "").split("\r");
  let out = "";
  for (const p of parts) {
    if (/\x1b\[[02]?K/.test(p) || clean(p).length >= clean(out).length || out.includes("\x1b")) out = p;
    else out = p + out.slice(p.length);
  }
  return out;
}
