// What is sent and read, without any input or output of its own.
import { ConnectionLost, CoppiceError, ServerError } from "./errors.js";
import { reason } from "./reach.js";
import type { Code, Event, ProcessEvent } from "./types.js";

/** The most of one event, in characters. */
const most = 256 << 20;

/** The cells of a request. */
export function cellsOf(code: Code): { code: string; title?: string }[] {
  const parts = typeof code === "string" || !Array.isArray(code) ? [code as string | { code: string; title?: string }] : code;
  return parts.map((part) => {
    if (typeof part !== "string" && !(typeof part === "object" && part !== null && "code" in part)) {
      throw new TypeError(`code is text, a cell such as { code: "1" }, or an array of those, not ${shown(part)}`);
    }
    const { code, title } = typeof part === "string" ? { code: part, title: "" } : part;
    return { code: checked("code", code), ...(title ? { title: checked("a title", title) } : {}) };
  });
}

/** A value that was given in place of another, for people. */
export function shown(value: unknown): string {
  return (typeof value === "object" && value !== null ? Object.prototype.toString.call(value).slice(8, -1) : String(value)).slice(0, 100);
}

/** Text as it is; throws when it is none, or has half of a character in it, which others would replace without a word. */
export function checked(what: string, text: string): string {
  if (typeof text !== "string") throw new TypeError(`${what} is text, not ${shown(text)}`);
  const at = text.search(/\p{Surrogate}/u);
  if (at < 0) return text;
  throw new TypeError(`${what} is not valid Unicode text: \\u${text.charCodeAt(at).toString(16)} at index ${at} stands for no character`);
}

/** A body as it is, all text of which can be sent. */
export function checkedBody<T>(body: T): T {
  JSON.stringify(body, (_, value: unknown) => (typeof value === "string" ? checked("what is sent", value) : value));
  return body;
}

/** The seconds of a request: -1 is none. */
export function seconds(timeout: number): number {
  if (typeof timeout !== "number") throw new TypeError(`a timeout is a number of seconds, not ${JSON.stringify(timeout)}`);
  if (!(timeout > 0)) throw new RangeError(`a timeout is more than 0 seconds, not ${timeout}; Infinity is none`);
  return timeout === Infinity ? -1 : timeout;
}

/** A part of a path. */
export function segment(what: string, text: string): string {
  if (text === "" || text === undefined || text === null) throw new RangeError(`${what} is not empty`);
  return encodeURIComponent(checked(what, text));
}

/** The path of a session. */
export function sessionPath(name: string, action = ""): string {
  return `api/sessions/${segment("the name of a session", name)}${action}`;
}

/** The path of an execution. */
export function executionPath(id: string, action = ""): string {
  return `api/executions/${encodeURIComponent(id)}${action}`;
}

/** The path of a workspace, or of something in it. */
export function workspacePath(name: string, rest = ""): string {
  return `api/workspaces/${segment("the name of a workspace", name)}${rest}`;
}

/** The path of a process. */
export function processPath(workspace: string, id: string, action = ""): string {
  return workspacePath(workspace, `/processes/${segment("the id of a process", id)}${action}`);
}

/** The members that are there. */
export function defined<T>(members: Record<string, T | undefined>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).filter((m): m is [string, T] => m[1] !== undefined));
}

/** Text as UTF-8, bytes as they are. */
export function bytesOf(data: string | Uint8Array): Uint8Array {
  if (typeof data === "string") return new TextEncoder().encode(checked("what is written", data));
  if (!(data instanceof Uint8Array)) throw new TypeError(`what is written is text or bytes (a Uint8Array), not ${shown(data)}`);
  return data;
}

/** All pieces in one. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of pieces) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

/** All pieces that come, in one. */
export async function joinedOf(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source) pieces.push(piece);
  return joined(pieces);
}

/** Where a server is, and what opens it. */
export interface Place {
  readonly url: string;
  readonly token: string;
}

/** A place, when the address is one. */
export function placeOf(url: string, token: string): Place {
  const { protocol } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") throw new RangeError(`${url} is not the address of a server; it is like http://127.0.0.1:7788`);
  return { url: url.replace(/\/+$/, ""), token };
}

/** The token for a server that was named without one. Browsers have no environment. */
export function tokenFor(url: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const token = process?.env?.["COPPICE_TOKEN"];
  if (token === undefined) throw new TypeError(`the server at ${url} wants a token: give token, or set COPPICE_TOKEN; its user finds it in ~/.coppice/serve.json`);
  return token;
}

