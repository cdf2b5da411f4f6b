import type { Ask, Told } from "./ask.js";
import { Asked } from "./asked.js";
import { ConnectionLost, CoppiceError, ServerError } from "./errors.js";
import { Epochs } from "./epochs.js";
import { Lives, Sessions } from "./lives.js";
import { longest, Lookout, Quiet, Reach, reason, Silent, sleep, textOf, untrusted } from "./reach.js";
import { Session, type SessionOptions } from "./session.js";
import type { Checkpoint, Health, SavedCheckpoint, SessionInfo, WorkspaceInfo } from "./types.js";
import { checkedBody, defined, executionPath, joinedOf, type Numbered, Parser, Pause, type Place, placeOf, problem, samePlace, segment, Sent, tokenFor, unknown, unsent, which } from "./wire.js";
import { Workspace, workspaceBody, type WorkspaceOptions } from "./workspace.js";

/** Where a server is, and how it is asked. */
export interface ClientOptions {
  /** Its address, such as http://127.0.0.1:7788. */
  url: string;
  /** What opens it; "" for one that wants none. Default: COPPICE_TOKEN of the environment. */
  token?: string;
  /** How many seconds it may be out of reach, or say nothing, before a request fails. Default: 30. */
  patience?: number;
  /** Makes the requests. Default: the fetch that is there. */
  fetch?: typeof fetch;
  /** @internal Looks where the server is by now; undefined: where it was, or nowhere. */
  refind?: () => Promise<Place | undefined>;
}

/**
 * The sessions and workspaces of a running coppice serve. Nothing is kept open between two
 * requests. Code that a server had been given before it was started again is not sent to it a
 * second time: a ServerError with the code lost says that what became of it is not known.
 */
export class Client {
  /** It is replaced as a whole, so that a token goes nowhere but to its own address. */
  #at: Place;
  #refind: () => Promise<Place | undefined>;
  #patience: number;
  #fetch: typeof fetch;
  /** @internal */
  readonly reach: Reach;
  /** @internal */
  readonly epochs = new Epochs();
  /** @internal */
  readonly lives = new Lives();
  /** @internal */
  readonly had = new Sessions();
  /** @internal */
  readonly asked = new Asked();

