import { workspaceOf } from "./epochs.js";
import { ServerError } from "./errors.js";
import type { Event } from "./types.js";

/** How many processes are remembered, and how many sessions. */
const most = 10_000;

/** Why a session begins anew that another life of its server had. */
const again = "the server was started again, and does not have what the session had";

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

/**
 * In which life of the server a client has had a result of each session last. A server that was
 * started again, and has not kept its sessions, knows nothing of those before: it cannot say that a
 * session is anew.
 */
export class Sessions {
  #of = new Map<string, string>();

  /** The last event of a call that a life has begun, with what its server cannot know. */
  result(session: string, headers: Headers, event: Event): Event {
    const life = lifeOf(headers);
    if (event.type !== "final" || !life || !event.state) return event; // nothing ran
    const before = this.#of.get(session);
    this.#of.delete(session); // the one that was used last stands last
    if (event.state !== "lost") this.#of.set(session, life); // else it is known that nothing is left
    const [oldest] = this.#of.keys();
    if (this.#of.size > most && oldest !== undefined) this.#of.delete(oldest);
    if (event.state !== "fresh" || event.reason || !before || before === life) return event;
    const note = `[This call got a new kernel: ${again}. The variables of earlier calls are gone.]`;
    return { ...event, reason: again, text: event.text ? `${note}\n\n${event.text}` : note };
  }

  /** We have ended it, or its interpreter: we know what is gone. */
  forget(session: string): void {
    this.#of.delete(session);
  }

  /** We have ended a workspace, and its sessions with it. */
  ended(workspace: string): void {
    for (const session of this.#of.keys()) if (workspaceOf(session) === workspace) this.#of.delete(session);
  }
}

/** The life of the server that has answered; undefined: it does not say. A fleet has nodes in place of lives. */
function lifeOf(headers: Headers): string | undefined {
  return headers.get("Coppice-Node") ? undefined : (headers.get("Coppice-Server") ?? undefined);
}
