// Questions before something is lost, and what became of an action.
import { button, element } from "./dom.js";

/**
 * sure asks whether something shall be done, and says what will be lost.
 * @param {{title: string, lost: string[], names?: string[], yes: string}} o
 * @returns {Promise<boolean>}
 */
export function sure(o) {
  return new Promise((resolve) => {
    const d = /** @type {HTMLDialogElement} */ (element("dialog"));
    const h = element("h2", "", o.title), list = element("ul");
    h.id = "sure-title";
    d.setAttribute("aria-labelledby", h.id);
    for (const l of o.lost) list.append(element("li", "", l));
    d.append(h, list);
    if (o.names?.length) {
      const names = element("p", "muted names", o.names.slice(0, 20).join(", ") + (o.names.length > 20 ? ` and ${o.names.length - 20} more` : ""));
      d.append(names);
    }
    const bar = element("div", "bar"), yes = button(o.yes, "danger"), no = button("Cancel");
    const end = (/** @type {boolean} */ answer) => { d.close(); d.remove(); before?.focus?.(); resolve(answer); };
    const before = /** @type {any} */ (document.activeElement);
    yes.addEventListener("click", () => end(true));
    no.addEventListener("click", () => end(false));
    d.addEventListener("cancel", (e) => { e.preventDefault(); end(false); });
    bar.append(no, yes);
    d.append(bar);
    document.body.append(d);
    d.showModal();
    no.focus();
  });
}

let timer = 0;

/** calm takes away what was told of a failure: who goes on to another place has read it. */
export function calm() { if (document.getElementById("told")?.className === "bad") tell(""); }

/** tell says what became of an action, for a while. @param {string} text @param {boolean} [bad] */
export function tell(text, bad) {
  const e = /** @type {HTMLElement} */ (document.getElementById("told"));
  e.className = bad ? "bad" : "";
  e.textContent = text;
  clearTimeout(timer);
  if (text && !bad) timer = window.setTimeout(() => { e.textContent = ""; }, 8000);
}
