/**
 * What only node and deno can do: find the server of this user by the file that it leaves,
 * and copy a folder of this machine into a workspace.
 *
 * @module
 */
import { open, readdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { Readable } from "node:stream";

import { Client, type ClientOptions } from "./client.js";
import { NoServer } from "./errors.js";
import type { Files } from "./files.js";
import type { File } from "./types.js";
import type { Place } from "./wire.js";

/** Where to look. */
export interface FindOptions extends Omit<ClientOptions, "url" | "token" | "refind"> {
  /** Holds the folder .coppice. Default: COPPICE_HOME, else the home directory. */
  home?: string;
}

/** A record is a small file. */
const most = 1 << 20;

/**
 * The client of the server that runs for this user; NoServer when there is none. It follows the
 * server when that is started again elsewhere, with another token.
 */
export async function find(options: FindOptions = {}): Promise<Client> {
  const { home, ...rest } = options;
  const path = join(home || process.env["COPPICE_HOME"] || homedir(), ".coppice", "serve.json");
  return new Client({ ...rest, ...(await place(path)), refind: () => place(path).catch(() => undefined) });
}

/** Where the server is that a record tells of; NoServer when it does not run. */
async function place(path: string): Promise<Place> {
  const text = await readRecord(path);
  const { url, token, pid, start } = parse(text);
  if (typeof url !== "string" || typeof token !== "string" || typeof pid !== "number") throw new NoServer(`${path} is not the record of a server; remove it if none runs`);
  if (!(await runs(pid, typeof start === "string" ? start : ""))) throw new NoServer(`no coppice serve runs: process ${pid} of ${path} has ended; start it again`);
  return { url, token };
}

/**
 * Copies what is in a folder of this machine below a directory of a workspace, file by file.
 * Permission bits stay. Symbolic links are left out. What is there and not in the folder stays.
 */
export async function upload(folder: string, files: Files, path = "."): Promise<File[]> {
  const made: File[] = [];
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const from = join(folder, entry.name);
    const to = path === "." || path === "" ? entry.name : `${path.replace(/\/+$/, "")}/${entry.name}`;
    if (entry.isDirectory()) {
      made.push(await files.make(to), ...(await upload(from, files, to)));
    } else if (entry.isFile()) {
      const file = await open(from);
      try {
        const mode = ((await file.stat()).mode & 0o777).toString(8).padStart(3, "0");
        made.push(await files.write(to, Readable.toWeb(file.createReadStream({ autoClose: false })) as ReadableStream<Uint8Array>, { mode }));
      } finally {
        await file.close();
      }
    }
  }
  return made;
}

/** The members of a record, of any type; none where the text is no record. */
function parse(text: string): Record<"url" | "token" | "pid" | "start", unknown> {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    record = undefined;
  }
  return { url: undefined, token: undefined, pid: undefined, start: undefined, ...(typeof record === "object" ? record : {}) };
}

async function readRecord(path: string): Promise<string> {
  let file;
  try {
    file = await open(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") throw new NoServer("no coppice serve runs; start it in another terminal, or name url and token");
    throw new NoServer(`${path} cannot be read`, { cause });
  }
  try {
    const { mode, size } = await file.stat();
    if (process.platform !== "win32" && mode & 0o077) throw new NoServer(`${path} can be read by others: end the server, remove the file, and start it again`);
    return size > most ? "" : await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/**
 * Whether the process that wrote a record runs. On Linux, start tells it from another one
 * that has its number now. Elsewhere a process with its number is taken for it: the
 * server has to answer.
 */
async function runs(pid: number, start: string): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (process.platform === "linux" && start) {
    try {
      const stat = await readFile(`/proc/${pid}/stat`, "latin1");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const boot = (await readFile("/proc/sys/kernel/random/boot_id", "latin1")).trim();
      return !["Z", "X"].includes(fields[0] ?? "X") && `${fields[19]}@${boot}` === start;
    } catch {
      return false;
    }
  }
  try {
    process.kill(pid, 0);
    return true;
  } catch (e) {
    return (e as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