  constructor(options: ClientOptions) {
    this.#at = placeOf(options.url, options.token ?? tokenFor(options.url));
    this.#refind = options.refind ?? (async () => undefined);
    this.#patience = (options.patience ?? 30) * 1000;
    this.reach = new Reach(this.#patience);
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
  }

  /** Where the server is. */
  get url(): string {
    return this.#at.url;
  }

  /**
   * A session by its name; all who give it share its variables. Nothing is asked of the
   * server: the first call gives the session an interpreter.
   */
  session(name: string, options: SessionOptions = {}): Session {
    return new Session(this, name, options);
  }

  /** A workspace that is there, by its name. Nothing is asked of the server. */
  workspace(name: string): Workspace {
    return new Workspace(this, name);
  }

  /** Makes a workspace, or resolves to the one of this name that is there and was made alike. */
  async createWorkspace(name: string, options: WorkspaceOptions = {}): Promise<Workspace> {
    await this.ask("POST", "api/workspaces", { body: workspaceBody(name, options) });
    return new Workspace(this, name);
  }

  /** The workspaces that have not ended: all, or those with these labels ("": any value) and owner. */
  async workspaces(filter: { labels?: Record<string, string>; owner?: string } = {}): Promise<WorkspaceInfo[]> {
    const query = Object.entries(filter.labels ?? {}).map(([name, value]): [string, string] => ["label", value ? `${name}=${value}` : name]);
    if (filter.owner) query.push(["owner", filter.owner]);
    return ((await this.ask("GET", "api/workspaces", { query })) as { workspaces: WorkspaceInfo[] }).workspaces;
  }

  /** The checkpoints that the server keeps, the oldest first. */
  async checkpoints(): Promise<Checkpoint[]> {
    return ((await this.ask("GET", "api/checkpoints")) as { checkpoints: Checkpoint[] }).checkpoints;
  }

  /** Ends a checkpoint. */
  async dropCheckpoint(checkpoint: Checkpoint | string): Promise<void> {
    const id = typeof checkpoint === "string" ? checkpoint : checkpoint.id;
    await this.ask("DELETE", `api/checkpoints/${segment("the id of a checkpoint", id)}`, { once: true });
  }

  /** What sessions have saved on the server's disk, by workspace and name. */
  async savedCheckpoints(): Promise<SavedCheckpoint[]> {
    return ((await this.ask("GET", "api/saved-checkpoints")) as { checkpoints: SavedCheckpoint[] }).checkpoints;
  }

  /** Drops one from the server's disk. Without an owner, it may be anybody's. */
  async dropSavedCheckpoint(checkpoint: SavedCheckpoint | string, options: { workspace?: string; owner?: string } = {}): Promise<void> {
    const { name, workspace } = typeof checkpoint === "string" ? { name: checkpoint, workspace: options.workspace } : checkpoint;
    await this.ask("DELETE", `api/saved-checkpoints/${segment("the name of a checkpoint", name)}`, { once: true, query: defined({ workspace, owner: options.owner }) });
  }

  /** The sessions that have an interpreter. */
  async sessions(): Promise<SessionInfo[]> {
    const told = (await this.ask("GET", "api/sessions")) as { sessions: SessionInfo[] };
    return told.sessions.map((s) => ({ ...s, name: s.session }));
  }

  /** How the server is. */
  async health(): Promise<Health> {
    return (await this.ask("GET", "api/health")) as Health;
  }

  /** The whole text of an output that was too long for a result, which names it: artifact://0. */
  async artifact(artifact: string | number, signal?: AbortSignal): Promise<string> {
    return new TextDecoder().decode(await joinedOf(this.streamArtifact(artifact, signal)));
  }

  /** An output that was too long for a result, or a drawing, piece by piece. A connection that breaks is made again from where it broke. */
  streamArtifact(artifact: string | number, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const number = String(artifact).replace(/^artifact:\/\//, "");
    if (!/^\d+$/.test(number)) throw new RangeError(`${JSON.stringify(artifact)} names no artifact: one is like artifact://0`);
    return this.content(`api/artifacts/${Number(number)}`, undefined, `read artifact://${Number(number)}`, signal, ["Last-Modified", "If-Unmodified-Since"]);
  }

  /** @internal One request; repeated, while the server is out of reach, when that changes nothing. */
  async ask(method: string, path: string, o: Ask = {}): Promise<unknown> {
    return (await this.told(method, path, o)).answer;
  }

  /** @internal As ask, with what stands above the answer. */
  async told(method: string, path: string, o: Ask = {}): Promise<Told> {
    checkedBody(o.query);
    checkedBody(o.body);
    const pause = new Pause(o.patience ?? this.#patience);
    let repeated = false;
    for (;;) {
      try {
        pause.begin();
        return await this.#once(method, path, o);
      } catch (e) {
        o.signal?.throwIfAborted();
        if (e instanceof ServerError) e.repeated = repeated;
        if (e instanceof CoppiceError) throw e;
        const sent = !unsent(e);
        repeated ||= sent;
        if (sent && o.once) throw new ConnectionLost(`${method} ${path}: ${reason(e)}`, { cause: e });
        await this.#wait(pause, e, `${method} ${path}`, o.signal);
      }
    }
  }

  /** @internal Begins an execution; repeated, while the server is out of reach, when it cannot begin twice. */
  async begin(id: string, o: Ask): Promise<Headers> {
    const pause = new Pause(this.#patience);
    const sent = new Sent();
    for (;;) {
      try {
        pause.begin();
        return await this.#try(id, o, sent);
      } catch (e) {
        o.signal?.throwIfAborted();
        if (e instanceof ServerError) e.repeated = sent.arrived;
        if (e instanceof CoppiceError) throw e;
        sent.fail(e);
        await this.#wait(pause, e, "POST api/executions", o.signal);
      }
    }
  }

  /** Tries to begin an execution, where an attempt before may have arrived at another life of the server. */
  async #try(id: string, o: Ask, sent: Sent): Promise<Headers> {
    const { signal } = o;
    let life: Record<string, string> | undefined = {};
    if (sent.arrived) {
      const { answer, headers } = await this.#once("GET", "api/health", { headers: which, signal }, (at) => sent.ask(at));
      life = sent.again(answer, headers);
    }
    if (life) {
      try {
        return (await this.#once("POST", "api/executions", { ...o, headers: { ...o.headers, ...life } }, (at) => sent.begin(at))).headers;
      } catch (e) {
        const other = Object.keys(life).length > 0 && e instanceof ServerError && e.code === "lost";
        if (!other) throw e;
        // It was another life by then, and nothing was done.
      }
    }
    try {
      return (await this.#once("GET", executionPath(id), { headers: which, signal })).headers; // it may have been kept, or handed over
    } catch (e) {
      throw e instanceof ServerError && e.status === 404 ? unknown() : e;
    }
  }

  /** One request, and its answer. */
  async #once(method: string, path: string, o: Ask, begin?: (at: Place) => void): Promise<Told> {
    o.signal?.throwIfAborted();
    const ended = new AbortController();
    const waits = !o.timeout && (o.waits ?? method !== "GET");
    const limit = o.timeout ?? (waits ? longest : this.reach.answer);
    const quiet = new Quiet(limit, () => ended.abort(new Silent()));
    const over = (cause: unknown) => ended.abort(new Error(`the server does not answer: ${reason(cause)}`));
    const lookout = waits ? new Lookout(() => this.#alive(), this.reach.ask, over) : undefined;
    try {
      const response = await this.#request(method, path, o, o.signal ? AbortSignal.any([o.signal, ended.signal]) : ended.signal, -1, begin);
      quiet.heard();
      const text = await textOf(response, () => quiet.heard());
      if (response.status >= 300) throw problem(response.status, text);
      try {
        return { answer: text === "" ? undefined : JSON.parse(text), headers: response.headers };
      } catch (cause) {
        throw new CoppiceError("the answer of the server is not JSON", { cause });
      }
    } catch (e) {
      throw ended.signal.aborted && !(e instanceof CoppiceError) ? ended.signal.reason : e;
    } finally {
      quiet.end();
      lookout?.end();
    }
  }

  /** Resolves when the server answers, whatever it says. */
  async #alive(): Promise<void> {
    await this.#once("GET", "api/health", {}).catch((e: unknown) => {
      if (!(e instanceof CoppiceError)) throw e;
    });
  }

  /** Waits before a try that follows one that failed, and looks where the server is by then. */
  async #wait(pause: Pause, cause: unknown, doing: string, signal?: AbortSignal): Promise<void> {
    await sleep(pause.after(cause, doing, this.url), signal);
    await this.#look();
  }

  /** Looks where the server is. While none runs, nothing changes: the next one may be about to come. */
  async #look(): Promise<void> {
    const now = await this.#refind();
    if (!now) return;
    try {
      this.#at = placeOf(now.url, now.token);
    } catch {
      // it is no address
    }
  }

