import type { Client } from "./client.js";
import { CoppiceError, ServerError } from "./errors.js";
import { Files } from "./files.js";
import { type Data, type ExecOptions, Process, type StartOptions } from "./process.js";
import { Session, type SessionOptions } from "./session.js";
import type { Isolation, ProcessExit, ProcessInfo, ProcessResult, WorkspaceInfo, WorkspaceLimits, WorkspaceTotal } from "./types.js";
import { bytesOf, checkedBody, defined, joined, processPath, seconds, which, workspacePath } from "./wire.js";

/** What a new workspace is besides its name. */
export interface WorkspaceOptions {
  /** A folder that is there, on the machine of the server. Default: one of its own, which is removed with it. */
  folder?: string;
  /** Leaves the folder that was made for it. */
  keepFolder?: boolean;
  /** Its environment, beside what passes of the server's. */
  env?: Record<string, string>;
  /** The variables of the server that may pass. Default: those that all sessions get. */
  pass?: string[];
  labels?: Record<string, string>;
  /** Bound each session of it. */
  limits?: WorkspaceLimits;
  /** Bound everything in it together. */
  total?: WorkspaceTotal;
  /** What sessions and processes are kept from. Default: the server's. */
  isolation?: Isolation;
  /** How many bytes its files may have. Default: no limit. */
  quota?: number;
  /** After how many seconds from now it ends, and after how many without use. Default of each: never. */
  endIn?: number;
  idleEnd?: number;
  owner?: string;
}

/** @internal The body of a request for a workspace. */
export function workspaceBody(name: string, o: WorkspaceOptions): unknown {
  workspacePath(name);
  const lifetime = o.endIn || o.idleEnd ? defined({ end_in_seconds: o.endIn, idle_end_seconds: o.idleEnd }) : undefined;
  return {
    name, folder: o.folder, keep_folder: o.keepFolder, env: o.env, pass: o.pass, labels: o.labels, limits: o.limits, total: o.total,
    isolation: o.isolation, quota_bytes: o.quota, lifetime, owner: o.owner,
  };
}

/**
 * A workspace: what sessions, files and processes belong to together. Client.createWorkspace
 * and Client.workspace make it.
 */
export class Workspace {
  #client: Client;
  /** Its files. */
  readonly files: Files;

  constructor(client: Client, readonly name: string) {
    workspacePath(name);
    this.#client = client;
    this.files = new Files(client, name);
  }

  /** What it is. A ServerError has the code not_found or ended when it is not there. */
  async info(): Promise<WorkspaceInfo> {
    return (await this.#client.ask("GET", workspacePath(this.name))) as WorkspaceInfo;
  }

  /** Ends it with all that is in it. One that has ended already, or is not there, is fine. */
  async end(): Promise<void> {
    try {
      await this.#client.ask("DELETE", workspacePath(this.name));
    } catch (e) {
      if (!(e instanceof ServerError) || e.code !== "not_found") throw e; // as a node of a fleet says that has never had it
    }
    this.#client.had.ended(this.name);
  }

  /** A session in it: as Client.session; cwd is relative to its folder. */
  session(name: string, options: SessionOptions = {}): Session {
    return new Session(this.#client, name, options, this.name);
  }

  /**
   * Runs a program to its end, and resolves to what it printed and how it ended. args are
   * the program and its arguments; no shell is in between. All that it prints is kept in
   * memory: start is for much of it. Whatever is thrown here ends the program.
   */
  async exec(args: readonly string[], options: ExecOptions = {}): Promise<ProcessResult> {
    const { input, signal, ...rest } = options;
    signal?.throwIfAborted();
    if (input !== undefined) bytesOf(input); // what cannot be written is refused before anything begins
    const process = await this.start(args, { ...rest, input: input !== undefined });
    let failed: { error: unknown } | undefined;
    if (input !== undefined) {
      void this.#feed(process, input).catch((error: unknown) => {
        failed = { error };
        return process.end(0).catch(() => undefined); // it would wait for more
      });
    }
    const out: Uint8Array[] = [];
    const err: Uint8Array[] = [];
    let exit: ProcessExit | undefined;
    let gap = "";
    try {
      for await (const event of process.events(signal ? { signal } : {})) {
        if (event.type === "stdout") out.push(event.data);
        else if (event.type === "stderr") err.push(event.data);
        else if (event.type === "gap") gap = "it printed faster than it was read";
        else if (event.type === "end") exit = event.exit;
      }
    } catch (e) {
      await process.end(0).catch(() => undefined); // what made us leave is more important
      throw e;
    }
    if (failed) throw failed.error;
    if (!exit) throw new CoppiceError("the process has no end");
    const stdout = joined(out);
    return {
      code: exit.code, signal: exit.signal ?? "", stdout, stderr: joined(err), text: new TextDecoder().decode(stdout),
      reason: exit.reason ?? "", incomplete: exit.incomplete || gap,
    };
  }

  /** Starts a program, and resolves without waiting for its end. */
  async start(args: readonly string[], options: StartOptions = {}): Promise<Process> {
    const { timeout, keep, ...rest } = options;
    if (typeof args === "string") throw new TypeError('args is a list, such as ["ls", "-l"]: no shell is in between');
    const bound = timeout === undefined || timeout === Infinity ? undefined : seconds(timeout);
    const body = checkedBody({ args, ...rest, keep_bytes: keep, timeout_seconds: bound });
    const { answer, headers } = await this.#client.told("POST", workspacePath(this.name, "/processes"), { body, once: true, headers: which });
    const { id } = answer as ProcessInfo;
    this.#client.lives.started(processPath(this.name, id), headers);
    return this.process(id);
  }

  /** A process by its id. Nothing is asked of the server. */
  process(id: string): Process {
    return new Process(this.#client, this.name, id);
  }

  /** Those that run, and the last that have ended. */
  async processes(): Promise<ProcessInfo[]> {
    return ((await this.#client.ask("GET", workspacePath(this.name, "/processes"))) as { processes: ProcessInfo[] }).processes;
  }

  async #feed(process: Process, input: Data): Promise<void> {
    try {
      await process.write(bytesOf(input));
      await process.closeInput();
    } catch (e) {
      // It does not have to take all.
      if (!(e instanceof ServerError && (e.code === "ended" || e.code === "no_input"))) throw e;
    }
  }
}
