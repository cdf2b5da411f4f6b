"use strict";
// The live view. State comes from the HTTP API; the stream of changes says when
// to look again. What kernels print is shown as text and pictures only.
(() => {
  const $ = (id) => document.getElementById(id);
  const KEY = "coppice-token";
  const MAX_OUTPUT = 400_000; // characters that are shown of one execution
  const MAX_EVENTS = 500;
  const REDRAW = 150; // ms that changes are collected before the tree is drawn
  const LOOK = 2000; // ms between looks at memory and processor

  let token = "";
  let live = null; // AbortController of everything that belongs to a sign-in
  let cursor = null; // the last change that was seen
  let paused = false;
  let held = []; // changes that came while paused
  let tree = null, sessions = [], executions = [], selected = null;
  let shown = null; // the execution whose output is shown
  let watching = null; // AbortController of its stream
  let question = null; // the input request that waits
  let drawing = 0;
  let focused = null; // the path of the tree's item that has the focus
  const closed = new Set(); // paths of the tree that are folded
  const cpu = new Map(); // session id -> {at, seconds, percent}
  const changed = new Map(); // path -> until

  // ----- the API

  class Refused extends Error {
    constructor(status, text) { super(text); this.status = status; }
  }

  async function call(method, path, body, signal) {
    const headers = { Authorization: "Bearer " + token };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const res = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, cache: "no-store" });
    if (!res.ok) {
      let text = res.status + " " + res.statusText;
      try {
        const { error } = await res.json();
        text = error.message + (error.hint ? "; " + error.hint : "");
      } catch { /* not ours: the status says it */ }
      throw new Refused(res.status, text);
    }
    return res.status === 204 ? null : res.json();
  }

  // follow reads server-sent events until the stream ends. EventSource cannot send
  // the token.
  async function follow(path, after, signal, each, opened) {
    const headers = { Authorization: "Bearer " + token };
    if (after !== null) headers["Last-Event-ID"] = String(after);
    const res = await fetch(path, { headers, signal, cache: "no-store" });
    if (!res.ok) throw new Refused(res.status, res.status + " " + res.statusText);
    if (opened) opened();
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        const block = rest.slice(0, end);
        rest = rest.slice(end + 2);
        const data = block.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5).trimStart()).join("\n");
        if (data) each(JSON.parse(data));
      }
    }
  }

  const sleep = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });

  // ----- signing in and out

  async function signIn(given) {
    signOut("");
    token = given;
    live = new AbortController();
    const { signal } = live;
    say("connecting");
    try {
      const health = await call("GET", "/api/health", undefined, signal);
      sessionStorage.setItem(KEY, token);
      $("signin").hidden = true;
      $("live").hidden = $("pause").hidden = $("signout").hidden = false;
      $("health").textContent = `${health.backend} backend, process ${health.pid}, ${health.cwd}`;
      $("health").title = health.why;
    } catch (err) {
      signOut(err.status === 401 ? "The server does not know this token." : "The server did not answer: " + err.message);
      $("token").focus();
      return;
    }
    watch(signal);
    look(signal);
    $("tree-section").querySelector("[role=treeitem]")?.focus();
  }

  function signOut(why) {
    live?.abort();
    watching?.abort();
    live = watching = question = shown = selected = tree = null;
    token = "";
    cursor = null;
    held = [];
    sessions = [];
    executions = [];
    sessionStorage.removeItem(KEY);
    $("signin").hidden = false;
    $("live").hidden = $("pause").hidden = $("signout").hidden = true;
    $("signin-error").textContent = why;
    $("health").textContent = "";
    for (const id of ["tree", "history", "events", "output"]) $(id).replaceChildren();
    pause(false);
    say("signed out");
  }

  function say(text) {
    if ($("connection").textContent !== text) $("connection").textContent = text;
  }

  // ----- following the server

  async function watch(signal) {
    for (let wait = 500; !signal.aborted; wait = Math.min(5000, wait * 2)) {
      try {
        await refresh(signal);
        await follow("/api/changes", cursor, signal, (c) => { wait = 250; take(c); }, () => say("live"));
        say("the server closed the connection; trying again");
      } catch (err) {
        if (signal.aborted) return;
        if (err.status === 401) { signOut("The server does not know this token any more."); return; }
        if (err.status === 400) cursor = null; // it has started anew
        say("no connection; trying again");
      }
      try { await sleep(wait, signal); } catch { return; }
    }
  }

  // look reads memory and processor time, which change without an event.
  async function look(signal) {
    try {
      for (;;) {
        await sleep(LOOK, signal);
        if (!paused && !document.hidden && tree) await refresh(signal).catch(() => {}); // watch tells of it
      }
    } catch { /* signed out */ }
  }

  async function refresh(signal) {
    const [t, s, x] = await Promise.all([
      call("GET", "/api/tree", undefined, signal), call("GET", "/api/sessions", undefined, signal), call("GET", "/api/executions", undefined, signal),
    ]);
    if (paused) return;
    tree = t;
    sessions = s.sessions ?? [];
    executions = x.executions ?? [];
    const now = performance.now();
    for (const one of sessions) {
      const id = sessionID(one), before = cpu.get(id);
      if (before && now - before.at < 500) continue;
      const percent = before && one.cpu_seconds >= before.seconds ? 100 * (one.cpu_seconds - before.seconds) / ((now - before.at) / 1000) : null;
      cpu.set(id, { at: now, seconds: one.cpu_seconds ?? 0, percent });
    }
    draw();
  }

  function take(change) {
    cursor = change.seq;
    if (paused) {
      held.push(change);
      if (held.length > MAX_EVENTS) held.shift();
      $("events-state").textContent = `Paused; ${held.length} new`;
      return;
    }
    note(change);
    if (change.tree?.path) changed.set(change.tree.path, performance.now() + 1200);
    if (!drawing) drawing = setTimeout(() => { drawing = 0; if (live) refresh(live.signal).catch(() => {}); }, REDRAW); // watch tells of it
  }

  function pause(on) {
    paused = on;
    $("pause").setAttribute("aria-pressed", String(on));
    $("pause").textContent = on ? "Go on" : "Pause";
    $("events-state").textContent = on ? "Paused" : "";
    if (!on) {
      const list = held;
      held = [];
      list.forEach(take);
      if (live && tree) refresh(live.signal).catch(() => {}); // watch tells of it
    }
  }

  // ----- words

  // An id of the tree is session@cwd, with three characters of the name escaped.
  const sessionID = (s) => s.session.replaceAll("%", "%25").replaceAll("@", "%40").replaceAll("/", "%2F") + "@" + s.cwd;
  const name = (id) => id.includes("@") ? id.split("@")[0].replaceAll("%2F", "/").replaceAll("%40", "@").replaceAll("%25", "%") : id;
  const same = (a, b) => Boolean(a && b) && a.session === b.session && a.cwd === b.cwd;
  const url = (s, act) => `/api/sessions/${encodeURIComponent(s.session)}${act ? "/" + act : ""}?cwd=${encodeURIComponent(s.cwd)}`;
  const mib = (bytes) => bytes ? (bytes / 1048576).toFixed(bytes < 1e8 ? 1 : 0) + " MiB" : "";
  const clock = (text) => new Date(text).toLocaleTimeString([], { hour12: false });

  function span(ms) {
    if (ms < 1000) return Math.round(ms) + " ms";
    if (ms < 60_000) return (ms / 1000).toFixed(1) + " s";
    return Math.floor(ms / 60_000) + " min " + Math.round(ms % 60_000 / 1000) + " s";
  }

  function element(tag, cls, text) {
    const e = document.createElement(tag);
    if (cls) e.className = cls;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  // ----- drawing

  function draw() {
    drawTree();
    drawSession();
    drawHistory();
  }

  function drawTree() {
    const root = $("tree"), had = root.contains(document.activeElement);
    root.replaceChildren(item(tree, "", 1, 1, 1));
    const items = visible();
    const mine = items.find((i) => i.dataset.path === focused) ?? items[0];
    if (mine) {
      mine.tabIndex = 0;
      focused = mine.dataset.path;
      if (had) mine.focus({ preventScroll: true });
    }
  }

  function item(node, parent, level, size, place) {
    const path = parent ? parent + "/" + node.name : node.name;
    const li = element("li");
    li.setAttribute("role", "treeitem");
    li.setAttribute("aria-level", level);
    li.setAttribute("aria-setsize", size);
    li.setAttribute("aria-posinset", place);
    li.tabIndex = -1;
    li.dataset.path = path;
    if ((changed.get(path) ?? 0) > performance.now()) li.classList.add("changed");
    const row = element("div", "node");
    const session = node.kind === "kernel" ? sessions.find((s) => sessionID(s) === node.name) : null;
    row.append(element("span", "name", session ? session.session : node.name));
    row.append(element("span", "state s-" + node.state, node.state));
    const more = [];
    if (node.queue) more.push(node.queue + " waiting");
    if (node.rss) more.push(mib(node.rss));
    if (session) {
      const p = cpu.get(node.name)?.percent;
      if (p !== null && p !== undefined) more.push(p.toFixed(0) + " % cpu");
    }
    if (node.restarts) more.push(node.restarts === 1 ? "1 restart" : node.restarts + " restarts");
    if (node.pinned) more.push("pinned");
    if (node.last_exit && node.last_exit.kind !== "normal") more.push("last exit: " + node.last_exit.kind + (node.last_exit.reason ? ", " + node.last_exit.reason : ""));
    if (node.detail) more.push(node.detail);
    if (more.length) row.append(element("span", "more", more.join(" · ")));
    li.append(row);
    if (session) {
      li.dataset.session = node.name;
      li.setAttribute("aria-selected", String(same(session, selected)));
    }
    // Eight sinks that only make results say nothing to a person.
    const children = (node.children ?? []).filter((c) => c.kind !== "result");
    if (children.length) {
      li.setAttribute("aria-expanded", String(!closed.has(path)));
      if (!closed.has(path)) {
        const ul = element("ul");
        ul.setAttribute("role", "group");
        children.forEach((c, i) => ul.append(item(c, path, level + 1, children.length, i + 1)));
        li.append(ul);
      }
    }
    return li;
  }

  const visible = () => [...$("tree").querySelectorAll("[role=treeitem]")];

  function move(to) {
    if (!to) return;
    visible().forEach((i) => { i.tabIndex = -1; });
    to.tabIndex = 0;
    focused = to.dataset.path;
    to.focus();
  }

  function treeKey(e) {
    const at = e.target.closest("[role=treeitem]");
    if (!at || e.ctrlKey || e.metaKey || e.altKey) return;
    const all = visible(), i = all.indexOf(at), open = at.getAttribute("aria-expanded");
    const fold = (shut) => { if (shut) closed.add(at.dataset.path); else closed.delete(at.dataset.path); drawTree(); };
    switch (e.key) {
      case "ArrowDown": move(all[i + 1]); break;
      case "ArrowUp": move(all[i - 1]); break;
      case "Home": move(all[0]); break;
      case "End": move(all.at(-1)); break;
      case "ArrowRight": if (open === "false") fold(false); else if (open === "true") move(all[i + 1]); break;
      case "ArrowLeft": if (open === "true") fold(true); else move(at.parentElement.closest("[role=treeitem]")); break;
      case "Enter": case " ": choose(at); break;
      default: return;
    }
    e.preventDefault();
  }

  function choose(at) {
    const one = sessions.find((s) => sessionID(s) === at?.dataset.session);
    if (one) select(one);
  }

  function select(session) {
    const other = !same(session, selected);
    selected = { session: session.session, cwd: session.cwd };
    if (other) {
      $("action-result").textContent = "";
      const newest = executions.find((x) => same(x, selected));
      if (newest) show(newest); else hide();
    }
    draw();
  }

  function drawSession() {
    $("session").hidden = !selected;
    if (!selected) { $("session-title").textContent = "No session selected"; return; }
    const s = sessions.find((one) => same(one, selected));
    $("session-title").textContent = `Session ${selected.session}`;
    const facts = [["state", s ? s.state : "no kernel"], ["directory", selected.cwd]];
    if (s) {
      const p = cpu.get(sessionID(s))?.percent;
      facts.push(["waiting calls", s.queue], ["answered calls", s.done], ["memory", mib(s.rss) || "unknown"], ["processor", p === null || p === undefined ? "unknown" : p.toFixed(0) + " %"],
        ["restarts", s.restarts], ["last exit", s.last_exit ? s.last_exit.kind + (s.last_exit.reason ? ": " + s.last_exit.reason : "") : "none"], ["process", s.pid ?? "unknown"], ["pinned", s.pinned ? "yes" : "no"]);
    }
    $("facts").replaceChildren(...facts.map(([name, value]) => {
      const div = element("div");
      div.append(element("dt", "", name), element("dd", "", String(value)));
      return div;
    }));
    const pin = $("actions").querySelector("[data-act=pin],[data-act=unpin]");
    pin.dataset.act = s?.pinned ? "unpin" : "pin";
    pin.textContent = s?.pinned ? "Unpin" : "Pin";
  }

  function drawHistory() {
    const had = document.activeElement?.dataset.execution;
    $("history").replaceChildren(...executions.slice(0, 200).map((x) => {
      const tr = element("tr");
      const outcome = x.state === "running" ? "running" : x.outcome ?? "ended";
      const took = (x.ended ? new Date(x.ended) : new Date()) - new Date(x.started);
      const code = element("td", "code"), open = element("button", "", x.title || "(empty)");
      open.type = "button";
      open.dataset.execution = x.id;
      open.title = x.title;
      code.append(open);
      const whose = element("td", "", x.session);
      whose.title = x.session;
      tr.append(element("td", "", clock(x.started)), whose, code, element("td", "o-" + outcome, outcome), element("td", "", span(took)));
      return tr;
    }));
    if (had) $("history").querySelector(`[data-execution="${CSS.escape(had)}"]`)?.focus({ preventScroll: true });
  }

  function note(change) {
    const li = element("li");
    const time = element("time", "", clock(change.at));
    time.dateTime = change.at;
    li.append(time, document.createTextNode(words(change)));
    const list = $("events"), end = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.append(li);
    while (list.childElementCount > MAX_EVENTS) list.firstElementChild.remove();
    if (end) list.scrollTop = list.scrollHeight;
  }

  function words(c) {
    if (c.type === "missed") return `${c.missed} events were missed`;
    if (c.type === "execution") {
      const x = c.execution;
      return x.state === "running" ? `${x.session} runs: ${x.title}` : `${x.session} ended ${x.outcome ?? ""}: ${x.title}`;
    }
    const t = c.tree;
    const why = t.exit ? ` (${t.exit.kind}${t.exit.reason ? ": " + t.exit.reason : ""})` : "";
    switch (t.type) {
      case "child_changed": return `${name(t.key)}: ${t.from ? t.from + " → " : ""}${t.to}${why}`;
      case "decided": return `${t.path}: strategy decided ${t.directive}${why}`;
      case "dropped": return `${t.path}: ${t.count} ${t.what} dropped`;
      default: return t.type;
    }
  }

  // ----- the output of one execution

  function hide() {
    watching?.abort();
    watching = shown = null;
    ask(null);
    $("output").replaceChildren();
    $("output-state").textContent = "";
  }

  async function show(x) {
    hide();
    shown = x;
    watching = new AbortController();
    const { signal } = watching, screen = new Screen($("output"));
    let seen = 0;
    $("output-state").textContent = x.state === "running" ? "running" : x.outcome ?? "";
    while (!signal.aborted) {
      try {
        let over = false;
        await follow(`/api/executions/${encodeURIComponent(x.id)}/events`, seen, signal, (e) => {
          seen = e.seq;
          if (e.type === "final") { over = true; finish(e); }
          else if (e.type === "input_request") ask(e);
          else screen.add(e);
        });
        if (over) return;
      } catch (err) {
        if (signal.aborted) return;
        if (err.status) { $("output-state").textContent = err.status === 404 ? "the server has forgotten this output" : err.message; return; }
      }
      try { await sleep(700, signal); } catch { return; }
    }
  }

  function finish(result) {
    ask(null);
    const state = result.state === "kept" ? "" : `, state ${result.state}`;
    $("output-state").textContent = result.outcome + state + (result.reason ? ": " + result.reason : "");
  }

  function ask(request) {
    question = request;
    $("answer").hidden = !request;
    if (!request) return;
    $("answer-label").textContent = request.prompt || "Input";
    $("answer-text").type = request.password ? "password" : "text";
    $("answer-text").value = "";
    $("output-state").textContent = "waits for input";
    $("answer-text").focus();
  }

  // Screen shows events as they come.
  class Screen {
    constructor(at) { this.at = at; this.size = 0; this.clearNext = false; this.displays = new Map(); }

    add(e) {
      const end = this.at.scrollHeight - this.at.scrollTop - this.at.clientHeight < 40;
      switch (e.type) {
        case "stdout": case "stderr": this.text(e.type, e.text); break;
        case "display": case "result": this.bundle(e); break;
        case "error": this.text("traceback", (e.traceback?.length ? e.traceback.join("\n") : `${e.name}: ${e.message}`) + "\n"); break;
        case "clear": if (e.wait) this.clearNext = true; else this.clear(); break;
        case "notice": this.text("notice", `[${e.text}]\n`); break;
        default: return; // status, host calls
      }
      if (end) this.at.scrollTop = this.at.scrollHeight;
    }

    clear() { this.at.replaceChildren(); this.displays.clear(); this.size = 0; this.clearNext = false; }

    // text appends to the last run of the same kind; a carriage return overwrites
    // the line, as a terminal would.
    text(kind, text) {
      if (this.clearNext) this.clear();
      text = text.replace(/\x1b\[[0-?]*[ -\/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g, "");
      let last = this.at.lastElementChild;
      if (!last || last.className !== kind || last.dataset.size > 60_000) {
        last = element("span", kind, "");
        last.dataset.size = 0;
        this.at.append(last);
      }
      let all = last.textContent + text;
      if (all.includes("\r")) all = all.replace(/\r\n/g, "\n").split("\n").map((l) => l.replace(/\r+$/, "").split("\r").at(-1)).join("\n");
      this.size += all.length - last.textContent.length;
      last.textContent = all;
      last.dataset.size = all.length;
      while (this.size > MAX_OUTPUT && this.at.childElementCount > 1) {
        const first = this.at.firstElementChild;
        this.size -= first.textContent.length;
        first.remove();
        this.cut ??= this.at.insertBefore(element("span", "notice", "[the beginning is not shown; the whole output is an artifact]\n"), this.at.firstChild);
      }
    }

    bundle(e) {
      if (this.clearNext) this.clear();
      const made = picture(e.data) ?? element("span", "", plain(e.data) + "\n");
      const before = e.update ? this.displays.get(e.display_id) : null;
      if (before) before.replaceWith(made); else this.at.append(made);
      if (e.display_id) this.displays.set(e.display_id, made);
    }
  }

  function picture(data) {
    for (const mime of ["image/png", "image/jpeg", "image/gif"]) {
      if (typeof data[mime] === "string" && /^[A-Za-z0-9+/=\s]*$/.test(data[mime])) return image(`data:${mime};base64,${data[mime].replace(/\s/g, "")}`, data);
    }
    // A drawing inside an img element cannot run scripts or load anything.
    if (typeof data["image/svg+xml"] === "string") return image("data:image/svg+xml;charset=utf-8," + encodeURIComponent(data["image/svg+xml"]), data);
    return null;
  }

  function image(src, data) {
    const img = element("img");
    img.src = src;
    img.alt = typeof data["text/plain"] === "string" ? data["text/plain"] : "a picture that the code showed";
    return img;
  }

  function plain(data) {
    for (const mime of ["text/markdown", "text/plain", "text/latex"]) {
      const v = data[mime];
      if (v !== undefined) return typeof v === "string" ? v : JSON.stringify(v);
    }
    if (data["application/json"] !== undefined) return JSON.stringify(data["application/json"], null, 2);
    return `[${Object.keys(data).join(", ")}]`;
  }

  // ----- what a person does

  async function act(name) {
    const s = selected, result = $("action-result");
    if (!s) return;
    result.className = "";
    result.textContent = name + " ...";
    try {
      switch (name) {
        case "fork": {
          const { sessions: made } = await call("POST", url(s, "fork"), { copies: 1 });
          result.textContent = `copied to ${made.map((m) => m.session).join(", ")}`;
          break;
        }
        case "stop": await call("DELETE", url(s)); result.textContent = "stopped"; break;
        default: await call("POST", url(s, name)); result.textContent = { interrupt: "interrupted", reset: "reset", pin: "pinned", unpin: "unpinned" }[name];
      }
    } catch (err) {
      result.className = "error";
      result.textContent = `${name} failed: ${err.message}`;
    }
    if (live) await refresh(live.signal).catch(() => {}); // watch tells of it
  }

  async function run() {
    const code = $("code").value;
    if (!selected || !code.trim()) { $("code").focus(); return; }
    try {
      const x = await call("POST", "/api/executions", { session: selected.session, cwd: selected.cwd, cells: [{ code }], allow_stdin: true });
      show(x);
    } catch (err) {
      $("output-state").textContent = err.message;
    }
  }

  function on(id, type, f) {
    $(id).addEventListener(type, (e) => { if (type === "submit") e.preventDefault(); f(e); });
  }

  on("signin", "submit", () => signIn($("token").value.trim()).then(() => { $("token").value = ""; }));
  on("signout", "click", () => signOut(""));
  on("pause", "click", () => pause(!paused));
  on("tree", "keydown", treeKey);
  on("tree", "click", (e) => {
    const at = e.target.closest("[role=treeitem]");
    if (at) { move(at); choose(at); }
  });
  on("actions", "click", (e) => { if (e.target.dataset.act) act(e.target.dataset.act); });
  on("run", "submit", run);
  on("code", "keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); run(); } });
  on("history", "click", (e) => {
    const x = executions.find((one) => one.id === e.target.dataset.execution);
    if (!x) return;
    selected = { session: x.session, cwd: x.cwd };
    show(x);
    draw();
  });
  on("answer", "submit", async () => {
    if (!question || !shown) return;
    const { id } = question, value = $("answer-text").value;
    ask(null);
    try {
      const { status } = await call("POST", `/api/executions/${encodeURIComponent(shown.id)}/input`, { id, value });
      $("output-state").textContent = status === "accepted" ? "running" : `the answer came to nothing: ${status}`;
    } catch (err) {
      $("output-state").textContent = err.message;
    }
  });
  on("new-session", "submit", async () => {
    const name = $("new-name").value.trim();
    if (!name) return;
    try {
      const s = await call("POST", "/api/sessions", { session: name });
      $("new-name").value = "";
      await refresh(live.signal);
      select(s);
      $("code").focus();
    } catch (err) {
      $("connection").textContent = err.message;
    }
  });

  // An address may bring the token behind its #, which no server and no log sees;
  // it is taken out of the address at once.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) history.replaceState(null, "", location.pathname);
  const kept = given ?? sessionStorage.getItem(KEY);
  if (kept) signIn(kept);
})();
