// Names, numbers and times in words. Nothing here touches the page.

/** @typedef {{session: string, cwd: string, workspace?: string, kernel?: string}} Key */

/** @param {string} s */
const escape = (s) => s.replaceAll("%", "%25").replaceAll("@", "%40").replaceAll("/", "%2F");
/** @param {string} s */
const unescape = (s) => s.replaceAll("%2F", "/").replaceAll("%40", "@").replaceAll("%25", "%");

/** idOf is the name of a session in the tree. @param {Key} s */
export const idOf = (s) => (s.workspace ? escape(s.workspace) + "%3A" : "") + escape(s.session) + (s.kernel ? "%3B" + escape(s.kernel) : "") + "@" + s.cwd;

/** keyOf is the session that a name in the tree stands for. @param {string} id @returns {Key | null} */
export function keyOf(id) {
  const at = id.indexOf("@");
  if (at < 0 || id.slice(0, at).includes("/")) return null;
  const name = id.slice(0, at), within = name.indexOf("%3A"), [session, kernel] = name.slice(within < 0 ? 0 : within + 3).split("%3B");
  return {
    session: unescape(session), cwd: id.slice(at + 1),
    ...(within < 0 ? {} : { workspace: unescape(name.slice(0, within)) }), ...(kernel ? { kernel: unescape(kernel) } : {}),
  };
}

/** same says whether two keys are one. @param {Key | null} [a] @param {Key | null} [b] */
export const same = (a, b) => Boolean(a && b) && idOf(/** @type {Key} */ (a)) === idOf(/** @type {Key} */ (b));

/** pathOf is where a session is in the API. @param {Key} s @param {string} [act] */
export function pathOf(s, act) {
  const query = new URLSearchParams({ cwd: s.cwd });
  if (s.workspace) query.set("workspace", s.workspace);
  if (s.kernel) query.set("kernel", s.kernel);
  return `/api/sessions/${encodeURIComponent(s.session)}${act ? "/" + act : ""}?${query}`;
}

/** shortName is a name for people: the long id of a copy is cut. @param {string} name */
export const shortName = (name) => name.replace(/~([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "~$1");

/** lastOf is the last part of a directory. @param {string} dir */
export const lastOf = (dir) => dir.replace(/[/\\]+$/, "").split(/[/\\]/).at(-1) || dir;

/**
 * places says how each directory is told apart from the others: by as few of its last
 * parts as that takes.
 * @param {string[]} dirs
 * @returns {Map<string, string>}
 */
export function places(dirs) {
  const all = [...new Set(dirs)], out = new Map();
  for (let n = 1, left = all; left.length && n < 32; n++) {
    const tail = (/** @type {string} */ d) => d.split(/[/\\]/).filter(Boolean).slice(-n).join("/") || d;
    const count = new Map();
    for (const d of all) count.set(tail(d), (count.get(tail(d)) ?? 0) + 1);
    const next = [];
    for (const d of left) {
      out.set(d, tail(d));
      if ((count.get(tail(d)) ?? 0) > 1) next.push(d);
    }
    left = next;
  }
  return out;
}

/** bytes is a size. @param {number | undefined} n */
export function bytes(n) {
  if (!n) return "";
  if (n < 100 * 2 ** 20) return (n / 1048576).toFixed(1) + " MiB";
  return n < 10 * 2 ** 30 ? (n / 1048576).toFixed(0) + " MiB" : (n / 2 ** 30).toFixed(1) + " GiB";
}

/** nodeName is the name of a node, without what tells it from an earlier one of that name. @param {string} id */
export const nodeName = (id) => id.replace(/-[0-9a-f]{16}$/, "");

/** healthOf says a level of health that is not the best; "" for that. @param {string} level */
export const healthOf = (level) => ({ bad: "down", asks: "asks a person", shaky: "to look at" })[level] ?? "";

/** clock is the time of day. @param {string | number | Date} at */
export const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });

/** moment is the time of day, with the date before it unless that is today's. @param {string | number | Date} at */
export function moment(at) {
  const when = new Date(at), now = new Date();
  if (when.toDateString() === now.toDateString()) return clock(when);
  const year = when.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return when.toLocaleDateString([], { day: "numeric", month: "short", year }) + " " + clock(when);
}

/** span is how long something took. @param {number} ms */
export function span(ms) {
  if (ms < 1000) return Math.max(0, Math.round(ms)) + " ms";
  if (ms < 59_950) return (ms / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor(s % 86_400 / 3600)} h`;
}

/** ago is how long ago an instant is, in one unit. @param {string} at @param {number} [now] */
export function ago(at, now = Date.now()) {
  const s = Math.max(0, Math.round((now - new Date(at).getTime()) / 1000));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  return s < 86_400 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86_400) + " d";
}

/** many is a number with its word. @param {number} n @param {string} word @param {string} [plural] */
export const many = (n, word, plural) => `${n.toLocaleString("en")} ${n === 1 ? word : plural ?? word + "s"}`;

/** plain takes control characters and those that turn the text around out. @param {string} text */
export const plain = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");

/** exitOf is why something ended, in words. @param {{kind: string, reason?: string} | undefined} x */
export const exitOf = (x) => (x ? x.kind + (x.reason ? ": " + x.reason.split("\n")[0] : "") : "");

/** happened tells of a change in the tree or of an execution. @param {any} c */
export function happened(c) {
  switch (c.type) {
    case "restarted": return "the server was started again";
    case "missed": return `${many(c.missed, "older event")} ${c.missed === 1 ? "is" : "are"} gone`;
    case "execution": {
      const x = c.execution;
      return x.state === "running" ? `${shortName(x.session)} runs: ${x.title}` : `${shortName(x.session)} ended ${x.outcome ?? ""}: ${x.title}`;
    }
    default:
  }
  const t = c.tree ?? {}, why = t.exit ? ` (${exitOf(t.exit)})` : "";
  const child = shortName(keyOf(t.key ?? "")?.session ?? t.key ?? "");
  switch (t.type) {
    case "child_changed": return `${child}: ${t.from ? t.from + " → " : ""}${t.to}${why}`;
    case "decided": return `${t.path}: strategy decided ${t.directive}${why}`;
    case "dropped": return `${t.path}: ${t.count} ${t.what} dropped`;
    default: return t.type ?? c.type;
  }
}