/** Whether two places are one, as far as can be told. */
export function samePlace(a: Place, b: Place): boolean {
  return a.url === b.url && a.token === b.token;
}

/** The codes of errors that come before there is a connection. */
const unconnected = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND", "EHOSTUNREACH", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]);

/** Whether a request failed since the connection could not be made: nothing was sent. Where fetch does not say so, it may have arrived. */
export function unsent(e: unknown): boolean {
  const { code, syscall } = (e instanceof Error && typeof e.cause === "object" && e.cause ? e.cause : {}) as { code?: unknown; syscall?: unknown };
  // A connection that was made may end so, too.
  return typeof code === "string" && unconnected.has(code) && syscall !== "read" && syscall !== "write";
}

/** An answer that says no. */
export function problem(status: number, text: string): ServerError {
  try {
    const { code, message, hint, epoch } = (JSON.parse(text) as { error: { code: string; message: string; hint?: string; epoch?: number } }).error;
    if (typeof message === "string") return new ServerError(status, String(code), message, hint ?? "", epoch ?? 0);
  } catch {
    // not one of ours
  }
  return new ServerError(status, "unknown", `the server answered with status ${status}`);
}

const look = "look at what it was to do before you run it again";

/** What becomes of a request whose first attempt may have reached a server that is gone. */
export function unknown(): ServerError {
  return new ServerError(410, "lost", "the server was started again after the code was sent: whether it ran is not known", `it is not sent a second time; ${look}`);
}

/** What becomes of an execution that was begun at a server that is gone. */
export function gone(): ServerError {
  return new ServerError(410, "lost", "the server was started again while the code ran: what became of it is not known", look);
}

/** The header that names one life of a server's process, and what asks which one it is. */
const header = "Coppice-Server";
export const which = { [header]: "?" };

/** An attempt to begin an execution: where, and when by two clocks, in milliseconds. */
interface Attempt {
  at: Place;
  steady: number;
  wall: number;
}

/**
 * What is known of a request that begins an execution, so that it never begins twice. It has a
 * name of ours, by which the life of a server that has got it knows it when it is sent again.
 * The next life of that server does not: it would run the code a second time.
 */
export class Sent {
  #asked: Place | undefined;
  #attempt: Attempt | undefined;
  #first: Attempt | undefined;

  constructor(private readonly steady = () => performance.now(), private readonly wall = () => Date.now()) {}

  /** Whether an attempt may have arrived. */
  get arrived(): boolean {
    return this.#first !== undefined;
  }

  /** An attempt begins. */
  begin(at: Place): void {
    this.#attempt = { at, steady: this.steady(), wall: this.wall() };
  }

  /** It failed. The first one that may have arrived counts. */
  fail(e: unknown): void {
    if (!unsent(e)) this.#first ??= this.#attempt;
  }

  /** A server is asked how it is. */
  ask(at: Place): void {
    this.#asked = at;
  }

  /**
   * What the request says when it is sent again to the server that was asked; undefined: it is
   * not sent, since the first attempt went to another life of the server.
   */
  again(health: unknown, headers: Headers): Record<string, string> | undefined {
    const life = headers.get(header);
    const uptime = (health as { uptime_seconds?: unknown } | null | undefined)?.uptime_seconds;
    // A fleet has epochs for this, and a server of before says nothing.
    if (!this.#first || headers.get("Coppice-Node") || !life || typeof uptime !== "number" || !(uptime > 0)) return {};
    const { at, steady, wall } = this.#first;
    // The one clock does not count while this machine sleeps, the other one may be set back.
    const since = Math.max(this.steady() - steady, this.wall() - wall) / 1000;
    return this.#asked && samePlace(at, this.#asked) && uptime >= since ? { [header]: life } : undefined;
  }
}

/** The time between tries, while a server is out of reach. Times are in milliseconds. */
export class Pause {
  #patience: number;
  #now: () => number;
  #length = 10;
  #trouble: number | undefined;
  #begun: number;
  #heard = false;

  constructor(patience: number, now = () => performance.now()) {
    this.#patience = patience;
    this.#now = now;
    this.#begun = now();
  }

  /** A try begins. */
  begin(): void {
    this.#begun = this.#now();
    this.#heard = false;
  }

  /** A try went well. */
  progress(): void {
    this.#trouble = undefined;
    this.#length = 10;
    this.#heard = true;
  }

