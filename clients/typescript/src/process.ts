import type { Ask } from "./ask.js";
import type { Client } from "./client.js";
import { ServerError } from "./errors.js";
import type { ProcessEvent, ProcessExit, ProcessInfo } from "./types.js";
import { bytesOf, Printing, processPath, which } from "./wire.js";

/** Text (sent as UTF-8) or bytes. */
export type Data = string | Uint8Array;

/** How a program is started. */
export interface StartOptions {
  /** Is set on top of the workspace's environment. */
  env?: Record<string, string>;
  /** Is relative to the folder of the workspace. Default: that. */
  cwd?: string;
  /** Gives it an input to write to. A terminal has one in any case. */
  input?: boolean;
  /** Gives it a terminal of this size. Default: its output goes to pipes. */
  terminal?: { columns: number; rows: number };
  /** Ends it after so many seconds. Default: never. */
  timeout?: number;
  labels?: Record<string, string>;
  /** How many bytes of output are kept for readers who come later. Default: 64 MiB. */
  keep?: number;
}

/** How a program is run to its end. */
export interface ExecOptions extends Pick<StartOptions, "env" | "cwd" | "timeout" | "labels"> {
  /** Its standard input. Default: none. */
  input?: Data;
  /** Ends the program. */
  signal?: AbortSignal;
}

/** A process of a workspace. Workspace.start makes it. */
export class Process {
  #client: Client;

  constructor(client: Client, readonly workspace: string, readonly id: string) {
    processPath(workspace, id);
    this.#client = client;
  }

  /** What it is, and how it ended when it has. */
  async info(): Promise<ProcessInfo> {
    return (await this.#ask("GET", this.#path())) as ProcessInfo;
  }

  /** Waits for its end. */
  async wait(signal?: AbortSignal): Promise<ProcessExit> {
    for (;;) {
      const { exit } = (await this.#ask("GET", this.#path(), { query: { wait: "30" }, signal, waits: true })) as ProcessInfo;
      if (exit) return exit;
    }
  }

  /**
   * What it prints after the event of a number, until its end; leaving the loop leaves it
   * running. While it is read, a process that prints faster waits.
   */
  async *events(options: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<ProcessEvent, void, undefined> {
    try {
      yield* this.#client.events(new Printing(this.workspace, this.id, options.after), options.signal);
    } catch (e) {
      throw await this.#lost(e);
    }
  }

  /** Writes to its input, and resolves when it has taken all. */
  async write(data: Data): Promise<void> {
    let rest = bytesOf(data);
    while (rest.length > 0) {
      const { taken } = (await this.#ask("POST", this.#path("/input"), { data: rest.subarray(0, most), once: true }, true)) as { taken: number };
      rest = rest.subarray(taken);
    }
  }

  /** Ends its input; a terminal gets what Ctrl-D is there. */
  async closeInput(): Promise<void> {
    await this.#ask("POST", this.#path("/close"), { once: true }, true);
  }

  /** Sends a signal to it and its group: INT, TERM, KILL, HUP, USR1, … */
  async signal(name: string): Promise<void> {
    await this.#ask("POST", this.#path("/signal"), { body: { signal: name }, once: true });
  }

  /** Gives its terminal another size. */
  async resize(columns: number, rows: number): Promise<void> {
    await this.#ask("POST", this.#path("/resize"), { body: { columns, rows } });
  }

  /**
   * Ends it and its group, by SIGTERM and after so many seconds (at most 60) by SIGKILL, and
   * resolves to how it ended. One that has ended already is fine.
   */
  async end(grace = 2): Promise<ProcessExit> {
    return ((await this.#ask("DELETE", this.#path(), { query: { grace: String(grace) } })) as { exit: ProcessExit }).exit;
  }

  /** @param input whether it is about its input */
  async #ask(method: string, path: string, o: Ask = {}, input = false): Promise<unknown> {
    try {
      return await this.#client.ask(method, path, o);
    } catch (e) {
      if (input && e instanceof ServerError && e.code === "no_input") {
        const info = await this.info();
        if (info.input || info.terminal) throw new ServerError(e.status, e.code, "the input of the process is closed");
      }
      throw await this.#lost(e);
    }
  }

  /** What it means that it is refused. */
  #lost(e: unknown): Promise<unknown> {
    return this.#client.lives.lost(this.#path(), e, async () => (await this.#client.told("GET", "api/health", { headers: which })).headers);
  }

  #path(action = ""): string {
    return processPath(this.workspace, this.id, action);
  }
}

/** How much one request writes, in bytes. */
const most = 256 << 10;
