// Making and changing elements, without moving what a person is on.

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/**
 * element makes an element.
 * @param {string} tag
 * @param {string} [cls] its class
 * @param {string} [text] its text
 * @returns {any}
 */
export function element(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}

/** button makes a button. @param {string} text @param {string} [cls] @returns {HTMLButtonElement} */
export function button(text, cls) {
  const b = element("button", cls, text);
  b.type = "button";
  return b;
}

/** link makes a link to a place of the page. @param {string} to @param {string} text @param {string} [cls] */
export function link(to, text, cls) {
  const a = element("a", cls, text);
  a.href = to;
  return a;
}

/** set changes a text, if it is another. @param {Element} e @param {string} text */
export function set(e, text) { if (e.textContent !== text) e.textContent = text; }

/** attribute changes an attribute, if it is another. @param {Element} e @param {string} name @param {any} value */
export function attribute(e, name, value) { if (e.getAttribute(name) !== String(value)) e.setAttribute(name, String(value)); }

/** klass changes the class, if it is another. @param {Element} e @param {string} cls */
export function klass(e, cls) { if (e.className !== cls) e.className = cls; }

/** hide shows or hides, if that changes anything. @param {any} e @param {boolean} away */
export function hide(e, away) { if (e.hidden !== away) e.hidden = away; }

/**
 * put makes these the children of an element, and moves no more of them than it has to:
 * what a person is on stays where it is.
 * @param {Element} list
 * @param {Element[]} wanted
 */
export function put(list, wanted) {
  let at = list.firstElementChild;
  for (const e of wanted) {
    if (e === at) at = at.nextElementSibling; else list.insertBefore(e, at);
  }
  while (at) { const next = at.nextElementSibling; at.remove(); at = next; }
}

/**
 * keep makes elements once for each key, and forgets those that are not asked for.
 * @template T
 */
export class Keep {
  constructor() { /** @type {Map<string, T>} */ this.map = new Map(); this.used = new Set(); }

  /** @param {string} key @param {() => T} make @returns {T} */
  get(key, make) {
    this.used.add(key);
    let made = this.map.get(key);
    if (made === undefined) { made = make(); this.map.set(key, made); }
    return made;
  }

  /** sweep forgets what was not asked for since the last sweep. */
  sweep() {
    for (const key of this.map.keys()) if (!this.used.has(key)) this.map.delete(key);
    this.used.clear();
  }

  clear() { this.map.clear(); this.used.clear(); }
}

/** on listens; a form is not sent. @param {string} id @param {string} type @param {(e: any) => void} f */
export function on(id, type, f) {
  $(id).addEventListener(type, (/** @type {Event} */ e) => { if (type === "submit") e.preventDefault(); f(e); });
}
