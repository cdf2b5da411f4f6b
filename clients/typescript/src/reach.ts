// Whether a server is in reach: how long it may say nothing, and what no patience mends.
import { NoServer } from "./errors.js";

/** How long one answer may take at a server that is in reach; those that wait at the server wait less. In milliseconds, as all here. */
export const longest = 120_000;

/** How long a server may say nothing before it counts as out of reach. */
export class Reach {
  /** Until an answer that is there at once; without patience nothing is tried again, but an answer is waited for. */
  readonly answer: number;
  /** In a stream: one sign of life comes every 15 s. What is taken for broken too early is only connected again. */
  readonly silence: number;
  /** After how long without an answer that may take its time the server is asked how it is, and from then on how often. */
  readonly ask: readonly [number, number];

  /** @param least the least that an answer is waited for: less patience is for tries, not for a machine that is busy */
  constructor(patience: number, least = 1000, alive = 15_000) {
    this.answer = patience > 0 ? Math.min(Math.max(patience, least), longest) : 30_000;
    this.silence = Math.min(45_000, alive + this.answer);
    this.ask = [this.answer / 8, this.answer / 2];
  }
}

/** In how many parts a silence is waited for: a process that stands still meanwhile loses one of them, and what has come by then is taken first. */
const parts = 8;

/** Calls over once nothing was heard for so long; after 0: never. */
export class Quiet {
  #left = parts;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly limit: number, private readonly over: () => void) {
    this.heard();
  }

  /** Something has come. */
  heard(limit = this.limit): void {
    this.end();
    if (!limit) return;
    this.#left = parts;
    this.#timer = setInterval(() => {
      if (--this.#left > 0) return;
      this.end();
      this.over();
    }, limit / parts);
  }

  /** Ends it without over, until something is heard. */
  end(): void {
    clearInterval(this.#timer);
  }
}

/** Sees to it that a server is alive while it takes its time to answer: calls over when it is not. */
export class Lookout {
  #timer: ReturnType<typeof setTimeout>;
  #ended = false;

  constructor(alive: () => Promise<unknown>, [first, next]: readonly [number, number], over: (cause: unknown) => void) {
    const look = () => {
      alive().then(
        () => {
          if (!this.#ended) this.#timer = setTimeout(look, next);
        },
        (cause: unknown) => {
          if (this.#ended) return;
          if (silent(cause)) over(cause);
          else this.#timer = setTimeout(look, next);
        },
      );
    };
    this.#timer = setTimeout(look, first);
  }

  end(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }
}

/** A server has said nothing for too long. */
export class Silent extends Error {
  constructor() {
    super("the server has been silent for too long");
  }
}

/**
 * Whether an error is that a server said nothing. One that takes no connections any more may be
 * about to end, and answers before it does what it was asked.
 */
function silent(e: unknown): boolean {
  const code = e instanceof Error && e.cause instanceof Error && "code" in e.cause ? e.cause.code : "";
  return e instanceof Silent || code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT";
}

/** Why a request failed: fetch hides that in the cause. url is where it was to go. */
export function reason(e: unknown, url = ""): string {
  if (!(e instanceof Error)) return String(e);
  const { code, syscall } = (e.cause ?? {}) as { code?: unknown; syscall?: unknown };
  const none = code === "ECONNREFUSED" || (code === "ENOENT" && syscall === "connect");
  if (url && none) return `no server runs at ${url}; start one with coppice serve`;
  return e.cause instanceof Error && e.cause.message ? e.cause.message : e.message;
}

/** What node says of a certificate, and of what answers and speaks no TLS. Browsers do not tell. */
const certificate = /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED)/;
const protocol = /^(ERR_SSL_(?!.*EOF)|EPROTO$)/;

/** What it means that a connection could not be made, where trying again does not help. */
export function untrusted(e: unknown, url: string): NoServer | undefined {
  const code = e instanceof Error && e.cause instanceof Error && "code" in e.cause ? String(e.cause.code) : "";
  if (certificate.test(code)) return new NoServer(`the certificate of ${url} is not trusted: ${reason(e)}; to trust an authority of your own, name the file of its certificate in NODE_EXTRA_CA_CERTS`, { cause: e });
  if (protocol.test(code)) return new NoServer(`${url} does not speak TLS as it should: ${code}; is it http in place of https?`, { cause: e });
  return undefined;
}

/** The text of an answer; heard is called with each piece of it. */
export async function textOf(response: Response, heard: () => void): Promise<string> {
  if (!response.body) return response.text();
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    heard();
    text += decoder.decode(value, { stream: true });
  }
}

/** Resolves after so many milliseconds, and rejects when the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