  /**
   * The server gives a sign of life. One that has done so for as long as patience lasts
   * is in reach, though it may have nothing to say.
   */
  alive(): void {
    this.#heard = true;
    if (this.#now() - this.#begun >= this.#patience) this.#trouble = undefined;
  }

  /** How long to wait after a try that failed; throws ConnectionLost when patience ends. */
  after(cause: unknown, doing: string, url = ""): number {
    const now = this.#now();
    // A server that says nothing in a whole try has been out of reach since that began.
    this.#trouble ??= this.#heard ? now : this.#begun;
    if (now - this.#trouble >= this.#patience) throw new ConnectionLost(`${doing}: ${reason(cause, url)}`, { cause });
    const length = this.#length;
    this.#length = Math.min(2 * length, 1000);
    return length;
  }
}

/** Server-sent events, as they come in pieces: the HTML standard's format. */
export class Parser {
  #rest = "";
  #data: string[] = [];
  #size = 0;

  /** The data of the events that a piece completes. */
  feed(piece: string): string[] {
    const events: string[] = [];
    const text = this.#rest + piece;
    // The end of a line may be cut in the middle.
    const keep = text.endsWith("\r") ? "\r" : "";
    const lines = text.slice(0, text.length - keep.length).split(/\r\n|\r|\n/);
    this.#rest = (lines.pop() ?? "") + keep;
    if (this.#rest.length + this.#size > most) throw new CoppiceError("the server's events make no sense: one is longer than any may be");
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) events.push(this.#data.join("\n"));
        this.#data = [];
        this.#size = 0;
      } else if (line === "data" || line.startsWith("data:")) {
        const value = line.slice(5);
        this.#data.push(value.startsWith(" ") ? value.slice(1) : value);
        this.#size += value.length;
      }
    }
    return events;
  }
}

/** The events of one source, each once and in order, over several connections. */
export abstract class Numbered<T extends { seq: number; type: string }> {
  done = false;

  /**
   * @param last the type of the last event
   * @param gap the type of one that says that some before it are lost
   */
  constructor(readonly path: string, readonly what: string, private readonly last: string, private readonly gap: string | undefined, public after = 0) {}

  /** The event, for those who read it. */
  protected abstract event(raw: Record<string, unknown>): T;

  /** Nothing follows, though the last event was not seen. */
  over(): void {}

  /** What it means that the server refuses them. */
  refused(e: ServerError): ServerError {
    return e;
  }

  /** The event that data is; undefined when it was seen before. */
  take(data: string): T | undefined {
    let raw: Record<string, unknown> & { seq: number; type: string };
    try {
      raw = JSON.parse(data) as typeof raw;
    } catch (cause) {
      throw new CoppiceError("the server's events make no sense: one is not JSON", { cause });
    }
    if (typeof raw?.seq !== "number" || typeof raw.type !== "string") throw new CoppiceError("the server's events make no sense: one has no number or no type");
    if (raw.seq <= this.after) return undefined;
    if (raw.seq !== this.after + 1 && raw.type !== this.gap) throw new CoppiceError(`the server's events make no sense: event ${raw.seq} follows event ${this.after}`);
    this.after = raw.seq;
    this.done = raw.type === this.last;
    return this.event(raw);
  }
}

/** The events of an execution that we have begun. */
export class Following extends Numbered<Event> {
  constructor(readonly execution: string) {
    super(executionPath(execution, "/events"), `execution ${execution}`, "final", undefined);
  }

  protected override event(raw: Record<string, unknown>): Event {
    return { ...raw, execution: this.execution } as unknown as Event;
  }

  override over(): void {
    throw new ServerError(204, "not_found", `${this.what} has no result`);
  }

  override refused(e: ServerError): ServerError {
    return e.status === 404 && e.code === "not_found" ? gone() : e; // it was there when it began
  }
}

/** The events of a process. */
export class Printing extends Numbered<ProcessEvent> {
  constructor(workspace: string, id: string, after = 0) {
    super(processPath(workspace, id, "/events"), `process ${id}`, "end", "gap", after);
  }

  protected override event(raw: Record<string, unknown>): ProcessEvent {
    const data = typeof raw["data"] === "string" ? Uint8Array.from(atob(raw["data"]), (c) => c.charCodeAt(0)) : undefined;
    return { ...raw, ...(data ? { data } : {}) } as unknown as ProcessEvent;
  }
}
