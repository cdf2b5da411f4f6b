// The output of one execution, as it comes: text with its colours, pictures, tables.
import { button, element } from "./dom.js";
import * as ansi from "./ansi.js";
import * as markup from "./markup.js";
import { many } from "./words.js";

const MAX_OUTPUT = 400_000; // characters that are shown of one execution
const MAX_BLOCK = 60_000; // of one piece

/** Screen shows events in an element. */
export class Screen {
  /** @param {HTMLElement} at */
  constructor(at) {
    this.at = at;
    this.size = 0;
    this.clearNext = false;
    /** @type {Map<string, Element>} */
    this.displays = new Map();
    /** @type {{kind: string, e: HTMLElement, line: HTMLElement, raw: string, style: ansi.Style, size: number} | null} */
    this.stream = null;
    /** @type {Element | null} */
    this.cut = null;
  }

  /** add shows an event. @param {any} e */
  add(e) {
    const end = this.at.scrollHeight - this.at.scrollTop - this.at.clientHeight < 40;
    switch (e.type) {
      case "stdout": case "stderr": this.text(e.type, e.text); break;
      case "display": case "result": this.bundle(e); break;
      case "error": this.piece(traceback(e), String(e.message ?? "").length + 200); break;
      case "clear": if (e.wait) this.clearNext = true; else this.clear(); break;
      case "notice": this.piece(element("p", "notice", e.text), e.text.length); break;
      default: return; // status, host calls, comms
    }
    if (end) this.at.scrollTop = this.at.scrollHeight;
  }

  clear() {
    this.at.replaceChildren();
    this.displays.clear();
    this.size = 0;
    this.clearNext = false;
    this.stream = this.cut = null;
  }

  /** piece appends what is no stream. @param {Element} e @param {number} size */
  piece(e, size) {
    if (this.clearNext) this.clear();
    this.stream = null;
    /** @type {any} */ (e).dataset.size = size;
    this.size += size;
    this.at.append(e);
    this.bound();
  }

  /**
   * text appends to the last run of the same kind. The last line is drawn again when it
   * grows: a carriage return overwrites it, as in a terminal.
   * @param {string} kind @param {string} text
   */
  text(kind, text) {
    if (this.clearNext) this.clear();
    let s = this.stream;
    if (!s || s.kind !== kind || s.size > MAX_BLOCK) {
      const e = element("div", "text " + kind), line = element("span");
      e.append(line);
      s = this.stream = { kind, e, line, raw: s?.kind === kind ? s.raw : "", style: s?.kind === kind ? s.style : ansi.fresh(), size: 0 };
      if (s.raw) this.at.lastElementChild?.lastElementChild?.remove(); // the line that goes on
      this.at.append(e);
    }
    s.size += text.length;
    this.size += text.length;
    s.e.dataset.size = String(s.size);
    const lines = (s.raw + text).replace(/\r\n/g, "\n").split("\n");
    s.raw = lines.pop() ?? "";
    if (s.raw.length > MAX_BLOCK) s.raw = s.raw.slice(-MAX_BLOCK);
    if (lines.length) {
      const made = document.createDocumentFragment();
      for (const l of lines) s.style = ansi.draw(/** @type {any} */ (made), ansi.overwrite(l) + "\n", s.style);
      s.e.insertBefore(made, s.line);
    }
    s.line.replaceChildren();
    ansi.draw(s.line, ansi.overwrite(s.raw), s.style);
    this.bound();
  }

  /** bound takes the beginning away when there is too much. */
  bound() {
    while (this.size > MAX_OUTPUT && this.at.childElementCount > 2) {
      const first = /** @type {any} */ (this.cut ? this.cut.nextElementSibling : this.at.firstElementChild);
      this.size -= Number(first.dataset.size ?? 0);
      first.remove();
      this.cut ??= this.at.insertBefore(element("p", "notice", "The beginning is not shown; the whole output is an artifact."), this.at.firstChild);
    }
  }

  /** bundle shows one thing in the best of its forms. @param {any} e */
  bundle(e) {
    if (this.clearNext) this.clear();
    const made = rich(e.data ?? {});
    const before = e.update ? this.displays.get(e.display_id) : null;
    if (before) before.replaceWith(made); else this.piece(made, (made.textContent ?? "").length);
    if (e.display_id) this.displays.set(e.display_id, made);
  }
}

/** rich is a bundle in the best of the forms that can be shown safely. @param {Record<string, any>} data @returns {HTMLElement} */
export function rich(data) {
  const made = picture(data);
  if (made) return made;
  const text = (/** @type {string} */ mime) => (typeof data[mime] === "string" ? data[mime] : Array.isArray(data[mime]) ? data[mime].join("") : null);
  const html = text("text/html"), plain = text("text/plain"), md = text("text/markdown");
  if (html !== null && (markup.hasTable(html) || plain === null)) return markup.html(html);
  if (md !== null) return markup.markdown(md);
  const e = element("div", "text result");
  if (plain !== null) ansi.draw(e, plain + "\n");
  else if (data["application/json"] !== undefined) e.textContent = JSON.stringify(data["application/json"], null, 2) + "\n";
  else e.textContent = (text("text/latex") ?? `[${Object.keys(data).join(", ")}]`) + "\n";
  return e;
}

/** @param {Record<string, any>} data */
function picture(data) {
  for (const mime of ["image/png", "image/jpeg", "image/gif"]) {
    if (typeof data[mime] === "string" && /^[A-Za-z0-9+/=\s]*$/.test(data[mime])) return image(`data:${mime};base64,${data[mime].replace(/\s/g, "")}`, data);
  }
  // A drawing inside an img element cannot run scripts or load anything.
  if (typeof data["image/svg+xml"] === "string") return image("data:image/svg+xml;charset=utf-8," + encodeURIComponent(data["image/svg+xml"]), data);
  return null;
}

/** @param {string} src @param {Record<string, any>} data */
function image(src, data) {
  const img = element("img");
  img.src = src;
  img.alt = typeof data["text/plain"] === "string" ? data["text/plain"] : "a picture that the code showed";
  return img;
}

/** traceback is an exception: what to read first, and the frames behind a fold. @param {any} e */
function traceback(e) {
  const box = element("div", "traceback"), head = element("div", "text");
  const say = e.summary || `${e.name}: ${e.message}`;
  ansi.draw(head, say);
  box.append(head);
  if (e.hint && !say.includes(e.hint)) box.append(element("p", "muted", e.hint));
  const mine = e.user_traceback ?? "", whole = (e.traceback ?? []).join("\n");
  fold(box, "Traceback of your code", mine && mine !== say ? mine : "");
  fold(box, mine ? "With the frames of libraries" : "Traceback", ansi.clean(whole).trim() !== ansi.clean(mine).trim() && whole !== say ? whole : "");
  return box;
}

/** @param {Element} box @param {string} title @param {string} text */
function fold(box, title, text) {
  if (!text) return;
  const d = element("details"), pre = element("div", "text");
  d.append(element("summary", "", `${title} (${many(text.split("\n").length, "line")})`), pre);
  d.addEventListener("toggle", () => { if (!pre.firstChild) ansi.draw(pre, text); });
  box.append(d);
}

/** copyButton copies what an element says. @param {() => string} text */
export function copyButton(text) {
  const b = button("Copy", "small");
  b.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(text()); b.textContent = "Copied"; } catch { b.textContent = "Not allowed"; }
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  });
  return b;
}
