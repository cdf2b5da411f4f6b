// Where the page is: a view and what it shows, in the part of the address behind its #,
// which no server and no log sees.

/** @typedef {{view: string, rest: string, params: URLSearchParams}} Place */

/** place reads where the page is. @param {string} [hash] @returns {Place} */
export function place(hash = location.hash) {
  const m = /^#\/([a-z]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(hash);
  if (!m) return { view: "overview", rest: "", params: new URLSearchParams() };
  let rest = m[2] ?? "";
  try { rest = decodeURIComponent(rest); } catch { rest = ""; }
  return { view: m[1], rest, params: new URLSearchParams(m[3] ?? "") };
}

/** to is the address of a place. @param {string} view @param {string} [rest] @param {Record<string, string | undefined>} [params] */
export function to(view, rest, params) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params ?? {})) if (v) query.set(k, v);
  const text = query.toString();
  return `#/${view}${rest ? "/" + encodeURIComponent(rest) : ""}${text ? "?" + text : ""}`;
}

/** toSession is the page of a session. @param {import("./words.js").Key} key */
export const toSession = (key) => to("session", key.session, { cwd: key.cwd, workspace: key.workspace, kernel: key.kernel });

/** toExecution is the page of a session, open at one execution. @param {string} id */
export const toExecution = (id) => to("execution", id);

/** go moves the page. @param {string} address */
export function go(address) { if (location.hash !== address) location.hash = address; }

/** rewrite changes the address of the place where the page is, without a step back. @param {string} address */
export function rewrite(address) { if (location.hash !== address) history.replaceState(null, "", address); }
