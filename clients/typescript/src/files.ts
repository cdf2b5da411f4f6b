import type { Client } from "./client.js";
import type { File, Listing } from "./types.js";
import { checked, defined, joinedOf, shown, workspacePath } from "./wire.js";

/** What can be written: text (as UTF-8), bytes, a Blob, or a stream, which is read while it is sent (not by browsers). */
export type Content = string | Uint8Array | Blob | ReadableStream<Uint8Array>;

/** What is content, besides text and views of bytes. */
const kinds = [Blob, ReadableStream, ArrayBuffer];

/** How a file is written. */
export interface WriteOptions {
  /** The permission bits of a new file, in octal. Default: 644. */
  mode?: string;
  /** Refuses to replace a file. */
  new?: boolean;
  /** The etag of the file that may be replaced: a ServerError has the code changed when it is another one by now. */
  ifMatch?: string;
  signal?: AbortSignal;
}

/** The files of a workspace. Paths are relative to its folder, with slashes. */
export class Files {
  #client: Client;
  #workspace: string;

  constructor(client: Client, workspace: string) {
    this.#client = client;
    this.#workspace = workspace;
  }

  /** What a file holds. */
  async read(path: string, signal?: AbortSignal): Promise<Uint8Array> {
    return joinedOf(this.stream(path, signal));
  }

  /** What a file holds, as UTF-8. */
  async readText(path: string, signal?: AbortSignal): Promise<string> {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await this.read(path, signal));
  }

  /**
   * What a file holds, piece by piece. A connection that breaks is made again from where it
   * broke; a ServerError has the code changed when the file was meanwhile.
   */
  stream(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#client.content(workspacePath(this.#workspace, "/files"), { path }, `read ${path}`, signal);
  }

  /** Makes content what a file holds, whole or not at all; directories above it are made. */
  async write(path: string, content: Content, options: WriteOptions = {}): Promise<File> {
    const headers: Record<string, string> = { ...(options.new ? { "If-None-Match": "*" } : {}), ...(options.ifMatch ? { "If-Match": options.ifMatch } : {}) };
    if (typeof content === "string") checked("what is written", content);
    else if (!kinds.some((kind) => content instanceof kind) && !ArrayBuffer.isView(content)) {
      throw new TypeError(`what is written is text, bytes (a Uint8Array), a Blob or a ReadableStream, not ${shown(content)}`);
    }
    const once = content instanceof ReadableStream || Object.keys(headers).length > 0;
    const query = defined({ path, mode: options.mode });
    // It takes as long as it takes to send.
    return (await this.#ask("PUT", "", { data: content, query, headers, once, signal: options.signal, timeout: 0 })) as File;
  }

  /** What a directory ("": the folder) holds, depth levels of it (1; -1: all), at most so many entries (100,000, which is the most). */
  async list(path = ".", options: { depth?: number; most?: number } = {}): Promise<Listing> {
    const { depth, most } = options;
    return (await this.#ask("GET", "/list", { query: defined({ path: path || ".", depth: depth?.toString(), most: most?.toString() }), waits: true })) as Listing;
  }

  /** What stands at a path; a symbolic link itself. */
  async stat(path: string): Promise<File> {
    return (await this.#ask("GET", "/stat", { query: { path } })) as File;
  }

  /** Makes a directory, and those above it. One that is there is fine. */
  async make(path: string): Promise<File> {
    return (await this.#ask("POST", "/make", { body: { path } })) as File;
  }

  /** Gives something another name. replace lets a file take the place of another. */
  async move(path: string, to: string, options: { replace?: boolean } = {}): Promise<File> {
    return (await this.#ask("POST", "/move", { body: { from: path, to, replace: options.replace }, once: true })) as File;
  }

  /** Removes what stands at a path; a directory that is not empty only with all. */
  async remove(path: string, options: { all?: boolean } = {}): Promise<void> {
    await this.#ask("DELETE", "", { query: defined({ path, all: options.all ? "true" : undefined }), once: true });
  }

  #ask(method: string, action: string, o: Parameters<Client["ask"]>[2]): Promise<unknown> {
    return this.#client.ask(method, workspacePath(this.#workspace, `/files${action}`), o);
  }
}
