// A server with the routes that the page asks, and any number of sessions that live:
// for what a real one cannot show in a test, such as five thousand of them.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";

const kinds = { ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/**
 * fake serves the page in the folder of the package liveview.
 * o.sessions makes the list of sessions, o.marks, o.problems and o.stories what the
 * vitals tell, o.executions what was executed with o.events of each, o.workspaces each with
 * its info, files and processes with what they print; o.health and o.tree are put over what
 * the server says of itself, o.look what the kernel knows of code, o.refuse what is answered
 * to who changes something; o.rate is how many changes there are in a second.
 */
export async function fake(dir, o) {
  const policy = /const policy = "([^"]+)"/.exec(await readFile(join(dir, "liveview.go"), "utf8"))[1];
  const page = (await readFile(join(dir, "assets", "page.html"), "utf8")).replace("{{.Version}}", "v1.2.3");
  const began = new Date().toISOString(), watchers = new Set(), state = { seq: 0, answered: [], posts: [] }, past = [];
  const sessions = o.sessions, byID = (s) => s.session + "@" + s.cwd;
  const samples = Array.from({ length: 360 }, (_, i) => {
    const wave = 1 + Math.sin(i / 25) / 2, n = sessions.length;
    return {
      seq: i + 1, at: new Date(Date.now() - (360 - i) * 10_000).toISOString(), sessions: { idle: Math.round(n * .7), busy: Math.round(n * .3 * wave) }, queue: Math.round(n * .05 * wave),
      calls: { ok: Math.round(200 * wave + 20 * Math.random()), error: Math.round(9 * wave), ...(i % 60 === 7 ? { lost: 5 } : {}) }, p50_ms: 40 * wave, p99_ms: 900 * wave + (i % 60 === 7 ? 2000 : 0),
      starts: i % 20 === 0 ? 4 : 0, restarts: i % 60 === 8 ? 5 : 0, deaths: i % 60 === 7 ? 5 : 0, evictions: i % 90 === 3 ? 3 : 0, rss: sessions.reduce((a, s) => a + (s.rss ?? 0), 0) * (.6 + i / 900), cpu_percent: 120 * wave, pressure: Math.max(0, .3 * Math.sin(i / 40)),
    };
  });
  const send = (res, status, kind, text) => { res.writeHead(status, { "Content-Type": kind, "Content-Security-Policy": policy, "Cache-Control": "no-store" }); res.end(text); };
  const json = (res, v, status = 200) => send(res, status, "application/json", JSON.stringify(v));
  let looked = Date.now();
  const worked = () => { // busy ones use a part of a processor for as long as has passed
    const passed = (Date.now() - looked) / 1000;
    looked += 1000 * passed;
    for (const s of sessions) if (s.pid && s.state === "busy") s.cpu_seconds = (s.cpu_seconds ?? 0) + (s.load ?? .5) * passed;
  };
  const change = (c) => {
    const one = { seq: ++state.seq, at: new Date().toISOString(), ...c }, data = JSON.stringify(one);
    past.push(one);
    if (past.length > 8192) past.shift(); for (const w of watchers) w.write(`id: ${state.seq}\ndata: ${data}\n\n`);
  };
  const fits = (v, filter) => (filter ?? "").toLowerCase().split(/\s+/).every((w) => JSON.stringify(v).toLowerCase().includes(w));
  const tree = () => ({ name: "supervisor", kind: "supervisor", state: "idle", children: [{ name: "runner", kind: "gateway", state: "idle", children: [{ name: "fork-server", kind: "server", state: "idle", restarts: 0 }, ...sessions.map((s) => ({ name: byID(s), kind: "kernel", state: s.state, restarts: s.restarts, queue: s.queue, pinned: s.pinned, rss: s.rss }))] }] });

  const server = createServer(async (req, res) => {
    const url = new URL(req.url, "http://x"), path = url.pathname;
    try {
      if (path === "/") return send(res, 200, "text/html; charset=utf-8", page);
      if (path.startsWith("/live/")) return send(res, 200, kinds[extname(path)], await readFile(join(dir, "assets", path.slice(6))));
      if (req.headers.authorization !== "Bearer fake") return json(res, { error: { code: "unauthorized", message: "no" } }, 401);
      let body = "";
      for await (const part of req) body += part;
      if (req.method !== "GET") state.posts.push({ method: req.method, path: decodeURIComponent(req.url), body: body ? JSON.parse(body) : null });
      if (req.method !== "GET" && o.refuse && !/\/(complete|inspect|resize|input)$/.test(path)) return json(res, { error: o.refuse }, 409);
      switch (path) {
        case "/api/health": return json(res, { status: "ok", version: "v1.2.3", pid: 42, backend: "runner", cwd: "/home/ada/project", started: began, sessions: sessions.length, executions: 0, ...o.health });
        case "/api/sessions": worked(); return json(res, { sessions: sessions.map(({ load, ...s }) => s) });
        case "/api/tree": return json(res, o.tree ?? tree());
        case "/api/overview": return json(res, { at: new Date().toISOString(), step_seconds: 10, newest: 360, samples: samples.filter((s) => s.seq > Number(url.searchParams.get("after") ?? 0)), limits: { sessions: o.limit ?? sessions.length * 2, memory: 64 * 2 ** 30, cpus: 8, fork: true }, problems: o.problems ?? [], marks: o.marks ?? [] });
        case "/api/story": return json(res, { key: {}, moments: o.stories?.[url.searchParams.get("session")] ?? [] });
        case "/api/events": {
          const before = Number(url.searchParams.get("before") ?? Infinity), limit = Number(url.searchParams.get("limit") ?? 100), all = past.filter((c) => c.seq < before && fits(c, url.searchParams.get("filter")));
          return json(res, { events: all.slice(-limit), more: all.length > limit, newest: state.seq });
        }
        case "/api/workspaces": return json(res, { workspaces: (o.workspaces ?? []).map((w) => w.info) });
        case "/api/executions": {
          const asked = ["outcome", "session", "cwd"].filter((name) => url.searchParams.get(name)), limit = Number(url.searchParams.get("limit") ?? 1000);
          const all = (o.executions ?? []).map(({ events, ...x }) => x).filter((x) => fits(x, url.searchParams.get("filter")) && asked.every((name) => x[name] === url.searchParams.get(name)));
          return json(res, { executions: all.slice(0, limit), more: all.length > limit });
        }
        case "/api/changes":
          res.writeHead(200, { "Content-Type": "text/event-stream" });
          res.write(": hello\n\n");
          watchers.add(res);
          req.on("close", () => watchers.delete(res));
          return undefined;
        default:
      }
      const ws = /^\/api\/workspaces\/([^/]+)(?:\/(.*))?$/.exec(path), w = ws && (o.workspaces ?? []).find((one) => one.info.name === decodeURIComponent(ws[1]));
      if (w && !ws[2]) return json(res, w.info);
      if (w && ws[2] === "files/list") return json(res, { files: w.files });
      if (w && ws[2] === "processes") return json(res, { processes: w.processes.map(({ prints, ...p }) => p) });
      if (w && ws[2].endsWith("/events")) {
        res.writeHead(200, { "Content-Type": "text/event-stream" });
        const p = w.processes.find((one) => ws[2].includes(one.id));
        res.write(`data: ${JSON.stringify({ seq: 1, type: "output", data: Buffer.from(p.prints).toString("base64") })}\n\n`);
        return undefined;
      }
      if (o.look && /\/(complete|inspect)$/.test(path)) return json(res, o.look);
      const m = /^\/api\/executions\/([\w-]+)(\/events|\/input)?$/.exec(path), x = m && (o.executions ?? []).find((one) => one.id === m[1]);
      if (x && m[2] === "/events") {
        res.writeHead(200, { "Content-Type": "text/event-stream" });
        x.events.forEach((e, i) => res.write(`data: ${JSON.stringify({ seq: i + 1, cell: 0, ...e })}\n\n`));
        if (x.state === "ended") res.end();
        return undefined;
      }
      if (x && m[2] === "/input") { state.answered.push(JSON.parse(body)); return json(res, { status: "accepted" }); }
      if (x) { const { events, ...info } = x; return json(res, info); }
      if (path.startsWith("/api/sessions/")) { res.writeHead(204); return res.end(); }
      return json(res, { error: { code: "not_found", message: "there is no " + path } }, 404);
    } catch (err) {
      return json(res, { error: { code: "internal", message: String(err) } }, 500);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

  let at = 0;
  const timer = o.rate ? setInterval(() => { // ten times a second, a tenth of them
    for (let i = 0; i < o.rate / 10; i++) {
      const s = sessions[at = (at + 7919) % sessions.length], from = s.state, to = from === "busy" ? "idle" : "busy";
      if (!["busy", "idle"].includes(from)) continue;
      s.state = to;
      s.since = new Date().toISOString();
      change({ type: "tree", tree: { type: "child_changed", path: "supervisor/runner/" + byID(s), key: byID(s), kind: "kernel", epoch: 1, from, to } });
    }
  }, 100) : null;
  return {
    url: `http://127.0.0.1:${server.address().port}`, state, change,
    close: () => { clearInterval(timer); server.closeAllConnections(); return new Promise((resolve) => server.close(resolve)); },
  };
}

/** fleet makes n sessions of all kinds, with what the vitals say of them. */
export function fleet(n) {
  const now = Date.now(), at = (s) => new Date(now - s * 1000).toISOString(), names = ["analysis", "ingest", "report", "train", "scrape", "review", "plan", "chat"], owners = ["ada", "grace", "linus", "team-blue", ""];
  const sessions = Array.from({ length: n }, (_, i) => ({
    session: `${names[i % 8]}-${String(Math.floor(i / 8)).padStart(3, "0")}`, cwd: ["/home/ada/project", "/home/grace/models/v2", "/srv/batch/data", "/home/ada/other/data"][i % 4], state: i % 10 < 3 ? "busy" : "idle", queue: i % 37 === 5 ? 3 : 0, done: (i * 7919) % 400,
    pinned: i % 50 === 9, restarts: i % 97 === 3 ? 1 : 0, owner: owners[i % 5], pid: 1000 + i, rss: (20 + (i * 7919) % 90 + (i % 61 === 7 ? 700 : 0)) * 2 ** 20, cpu_seconds: i % 30, since: at((i * 13) % 4000), load: (i % 7) / 60,
  }));
  const marks = [], problems = [], key = (s) => ({ session: s.session, cwd: s.cwd });
  const give = (i, level, kind, why, what, todo, more = {}) => {
    const s = sessions[i % n];
    marks.push({ key: key(s), level, why, since: at(90 + i), ...more });
    problems.push({ level, kind, key: key(s), since: at(90 + i), what, do: todo, ...(more.question ? { until: more.question.until } : {}) });
    return s;
  };
  Object.assign(give(12, "bad", "refused", "it failed 3 times in a minute", "It refuses calls: its kernel failed for good (it failed 3 times in a minute).", "Reset it for an empty kernel, or stop it."), { state: "failed", restarts: 3, last_exit: { kind: "exhausted", reason: "it failed 3 times in a minute" }, pid: 0, rss: 0 });
  Object.assign(give(20, "asks", "asks", "Which quarter shall I load? ", "Its code waits for a person: “Which quarter shall I load?”.", "Answer on its page, or interrupt it.", { question: { execution: "x-asks", id: "q1", prompt: "Which quarter shall I load? ", asked: at(70), until: new Date(now + 230_000).toISOString() } }), { state: "busy" });
  Object.assign(give(33, "shaky", "died", "died: the process was killed (signal 9); the machine had no memory left", "Its kernel died (the process was killed (signal 9); the machine had no memory left); its variables are lost.", "Make the calls again that made them; a call that goes well clears this."), { restarts: 1, last_exit: { kind: "failed", reason: "the process was killed (signal 9); the machine had no memory left" } });
  Object.assign(give(41, "shaky", "hung", "hung: it did not answer for 30 s", "Its kernel did not answer and was given up (it did not answer for 30 s); its variables are lost.", "Make the call again; look for code that blocks without end."), { restarts: 1, last_exit: { kind: "hung", reason: "it did not answer for 30 s" } });
  problems.push({ level: "shaky", kind: "limit", key: { session: "", cwd: "" }, what: `${n} of ${Math.round(n * 1.08)} places for sessions are taken.`, do: "A new one evicts the one that is idle for longest: pin what has to stay, or raise --max-sessions." });
  return { sessions, marks, problems, limit: Math.round(n * 1.08) };
}
