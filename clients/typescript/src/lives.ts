import { ServerError } from "./errors.js";

/** How many processes are remembered. */
const most = 10_000;

/** Which life of a server has started a process: with that life, the process is gone. */
export class Lives {
  #of = new Map<string, string>();

  /** A process was started; the answer says where. A fleet has nodes in place of lives. */
  started(path: string, headers: Headers): void {
    const life = lifeOf(headers);
    if (!life) return;
    this.#of.set(path, life);
    const [oldest] = this.#of.keys();
    if (this.#of.size > most && oldest !== undefined) this.#of.delete(oldest);
  }

  /** What it means that a process is refused: a server that was started again does not know it. ask asks which life it is in. */
  async lost(path: string, e: unknown, ask: () => Promise<Headers>): Promise<unknown> {
    const was = this.#of.get(path);
    if (!was || !(e instanceof ServerError) || e.status !== 404 || e.code !== "not_found") return e;
    const now = lifeOf(await ask());
    if (!now || now === was) return e;
    return new ServerError(410, "lost", "the server was started again while the process ran: what became of it is not known", "look at what it was to do before you start it again");
  }
}

function lifeOf(headers: Headers): string | undefined {
  return headers.get("Coppice-Node") ? undefined : (headers.get("Coppice-Server") ?? undefined);
}