  /** Whether a server that could not be reached, or does not take the token, is elsewhere by now. */
  async #moved(at: Place): Promise<boolean> {
    await this.#look();
    return !samePlace(this.#at, at);
  }

  /** @internal The events of an execution or a process, over as many connections as it takes. */
  async *events<T extends { seq: number; type: string }>(seen: Numbered<T>, signal?: AbortSignal): AsyncGenerator<T, void, undefined> {
    const pause = new Pause(this.#patience);
    while (!seen.done) {
      signal?.throwIfAborted();
      pause.begin();
      const ended = new AbortController();
      const quiet = new Quiet(this.reach.answer, () => ended.abort(new Silent()));
      try {
        const bound = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
        const response = await this.#request("GET", seen.path, {}, bound, seen.after);
        if (response.status === 204) break; // nothing follows, and nothing will
        if (response.status !== 200 || !response.body) throw seen.refused(problem(response.status, await response.text()));
        quiet.heard(this.reach.silence);
        const reader = response.body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
        const parser = new Parser();
        while (!seen.done) {
          const { done, value } = await reader.read();
          if (done) throw new Error("the connection broke");
          quiet.heard(this.reach.silence);
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
        await this.#wait(pause, ended.signal.aborted ? ended.signal.reason : e, `events of ${seen.what} after ${seen.after}`, signal);
      } finally {
        quiet.end();
        ended.abort();
      }
    }
    if (!seen.done) seen.over();
  }

  /** @internal What a file or an artifact holds, over as many connections as it takes. */
  async *content(
    path: string, query: Record<string, string> | undefined, what: string, signal?: AbortSignal, [told, kept] = ["ETag", "If-Match"] as [string, string],
  ): AsyncGenerator<Uint8Array, void, undefined> {
    checkedBody(query);
    const pause = new Pause(this.#patience);
    let read = 0;
    let end = -1;
    let version = "";
    while (read !== end) {
      signal?.throwIfAborted();
      pause.begin();
      const ended = new AbortController();
      const quiet = new Quiet(this.reach.answer, () => ended.abort(new Silent()));
      try {
        const bound = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
        const headers: Record<string, string> = version ? { Range: `bytes=${read}-`, [kept]: version } : {};
        const response = await this.#request("GET", path, { ...(query ? { query } : {}), headers }, bound);
        if (response.status === 412) throw new ServerError(412, "changed", "the file has changed while it was read", "read it again from the start");
        if (response.status !== 200 && response.status !== 206) throw problem(response.status, await response.text());
        if (!version) {
          version = response.headers.get(told) ?? "";
          end = Number(response.headers.get("Content-Length") ?? NaN);
        }
        if (!version || !Number.isInteger(end) || (read > 0 && response.status !== 206)) throw new CoppiceError("the server's answer is no file");
        if (!response.body) continue; // it is empty
        const reader = response.body.getReader();
        while (read < end) {
          const { done, value } = await reader.read();
          if (done) throw new Error("the connection broke");
          quiet.end(); // whoever reads may take as long as that takes
          read += value.length;
          pause.progress();
          yield value;
          quiet.heard();
        }
      } catch (e) {
        signal?.throwIfAborted();
        if (e instanceof CoppiceError) throw e;
        await this.#wait(pause, ended.signal.aborted ? ended.signal.reason : e, what, signal);
      } finally {
        quiet.end();
        ended.abort();
      }
    }
  }

  /** Makes a request, of which begin is told. When nothing was done, and the server is elsewhere by now, it is made there. */
  async #request(method: string, path: string, o: Ask, signal: AbortSignal, after = -1, begin?: (at: Place) => void): Promise<Response> {
    const whole = !(o.data instanceof ReadableStream); // of what is read while it is sent, a part is gone once there is an answer
    for (;;) {
      const at = this.#at;
      begin?.(at);
      let response: Response;
      try {
        response = await this.#requestAt(at, method, path, o, signal, after);
      } catch (e) {
        const refused = untrusted(e, at.url);
        if (refused) throw refused;
        if (unsent(e) && (await this.#moved(at))) continue;
        throw e;
      }
      if (response.status !== 401 || !whole || !(await this.#moved(at))) return response;
      await response.text(); // it is short, and known
    }
  }

  async #requestAt(at: Place, method: string, path: string, o: Ask, signal: AbortSignal, after: number): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${at.token}` };
    if (o.data !== undefined) headers["Content-Type"] = "application/octet-stream";
    else if (o.body !== undefined) headers["Content-Type"] = "application/json";
    if (after >= 0) headers["Accept"] = "text/event-stream";
    if (after > 0) headers["Last-Event-ID"] = String(after);
    const query = o.query && Object.keys(o.query).length > 0 ? `?${new URLSearchParams(o.query)}` : "";
    const body = o.data !== undefined ? (o.data as BodyInit) : o.body !== undefined ? JSON.stringify(o.body) : undefined;
    const init = { method, headers: { ...headers, ...o.headers }, signal, redirect: "error" as const, ...(body !== undefined ? { body } : {}) };
    // What streams has to say so; the types do not know it.
    return this.#fetch(`${at.url}/${path}${query}`, o.data instanceof ReadableStream ? Object.assign(init, { duplex: "half" }) : init);
  }
}
