import { CoppiceError, ServerError } from "./errors.js";
import { Session, type SessionOptions } from "./session.js";
import type { Event, Health, SessionInfo } from "./types.js";
import { executionPath, Following, Parser, Pause, problem } from "./wire.js";

/** Where a server is, and how it is asked. */
export interface ClientOptions {
  /** Its address, such as http://127.0.0.1:7788. */
  url: string;
  /** What opens it. */
  token: string;
  /** How many seconds it may be out of reach before a request fails. Default: 30. */
  patience?: number;
  /** Makes the requests. Default: the fetch that is there. */
  fetch?: typeof fetch;
}

/** After how long without a sign of life a stream is taken for broken: one comes every 15 s. */
const silence = 45_000;
/** How long one answer may take. */
const longest = 120_000;

/** @internal What a request is made of. */
export interface Ask {
  body?: unknown;
  query?: Record<string, string>;
  /** Do not repeat it when it is not known what became of it. */
  once?: boolean;
  signal?: AbortSignal | undefined;
  timeout?: number;
}

/** The sessions of a running coppice serve. Nothing is kept open between two requests. */
export class Client {
  /** Where the server is. */
  readonly url: string;
  #token: string;
  #patience: number;
  #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    const url = new URL(options.url);
    if (url.protocol !== "http:" && url.protocol !== "https:") throw new RangeError(`${options.url} is not the address of a server; it is like http://127.0.0.1:7788`);
    this.url = options.url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#patience = (options.patience ?? 30) * 1000;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
  }

  /**
   * A session by its name; all who give it share its variables. Nothing is asked of the
   * server: the first call gives the session an interpreter.
   */
  session(name: string, options: SessionOptions = {}): Session {
    return new Session(this, name, options);
  }

  /** The sessions that have an interpreter. */
  async sessions(): Promise<SessionInfo[]> {
    return ((await this.ask("GET", "api/sessions")) as { sessions: SessionInfo[] }).sessions;
  }

  /** How the server is. */
  async health(): Promise<Health> {
    return (await this.ask("GET", "api/health")) as Health;
  }

  /** @internal One request; repeated, while the server is out of reach, when that changes nothing. */
  async ask(method: string, path: string, o: Ask = {}): Promise<unknown> {
    const pause = new Pause(o.once ? 0 : this.#patience);
    for (;;) {
      o.signal?.throwIfAborted();
      const bound = AbortSignal.timeout(o.timeout ?? longest);
      try {
        const response = await this.#request(method, path, o, o.signal ? AbortSignal.any([o.signal, bound]) : bound);
        const text = await response.text();
        if (response.status >= 300) throw problem(response.status, text);
        return text === "" ? undefined : JSON.parse(text);
      } catch (e) {
        o.signal?.throwIfAborted();
        if (e instanceof CoppiceError) throw e;
        if (e instanceof SyntaxError) throw new CoppiceError("the answer of the server is not JSON", { cause: e });
        await sleep(pause.after(e, `${method} ${path}`), o.signal);
      }
    }
  }

  /** @internal The events of an execution, over as many connections as it takes. */
  async *events(execution: string, signal?: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const seen = new Following(execution);
    const pause = new Pause(this.#patience);
    while (!seen.done) {
      signal?.throwIfAborted();
      pause.begin();
      const ended = new AbortController();
      let timer = setTimeout(() => ended.abort(new Error("the server has been silent for too long")), silence);
      try {
        const bound = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
        const response = await this.#request("GET", executionPath(execution, "/events"), {}, bound, seen.after);
        if (response.status === 204) break; // nothing follows, and nothing will
        if (response.status !== 200 || !response.body) throw problem(response.status, await response.text());
        const reader = response.body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
        const parser = new Parser();
        while (!seen.done) {
          const { done, value } = await reader.read();
          if (done) throw new Error("the connection broke");
          clearTimeout(timer);
          timer = setTimeout(() => ended.abort(new Error("the server has been silent for too long")), silence);
          pause.alive();
          for (const data of parser.feed(value)) {
            const event = seen.take(data);
            if (!event) continue;
            pause.progress();
            yield event;
          }
        }
      } catch (e) {
        signal?.throwIfAborted();
        if (e instanceof CoppiceError) throw e;
        await sleep(pause.after(ended.signal.aborted ? ended.signal.reason : e, `events of execution ${execution} after ${seen.after}`), signal);
      } finally {
        clearTimeout(timer);
        ended.abort();
      }
    }
    if (!seen.done) throw new ServerError(204, "not_found", `execution ${execution} has no result`);
  }

  async #request(method: string, path: string, o: Ask, signal: AbortSignal, after = -1): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}` };
    if (o.body !== undefined) headers["Content-Type"] = "application/json";
    if (after >= 0) headers["Accept"] = "text/event-stream";
    if (after > 0) headers["Last-Event-ID"] = String(after);
    const query = o.query && Object.keys(o.query).length > 0 ? `?${new URLSearchParams(o.query)}` : "";
    return this.#fetch(`${this.url}/${path}${query}`, {
      method, headers, signal, redirect: "error", ...(o.body !== undefined ? { body: JSON.stringify(o.body) } : {}),
    });
  }
}

/** Resolves after so many milliseconds, and rejects when the signal is aborted. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
