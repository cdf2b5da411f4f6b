// What is sent and read, without any input or output of its own.
import { ConnectionLost, CoppiceError, ServerError } from "./errors.js";
import type { Code, Event, ProcessEvent } from "./types.js";

/** The most of one event, in characters. */
const most = 256 << 20;

/** The cells of a request. */
export function cellsOf(code: Code): { code: string; title?: string }[] {
  const parts = typeof code === "string" || !Array.isArray(code) ? [code as string | { code: string; title?: string }] : code;
  return parts.map((part) => (typeof part === "string" ? { code: part } : { code: part.code, ...(part.title ? { title: part.title } : {}) }));
}

/** The seconds of a request: -1 is none. */
export function seconds(timeout: number): number {
  if (!(timeout > 0)) throw new RangeError(`a timeout is more than 0 seconds, not ${timeout}; Infinity is none`);
  return timeout === Infinity ? -1 : timeout;
}

/** The path of a session. */
export function sessionPath(name: string, action = ""): string {
  if (!name) throw new RangeError("a session has a name");
  return `api/sessions/${encodeURIComponent(name)}${action}`;
}

/** The path of an execution. */
export function executionPath(id: string, action = ""): string {
  return `api/executions/${encodeURIComponent(id)}${action}`;
}

/** The path of a workspace, or of something in it. */
export function workspacePath(name: string, rest = ""): string {
  if (!name) throw new RangeError("a workspace has a name");
  return `api/workspaces/${encodeURIComponent(name)}${rest}`;
}

/** The path of a process. */
export function processPath(workspace: string, id: string, action = ""): string {
  if (!id) throw new RangeError("a process has an id");
  return workspacePath(workspace, `/processes/${encodeURIComponent(id)}${action}`);
}

/** The members that are there. */
export function defined<T>(members: Record<string, T | undefined>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).filter((m): m is [string, T] => m[1] !== undefined));
}

/** Text as UTF-8, bytes as they are. */
export function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data;
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

/**
 * The epoch in which a session of a fleet was seen: so that what is sent again never begins
 * twice, and code that counts on variables that are gone does not begin.
 */
export class Epochs {
  #seen = 0;
  ran = false;

  /** The session was ended by us: we know what is gone. */
  forget(): void {
    this.#seen = 0;
    this.ran = false;
  }

  /** What a request says of it. */
  get headers(): Record<string, string> {
    return this.#seen ? { "Coppice-Epoch": String(this.#seen) } : {};
  }

  /** Whether to send a request anew: who has not used the session has lost nothing. Others are told, once. */
  goesOn(e: unknown): boolean {
    if (!(e instanceof ServerError)) return false;
    const fresh = !this.ran && !this.#seen && !e.repeated;
    this.#seen = e.epoch || this.#seen;
    return fresh && e.code === "epoch_needed" && e.epoch > 0;
  }
}

/** The time between tries, while a server is out of reach. Times are in milliseconds. */
export class Pause {
  #patience: number;
  #now: () => number;
  #length = 10;
  #trouble: number | undefined;
  #begun: number;

  constructor(patience: number, now = () => performance.now()) {
    this.#patience = patience;
    this.#now = now;
    this.#begun = now();
  }

  /** A try begins. */
  begin(): void {
    this.#begun = this.#now();
  }

  /** A try went well. */
  progress(): void {
    this.#trouble = undefined;
    this.#length = 10;
  }

  /**
   * The server gives a sign of life. One that has done so for as long as patience lasts
   * is in reach, though it may have nothing to say.
   */
  alive(): void {
    if (this.#now() - this.#begun >= this.#patience) this.#trouble = undefined;
  }

  /** How long to wait after a try that failed; throws ConnectionLost when patience ends. */
  after(cause: unknown, doing: string): number {
    const now = this.#now();
    this.#trouble ??= now;
    if (now - this.#trouble >= this.#patience) throw new ConnectionLost(`${doing}: ${reason(cause)}`, { cause });
    const length = this.#length;
    this.#length = Math.min(2 * length, 1000);
    return length;
  }
}

/** Why a request failed: fetch hides that in the cause. */
function reason(e: unknown): string {
  if (!(e instanceof Error)) return String(e);
  return e.cause instanceof Error && e.cause.message ? e.cause.message : e.message;
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

/** The events of an execution. */
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
