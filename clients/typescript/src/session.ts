import { Asking } from "./asked.js";
import type { Client } from "./client.js";
import { sessionKey } from "./epochs.js";
import { ConnectionLost, CoppiceError, NoServer, ServerError } from "./errors.js";
import type { Checkpoint, Code, Event, InputRequest, InputStatus, Memory, Result, SavedCheckpoint, SaveOptions } from "./types.js";
import { cellsOf, checked, checkedBody, defined, executionPath, Following, seconds, sessionPath, which } from "./wire.js";

/** What a session is besides its name. */
export interface SessionOptions {
  /** Its working directory, and a part of its identity. Default: the server's. */
  cwd?: string;
  /** The kernelspec of its kernels, and a part of its identity. Default: the one of sessions that name none. */
  kernel?: string;
  /** Whom it belongs to. */
  owner?: string;
}

/** How code is run. */
export interface StreamOptions {
  /** Seconds. Default: the server's; Infinity: none. */
  timeout?: number;
  /** Is set before the first cell, and stays. */
  env?: Record<string, string>;
  /** Is set for this call, and put back afterwards. */
  callEnv?: Record<string, string>;
  /** Cancels the code. */
  signal?: AbortSignal;
  /** Questions of input() come as input_request, for Session.input. Default: input() raises. */
  allowStdin?: boolean;
}

/** How code is run to its result. */
export interface RunOptions extends Omit<StreamOptions, "allowStdin"> {
  /** Is called with each event. */
  onEvent?: (event: Event) => void;
  /** Is called with each question, and returns the line that input() gives. A result that comes meanwhile is not held up by it. */
  answer?: (question: InputRequest) => string | Promise<string>;
}

/** A session of a server. Client.session makes it. */
export class Session {
  #client: Client;
  #owner: string | undefined;
  /** What tells it from other sessions of the client. */
  #key: string;
  /** Its working directory; undefined: the server's, or the folder of the workspace. */
  readonly cwd: string | undefined;
  /** The kernelspec of its kernels; undefined: the one of sessions that name none. */
  readonly kernel: string | undefined;

  constructor(client: Client, readonly name: string, options: SessionOptions = {}, readonly workspace?: string) {
    sessionPath(name);
    this.#client = client;
    this.cwd = options.cwd;
    this.kernel = options.kernel;
    this.#owner = options.owner;
    this.#key = sessionKey(name, options.cwd, workspace, options.kernel);
  }

  /** Runs code, and resolves to its result. Whatever is thrown here, or by what it calls, cancels the code. */
  async run(code: Code, options: RunOptions = {}): Promise<Result> {
    const { onEvent, answer, signal, ...rest } = options;
    const left = new AbortController();
    const bound = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
    const events = this.stream(code, { ...rest, signal: bound, allowStdin: answer !== undefined });
    const asking = new Asking(events, async (question) => {
      if (answer) await this.input(question, await answer(question));
    });
    try {
      for (;;) {
        const event = await asking.next();
        if (!event) throw new CoppiceError("the execution has no result");
        onEvent?.(event);
        if (event.type === "input_request" && answer) asking.ask(event);
        if (event.type === "final") {
          const { seq: _seq, cell: _cell, type: _type, execution: _execution, ...result } = event;
          return result as unknown as Result;
        }
      }
    } finally {
      left.abort(); // an event may be waited for
      await events.return();
    }
  }

