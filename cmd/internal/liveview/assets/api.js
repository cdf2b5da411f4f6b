// The HTTP API of this server, with the token that a person gave.

/** Refused is an answer that says no. */
export class Refused extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) { super(text); this.status = status; }
}

let token = "";

/** setToken says with which token the server is asked from now on. @param {string} given */
export function setToken(given) { token = given; }

/** hasToken says whether somebody is signed in. */
export const hasToken = () => token !== "";

/**
 * call asks the server and returns its answer.
 * @param {string} method @param {string} path @param {any} [body] @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function call(method, path, body, signal) {
  const res = await send(method, path, body === undefined ? undefined : JSON.stringify(body), "application/json", signal);
  return res.status === 204 ? null : res.json();
}

/**
 * send sends bytes, a file, or nothing.
 * @param {string} method @param {string} path @param {any} [body] @param {string} [kind] its content type
 * @param {AbortSignal} [signal] @param {Record<string, string>} [more] headers
 */
export async function send(method, path, body, kind, signal, more) {
  /** @type {Record<string, string>} */
  const headers = { ...more, Authorization: "Bearer " + token };
  if (body !== undefined && kind) headers["Content-Type"] = kind;
  const res = await fetch(path, { method, headers, body, signal, cache: "no-store" });
  if (!res.ok) {
    let text = res.status + " " + res.statusText;
    try {
      const { error } = await res.json();
      text = error.message + (error.hint ? "; " + error.hint : "");
    } catch { /* not ours: the status says it */ }
    throw new Refused(res.status, text);
  }
  return res;
}

/** download saves what a path answers as a file. @param {string} path @param {string} name */
export async function download(path, name) {
  const data = await (await send("GET", path)).blob(), a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" })); // never as a page
  a.download = name.replace(/[<>:"/\\|?*\u0000-\u001f\u202a-\u202e\u2066-\u2069]/g, "_");
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60_000);
}

/**
 * follow reads server-sent events until the stream ends. EventSource cannot send the
 * token.
 * @param {string} path @param {number | null} after the last event that was seen
 * @param {AbortSignal} signal @param {(event: any) => void} each @param {() => void} [opened]
 */
export async function follow(path, after, signal, each, opened) {
  /** @type {Record<string, string>} */
  const headers = { Authorization: "Bearer " + token };
  if (after !== null) headers["Last-Event-ID"] = String(after);
  const res = await fetch(path, { headers, signal, cache: "no-store" });
  if (!res.ok || !res.body) throw new Refused(res.status, res.status + " " + res.statusText);
  if (opened) opened();
  const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let from = 0, end;
    while ((end = rest.indexOf("\n\n", from)) >= 0) {
      const data = dataOf(rest.slice(from, end));
      from = end + 2;
      if (data) each(JSON.parse(data));
    }
    if (from) rest = rest.slice(from);
  }
}

/** dataOf is the data of one event. @param {string} block */
function dataOf(block) {
  return block.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5).trimStart()).join("\n");
}

/** sleep waits, or fails when the signal says so. @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
export const sleep = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});
