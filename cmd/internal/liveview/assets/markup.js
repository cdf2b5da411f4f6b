// HTML and Markdown of cells, made again from a few harmless elements: nothing that a
// cell writes becomes part of the page as it is.
import { element } from "./dom.js";

const MAX_NODES = 20_000, MAX_DEPTH = 40, MAX_TEXT = 400_000;
// The elements that are kept; of all others only what is in them.
const kept = new Set("table thead tbody tfoot tr th td caption p br hr b strong i em u s code pre kbd samp sub sup ul ol li dl dt dd h1 h2 h3 h4 h5 h6 blockquote".split(" "));
// What is left out with all that is in it.
const dropped = new Set("script style template iframe object embed svg math head title noscript textarea select option button input form link meta base audio video canvas dialog".split(" "));
const lines = new Set("div section article header footer figure".split(" "));

// What has no place in a document that is only read: it would be reported, though it
// does nothing.
const raw = new Set(["script", "style", "svg", "math", "template", "iframe"]);

/**
 * bare takes the attributes of tags away, but for the spans of cells of a table, in one
 * pass. It makes nothing safe, which html does, element by element: it keeps the browser
 * from reporting that handlers and styles of a document that runs nothing are not run.
 * @param {string} text
 */
export function bare(text) {
  const lower = text.toLowerCase();
  let out = "", at = 0;
  for (;;) {
    const from = text.indexOf("<", at);
    if (from < 0) return out + text.slice(at);
    out += text.slice(at, from);
    if (text.startsWith("<!--", from)) {
      const over = text.indexOf("-->", from + 4);
      at = over < 0 ? text.length : over + 3;
      continue;
    }
    const name = /^<\/?([a-z][a-z0-9-]*)/i.exec(text.slice(from, from + 64));
    if (!name) { out += "<"; at = from + 1; continue; }
    let i = from + name[0].length, quote = "";
    while (i < text.length && (quote || text[i] !== ">")) {
      if (quote) { if (text[i] === quote) quote = ""; } else if (text[i] === '"' || text[i] === "'") quote = text[i];
      i++;
    }
    const spans = i - from > 4000 ? [] : text.slice(from, i).match(/\b(?:col|row)span\s*=\s*["']?\d{1,3}\b/gi) ?? [], tag = name[1].toLowerCase();
    at = i + 1;
    if (raw.has(tag) && name[0][1] !== "/") {
      const end = lower.length === text.length ? lower.indexOf("</" + tag, at) : -1;
      at = end < 0 ? text.length : end;
      continue;
    }
    if (raw.has(tag)) continue;
    out += [name[0], ...spans.map((s) => s.replace(/["']/g, ""))].join(" ") + ">";
  }
}

/**
 * html makes HTML of a cell again, from elements without any attribute but spans of
 * cells of a table.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function html(text) {
  const root = element("div", "markup");
  // A document of its own: it runs nothing and loads nothing.
  const parsed = new DOMParser().parseFromString(bare(text.slice(0, MAX_TEXT)), "text/html");
  let left = MAX_NODES;
  const copy = (/** @type {Node} */ from, /** @type {Element} */ to, /** @type {number} */ depth) => {
    for (const n of from.childNodes) {
      if (left-- <= 0) return;
      if (n.nodeType === Node.TEXT_NODE) { to.append(document.createTextNode(n.nodeValue ?? "")); continue; }
      if (n.nodeType !== Node.ELEMENT_NODE || depth >= MAX_DEPTH) continue;
      const e = /** @type {Element} */ (n), tag = e.localName;
      if (dropped.has(tag)) continue;
      if (!kept.has(tag)) { copy(e, lines.has(tag) ? to.appendChild(element("div")) : to, depth + 1); continue; }
      const made = element(/^h[1-6]$/.test(tag) ? "p" : tag, /^h[1-6]$/.test(tag) ? "heading" : "");
      for (const name of ["colspan", "rowspan"]) {
        const n = Number(e.getAttribute(name));
        if ((tag === "td" || tag === "th") && Number.isInteger(n) && n > 1 && n <= 100) made.setAttribute(name, String(n));
      }
      to.append(made);
      copy(e, made, depth + 1);
    }
  };
  copy(parsed.body, root, 0);
  if (left <= 0) root.append(element("p", "notice", "[the rest is not shown]"));
  return framed(root);
}

/** framed lets wide tables scroll by themselves, and names those without a head. @param {HTMLElement} root */
function framed(root) {
  for (const t of [...root.querySelectorAll("table")]) {
    if (t.parentElement?.closest("table")) continue;
    const frame = element("div", "frame");
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Table");
    t.replaceWith(frame);
    frame.append(t);
    for (const th of t.querySelectorAll("th")) if (!th.textContent?.trim()) th.replaceWith(cell(th));
  }
  return root;
}

/** cell is a heading without a text as an ordinary cell. @param {Element} th */
function cell(th) {
  const td = element("td");
  for (const a of ["colspan", "rowspan"]) if (th.hasAttribute(a)) td.setAttribute(a, th.getAttribute(a));
  td.append(...th.childNodes);
  return td;
}

/** hasTable says whether HTML shows something that its text form does not. @param {string} text */
export const hasTable = (text) => /<(table|ul|ol|h[1-6])[\s>]/i.test(text.slice(0, MAX_TEXT));

/** inline appends the text of a line with its marks. @param {Element} to @param {string} text @param {number} [depth] */
function inline(to, text, depth = 0) {
  const marks = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|\b_([^_\s][^_]*)_\b|~~([^~]+)~~|!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)/g;
  let at = 0;
  for (const m of depth < 6 ? text.matchAll(marks) : []) {
    to.append(document.createTextNode(text.slice(at, m.index)));
    at = m.index + m[0].length;
    if (m[1] !== undefined) to.append(element("code", "", m[1]));
    else if (m[7] !== undefined) to.append(target(m[7], m[8]));
    else {
      const e = element(m[2] ?? m[3] ? "strong" : m[6] ? "s" : "em");
      inline(e, m[2] ?? m[3] ?? m[4] ?? m[5] ?? m[6], depth + 1);
      to.append(e);
    }
  }
  to.append(document.createTextNode(text.slice(at)));
}

/** target is a link: to the web it can be followed, of others the address is shown. @param {string} text @param {string} to */
function target(text, to) {
  if (!/^https?:\/\/[^\s"'<>]+$/i.test(to)) return document.createTextNode(to ? `${text} (${to})` : text);
  const a = element("a", "", text || to);
  a.href = to;
  a.target = "_blank";
  a.rel = "noopener noreferrer";
  a.title = to;
  return a;
}

/** columns splits a row of a table. @param {string} line */
const columns = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));

/** markdown makes the common parts of Markdown: headings, lists, tables, code, quotes. @param {string} text @returns {HTMLElement} */
export function markdown(text) {
  const root = element("div", "markup"), all = text.slice(0, MAX_TEXT).replace(/\r\n?/g, "\n").split("\n").slice(0, MAX_NODES);
  for (let i = 0; i < all.length;) {
    const l = all[i];
    /** @type {RegExpExecArray | null} */
    let m;
    if (!l.trim()) { i++; continue; }
    if ((m = /^\s*(```+|~~~+)/.exec(l))) {
      const fence = m[1], end = all.findIndex((x, j) => j > i && x.trim().startsWith(fence)), code = all.slice(i + 1, end < 0 ? undefined : end);
      root.append(element("pre", "", code.join("\n")));
      i = end < 0 ? all.length : end + 1;
    } else if ((m = /^\s*(#{1,6})\s+(.*?)\s*#*\s*$/.exec(l))) {
      const p = element("p", "heading");
      inline(p, m[2]);
      root.append(p);
      i++;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(l)) { root.append(element("hr")); i++; }
    else if (l.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(all[i + 1] ?? "")) i = table(root, all, i);
    else if (/^\s*([-*+]|\d+[.)])\s+/.test(l)) i = list(root, all, i);
    else {
      const quote = /^\s*>/.test(l), p = element(quote ? "blockquote" : "p"), part = [];
      const ends = (/** @type {string} */ x) => !x.trim() || /^\s*(```|~~~|#{1,6}\s|[-*+]\s|\d+[.)]\s)/.test(x) || /^\s*>/.test(x) !== quote;
      do part.push(all[i++].replace(/^\s*>\s?/, quote ? "" : "$&")); while (i < all.length && !ends(all[i]));
      inline(p, part.join("\n"));
      root.append(p);
    }
  }
  return framed(root);
}

/** table draws one, and says at which line it ends. @param {Element} root @param {string[]} all @param {number} i */
function table(root, all, i) {
  const t = element("table"), head = element("thead"), body = element("tbody");
  const row = (/** @type {string} */ line, /** @type {string} */ tag) => {
    const tr = element("tr");
    for (const c of columns(line)) { const e = element(tag); inline(e, c); tr.append(e); }
    return tr;
  };
  head.append(row(all[i], "th"));
  for (i += 2; i < all.length && all[i].includes("|"); i++) body.append(row(all[i], "td"));
  t.append(head, body);
  root.append(t);
  return i;
}

/** list draws one, and says at which line it ends. @param {Element} root @param {string[]} all @param {number} i */
function list(root, all, i) {
  const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/, first = item.exec(all[i]), made = element(/\d/.test(first?.[2] ?? "") ? "ol" : "ul");
  let last = null;
  for (; i < all.length; i++) {
    const m = item.exec(all[i]);
    if (m && m[1].length <= (first?.[1].length ?? 0) + 1) { last = element("li"); inline(last, m[3]); made.append(last); }
    else if (m && last) { const sub = element("li"); inline(sub, m[3]); (last.querySelector("ul") ?? last.appendChild(element("ul"))).append(sub); }
    else if (last && /^\s+\S/.test(all[i])) inline(last, " " + all[i].trim());
    else break;
  }
  root.append(made);
  return i;
}
