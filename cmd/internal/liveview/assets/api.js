// The HTTP API of this server, with the token that a person gave.

/** Refused is an answer that says no. */
export class Refused extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) { super(text); this.status = status; }
}

let token = "";

// patience is how long the server may say nothing, in ms: on a stream, where it gives a sign of
// life every 15 s, and before the answer to a look.
export const patience = { silence: 45_000, look: 20_000 };

/**
 * within makes a signal that ends with another one, or when nothing was heard for so long:
 * a connection whose other end is gone without a word stays open for ever. done lets go of
 * both.
 * @param {number} ms @param {AbortSignal} [signal]
 */
export function within(ms, signal) {
  const own = new AbortController(), stop = () => own.abort(signal?.reason);
  /** @type {any} */
  let timer;
  const heard = () => { clearTimeout(timer); timer = setTimeout(() => own.abort(new Error(`the server said nothing for ${Math.round(ms / 1000)} s`)), ms); };
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted) stop(); else heard();
  return { signal: own.signal, heard, done: () => { clearTimeout(timer); signal?.removeEventListener("abort", stop); } };
}

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
 * follow reads server-sent events until the stream ends, and fails when it is silent for
 * longer than the server is. EventSource cannot send the token.
 * @param {string} path @param {number | null} after the last event that was seen
 * @param {AbortSignal} signal @param {(event: any) => void} each @param {() => void} [opened]
 */
export async function follow(path, after, signal, each, opened) {
  /** @type {Record<string, string>} */
  const headers = { Authorization: "Bearer " + token };
  if (after !== null) headers["Last-Event-ID"] = String(after);
  const watch = within(patience.silence, signal);
  try {
    const res = await fetch(path, { headers, signal: watch.signal, cache: "no-store" });
    if (!res.ok || !res.body) throw new Refused(res.status, res.status + " " + res.statusText);
    if (opened) opened();
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      watch.heard();
      rest += value;
      let from = 0, end;
      while ((end = rest.indexOf("\n\n", from)) >= 0) {
        const data = dataOf(rest.slice(from, end));
        from = end + 2;
        if (data) each(JSON.parse(data));
      }
      if (from) rest = rest.slice(from);
    }
  } finally { watch.done(); }
}

/** dataOf is the data of one event. @param {string} block */
function dataOf(block) {
  return block.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5).trimStart()).join("\n");
}

/**
 * sleep waits, or fails when the signal says so. early is given what ends the wait.
 * @param {number} ms @param {AbortSignal} signal @param {(wake: () => void) => void} [early]
 * @returns {Promise<void>}
 */
export const sleep = (ms, signal, early) => new Promise((resolve, reject) => {
  const over = () => { clearTimeout(timer); signal.removeEventListener("abort", stop); };
  const wake = () => { over(); resolve(); }, stop = () => { over(); reject(signal.reason); };
  const timer = setTimeout(wake, ms);
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  early?.(wake);
});