  /**
   * Runs code, and yields each event while it happens, the final one last. The code
   * starts with the first event that is asked for; it is cancelled when the loop is left
   * before the end.
   */
  async *stream(code: Code, options: StreamOptions = {}): AsyncGenerator<Event, void, undefined> {
    const { env, callEnv, signal, allowStdin } = options;
    // It has a name of ours, so that it may be sent twice.
    const id = crypto.randomUUID();
    const body = {
      id, session: this.name, cells: cellsOf(code), cwd: this.cwd, workspace: this.workspace, kernel: this.kernel, owner: this.#owner, env, call_env: callEnv,
      timeout_seconds: options.timeout === undefined ? undefined : seconds(options.timeout), allow_stdin: allowStdin || undefined,
    };
    checkedBody(body);
    signal?.throwIfAborted();
    const { asked, epochs, had } = this.#client;
    let ended = false;
    asked.follow(id);
    let timeout = 5000;
    try {
      const start = (headers: Record<string, string>) => this.#client.begin(id, { body, signal, headers });
      const says = { ...which, ...epochs.headers(this.#key) };
      const headers = await start(says)
        .catch((e: unknown) => {
          if (epochs.goesOn(this.#key, says, e)) return start({ ...which, ...epochs.headers(this.#key) });
          throw e;
        })
        .catch((e: unknown) => {
          ended = e instanceof ServerError || e instanceof NoServer; // it never began, or is gone
          throw e;
        });
      epochs.heard(this.#key, headers);
      for await (const event of this.#client.events(new Following(id), signal)) {
        if (asked.again(event)) continue;
        ended = event.type === "final";
        yield had.result(this.#key, headers, event);
      }
    } catch (e) {
      if (e instanceof ConnectionLost) timeout = 1000; // it will hardly answer, but may read on
      throw e;
    } finally {
      // What made us leave is more important than an error of this.
      if (!ended) await this.#client.ask("POST", executionPath(id, "/cancel"), { once: true, timeout, patience: 0 }).catch(() => undefined);
      asked.leave(id);
    }
  }

  /** Answers a question, and says what became of the answer: "already answered", too, where the server's word on it was lost, and it was sent again. */
  async input(question: InputRequest, value: string): Promise<InputStatus> {
    if (question.type !== "input_request") throw new RangeError("the event asks nothing");
    const body = { id: question.id, value: checked("an answer", value) };
    const { asked } = this.#client;
    const told = await this.#client.ask("POST", executionPath(question.execution, "/input"), { body }).catch((e: unknown) => {
      throw e instanceof ServerError ? asked.refused(question, e) : e;
    });
    const { status } = told as { status: InputStatus };
    asked.answered(question, status);
    return status;
  }

  /**
   * Copies the session with all its variables, as many times as said. A ServerError with
   * the code fork_refused says why it cannot be copied.
   */
  async fork(copies = 1): Promise<Session[]> {
    const made = (await this.#ask("POST", "/fork", { copies, owner: this.#owner })) as { sessions: { session: string; cwd?: string }[] };
    return made.sessions.map((s) => {
      const cwd = s.cwd || this.cwd;
      return new Session(this.#client, s.session, { ...(cwd !== undefined ? { cwd } : {}), ...(this.kernel !== undefined ? { kernel: this.kernel } : {}), ...(this.#owner !== undefined ? { owner: this.#owner } : {}) }, this.workspace);
    });
  }

  /**
   * Keeps the state as it is now, for rewind, until it is dropped or the server ends. Files
   * are no part of it. A ServerError with the code fork_refused says why it cannot be kept.
   */
  async checkpoint(): Promise<Checkpoint> {
    return (await this.#ask("POST", "/checkpoint")) as Checkpoint;
  }

  /** Goes back to the state of a checkpoint, which stays. It may be another session's with the same working directory. */
  async rewind(checkpoint: Checkpoint | string): Promise<void> {
    await this.#ask("POST", "/rewind", { checkpoint: typeof checkpoint === "string" ? checkpoint : checkpoint.id });
  }

  /**
   * Keeps the variables on the server's disk under a name; the session goes on. What would
   * lose something is refused unless lossy, and a name that is there unless replace: a
   * ServerError with the code hibernate_refused, whose hint says why. It needs coppice serve
   * --hibernate.
   */
  async save(name: string, options: SaveOptions = {}): Promise<Memory> {
    if (!name) throw new RangeError("a checkpoint on disk has a name");
    return (await this.#ask("POST", "/save", { name, owner: this.#owner, ...options })) as Memory;
  }

  /**
   * Goes on from what save has kept, of this session or another one, in this server or an
   * earlier one; it stays. What the session had is gone; it need not have been there. A
   * ServerError with the code restore_refused says why it was not done, and nothing has changed then.
   */
  async restore(checkpoint: SavedCheckpoint | string): Promise<Memory> {
    const name = typeof checkpoint === "string" ? checkpoint : checkpoint.name;
    if (!name) throw new RangeError("a checkpoint on disk has a name");
    return (await this.#ask("POST", "/restore", { name, owner: this.#owner })) as Memory;
  }

  /** Stops what runs. The variables stay. */
  async interrupt(): Promise<void> {
    await this.#ask("POST", "/interrupt");
  }

  /** Ends the interpreter; the next call has a new one. */
  async reset(): Promise<void> {
    await this.#ask("POST", "/reset");
    this.#client.had.forget(this.#key);
  }

  /** Ends the session. What runs is cancelled. One that has ended already is fine. */
  async close(): Promise<void> {
    await this.#ask("DELETE", "").catch((e: unknown) => {
      if (!(e instanceof ServerError && e.status === 404)) throw e;
    });
    this.#client.epochs.forget(this.#key);
    this.#client.had.forget(this.#key);
  }

  #ask(method: string, action: string, body?: unknown): Promise<unknown> {
    return this.#client.ask(method, sessionPath(this.name, action), { body, once: true, query: defined({ cwd: this.cwd, workspace: this.workspace, kernel: this.kernel }) });
  }
}
