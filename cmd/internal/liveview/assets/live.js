"use strict";
// The live view. State comes from the HTTP API; the stream of changes says when
// to look again. What kernels print is shown as text and pictures only.
(() => {
  const $ = (id) => document.getElementById(id);
  const KEY = "coppice-token";
  const MAX_OUTPUT = 400_000; // characters that are shown of one execution
  const MAX_EVENTS = 500;
  const REDRAW = 150; // ms that changes are collected before the tree is drawn, at least
  const PAGE = 50; // sessions that are shown at once, and that one step adds
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
  let began = null; // when the server was started
  let most = PAGE; // how many sessions are shown
  let took = 0; // ms that the last look at the server took
  let notes = []; // changes that are not in the list of events yet
  let byID = new Map(); // session id -> session
  const byName = new Intl.Collator(undefined, { numeric: true });
  const items = new Map(); // path -> the parts of an item of the tree
  const rows = new Map(); // execution id -> its row
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
      await hello(signal);
      sessionStorage.setItem(KEY, token);
      $("signin").hidden = true;
      $("live").hidden = $("pause").hidden = $("signout").hidden = false;
    } catch (err) {
      signOut(err.status === 401 ? "The server does not know this token." : "The server did not answer: " + err.message);
      $("token").focus();
      return;
    }
    watch(signal);
    look(signal);
    $("tree-section").querySelector("[role=treeitem]")?.focus();
  }

  // hello asks who the server is, and begins anew when it is another than before:
  // numbers of changes and executions are then those of somebody else.
  async function hello(signal) {
    const health = await call("GET", "/api/health", undefined, signal);
    $("health").textContent = `${health.backend} backend, process ${health.pid}, ${health.cwd}`;
    $("health").title = health.why ?? "";
    if (began && began !== health.started) {
      cursor = null;
      held = [];
      cpu.clear();
      note({ at: health.started, type: "restarted" });
      if (shown) { hide(); $("output-state").textContent = "the server was started anew; it has forgotten this output"; }
    }
    began = health.started;
  }

  function signOut(why) {
    live?.abort();
    watching?.abort();
    live = watching = question = shown = selected = tree = began = focused = null;
    ask(null);
    notes = [];
    most = PAGE;
    byID = new Map();
    for (const map of [items, rows, cpu, changed]) map.clear();
    $("find").value = $("new-result").textContent = $("action-result").textContent = "";
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
    $("connection").className = text === "live" ? "" : "s-failed";
    if ($("connection").textContent !== text) $("connection").textContent = text;
  }

  // ----- following the server

  async function watch(signal) {
    for (let wait = 500; !signal.aborted; wait = Math.min(5000, wait * 2)) {
      try {
        await hello(signal);
        await refresh(signal);
        await follow("/api/changes", cursor, signal, (c) => { wait = 250; take(c); }, () => say("live"));
        say("the server closed the connection; trying again");
      } catch (err) {
        if (signal.aborted) return;
        if (err.status === 401) { signOut("The server does not know this token any more: a server that was started again has another. Use the link that it printed."); return; }
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
    const asked = performance.now();
    const [t, s, x] = await Promise.all([
      call("GET", "/api/tree", undefined, signal), call("GET", "/api/sessions", undefined, signal), call("GET", "/api/executions", undefined, signal),
    ]);
    if (paused) return;
    tree = t;
    sessions = s.sessions ?? [];
    executions = x.executions ?? [];
    const now = performance.now();
    took = now - asked;
    byID = new Map(sessions.map((one) => [sessionID(one), one]));
    for (const id of cpu.keys()) if (!byID.has(id)) cpu.delete(id);
    for (const [path, until] of changed) if (until < now) changed.delete(path);
    for (const [id, one] of byID) {
      const before = cpu.get(id);
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
    // A server with much to show is asked less often.
    if (!drawing) drawing = setTimeout(() => { drawing = 0; if (live) refresh(live.signal).catch(() => {}); }, Math.max(REDRAW, 4 * took)); // watch tells of it
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

  function set(e, text) { if (e.textContent !== text) e.textContent = text; }

  function attribute(e, name, value) { if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value); }

  // put makes these the children of an element, and moves no more of them than it
  // has to: what a person is on stays where it is.
  function put(list, wanted) {
    let at = list.firstElementChild;
    for (const e of wanted) {
      if (e === at) at = at.nextElementSibling; else list.insertBefore(e, at);
    }
    while (at) { const next = at.nextElementSibling; at.remove(); at = next; }
  }

  // ----- drawing

  function draw() {
    drawTree();
    drawSession();
    drawHistory();
  }

  function drawTree() {
    if (!tree) return;
    const root = $("tree"), had = root.contains(document.activeElement), drawn = new Set();
    const found = matching();
    put(root, [item(tree, "", 1, 1, 1, found, drawn)]);
    for (const path of items.keys()) if (!drawn.has(path)) items.delete(path);
    const all = visible(), mine = all.find((i) => i.dataset.path === focused) ?? all[0];
    if (mine) {
      for (const i of all) if (i.tabIndex !== -1 && i !== mine) i.tabIndex = -1;
      mine.tabIndex = 0;
      focused = mine.dataset.path;
      if (had && document.activeElement !== mine) mine.focus({ preventScroll: true });
    }
    count(found);
  }

  // matching are the ids of the sessions that are looked for: all of the words have
  // to be in the name, the directory, the state, the owner or the marks. null: all.
  function matching() {
    const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return null;
    const found = new Set();
    for (const [id, s] of byID) {
      const text = [s.session, s.cwd, s.state, s.owner, s.pinned ? "pinned" : "", s.queue ? "waiting" : "", s.restarts ? "restarted" : "", s.last_exit?.kind].join(" ").toLowerCase();
      if (words.every((w) => text.includes(w))) found.add(id);
    }
    return found;
  }

  // count says how many sessions there are, in which states.
  function count(found) {
    const states = new Map();
    for (const s of sessions) states.set(s.state, (states.get(s.state) ?? 0) + 1);
    let text = sessions.length === 1 ? "1 session" : `${sessions.length} sessions`;
    if (found) text = `${found.size} of ${text}`;
    else if (states.size) text += ": " + [...states].sort().map(([state, n]) => `${n} ${state}`).join(", ");
    attribute($("count"), "aria-live", found ? "polite" : "off"); // who looks for one hears how many there are
    set($("count"), text);
  }

  // item is a node of the tree and what is below it; its element is made once.
  function item(node, parent, level, size, place, found, drawn) {
    const path = parent ? parent + "/" + node.name : node.name;
    drawn.add(path);
    let made = items.get(path);
    if (!made) {
      const li = element("li"), row = element("div", "node");
      made = { li, name: element("span", "name"), state: element("span", "state"), more: element("span", "more"), ul: null };
      li.setAttribute("role", "treeitem");
      li.tabIndex = -1;
      li.dataset.path = path;
      row.append(made.name, made.state, made.more);
      li.append(row);
      items.set(path, made);
    }
    const { li } = made, session = node.kind === "kernel" ? byID.get(node.name) : null;
    attribute(li, "aria-level", level);
    attribute(li, "aria-setsize", size);
    attribute(li, "aria-posinset", place);
    li.classList.toggle("changed", (changed.get(path) ?? 0) > performance.now());
    const title = session ? session.session : node.name, steady = [title, node.state], more = [];
    if (node.queue) { more.push(node.queue + " waiting"); steady.push(node.queue + " waiting"); }
    if (node.rss) more.push(mib(node.rss));
    if (session) {
      const p = cpu.get(node.name)?.percent;
      if (p !== null && p !== undefined) more.push(p.toFixed(0) + " % cpu");
    }
    if (node.restarts) { const n = node.restarts === 1 ? "1 restart" : node.restarts + " restarts"; more.push(n); steady.push(n); }
    if (node.pinned) { more.push("pinned"); steady.push("pinned"); }
    if (node.last_exit && node.last_exit.kind !== "normal") more.push("last exit: " + node.last_exit.kind + (node.last_exit.reason ? ", " + node.last_exit.reason : ""));
    if (node.detail) more.push(node.detail);
    set(made.name, title);
    set(made.state, node.state);
    made.state.className = "state s-" + node.state;
    set(made.more, more.join(" · "));
    attribute(li, "aria-label", steady.join(", ")); // without what changes all the time, and without what is below
    if (session) {
      li.dataset.session = node.name;
      attribute(li, "aria-selected", same(session, selected));
    }
    const children = below(node, found);
    if (children.list.length || children.hidden) {
      const open = !closed.has(path);
      attribute(li, "aria-expanded", open);
      if (open) {
        if (!made.ul) {
          made.ul = element("ul");
          made.ul.setAttribute("role", "group");
        }
        const all = children.list.length + (children.hidden ? 1 : 0);
        const list = children.list.map((c, i) => item(c, path, level + 1, all, i + 1, found, drawn));
        if (children.hidden) list.push(rest(path, level + 1, all, children.hidden, drawn));
        put(made.ul, list);
        if (!made.ul.isConnected || made.ul.parentElement !== li) li.append(made.ul);
      } else made.ul?.remove();
    } else {
      li.removeAttribute("aria-expanded");
      made.ul?.remove();
    }
    return li;
  }

  // below are the children of a node that are shown, and how many are not. Eight
  // sinks that only make results say nothing to a person.
  function below(node, found) {
    let list = (node.children ?? []).filter((c) => c.kind !== "result"), kernels = 0, hidden = 0;
    if (list.some((c) => c.kind === "kernel")) list.sort((a, b) => (a.kind === "kernel") - (b.kind === "kernel") || byName.compare(name(a.name), name(b.name)));
    list = list.filter((c) => {
      if (c.kind !== "kernel") return true;
      if (selected && byID.has(c.name) && same(byID.get(c.name), selected)) return true;
      if (found && !found.has(c.name)) return false;
      if (++kernels <= most) return true;
      hidden++;
      return false;
    });
    return { list, hidden };
  }

  // rest is the item that shows more sessions.
  function rest(parent, level, place, hidden, drawn) {
    const path = parent + "/ more";
    drawn.add(path);
    let made = items.get(path);
    if (!made) {
      const li = element("li"), row = element("div", "node");
      made = { li, name: element("span", "name") };
      li.setAttribute("role", "treeitem");
      li.tabIndex = -1;
      li.dataset.path = path;
      li.dataset.rest = "";
      row.append(made.name);
      li.append(row);
      items.set(path, made);
    }
    attribute(made.li, "aria-level", level);
    attribute(made.li, "aria-setsize", place);
    attribute(made.li, "aria-posinset", place);
    set(made.name, `Show ${Math.min(PAGE, hidden)} of ${hidden} more`);
    attribute(made.li, "aria-label", made.name.textContent);
    return made.li;
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
    if (at?.dataset.rest !== undefined) {
      // The first that this brings into view takes the place of what was chosen.
      const before = at.previousElementSibling?.dataset.path;
      most += PAGE;
      drawTree();
      move(visible().find((i) => i.dataset.path === before)?.nextElementSibling);
      return;
    }
    const one = byID.get(at?.dataset.session);
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
    const s = byID.get(sessionID(selected));
    $("session-title").textContent = `Session ${selected.session}`;
    const facts = [["state", s ? s.state : "no kernel"], ["directory", selected.cwd]];
    if (s) {
      const p = cpu.get(sessionID(s))?.percent;
      facts.push(["waiting calls", s.queue], ["answered calls", s.done], ["memory", mib(s.rss) || "unknown"], ["processor", p === null || p === undefined ? (s.pid ? "measuring" : "unknown") : p.toFixed(0) + " %"],
        ["restarts", s.restarts], ["last exit", s.last_exit ? s.last_exit.kind + (s.last_exit.reason ? ": " + s.last_exit.reason : "") : "none"], ["process", s.pid ?? "unknown"], ["pinned", s.pinned ? "yes" : "no"]);
    }
    put($("facts"), facts.map(([name, value], i) => {
      let div = $("facts").children[i];
      if (!div) {
        div = element("div");
        div.append(element("dt"), element("dd"));
        $("facts").append(div);
      }
      set(div.firstElementChild, name);
      set(div.lastElementChild, String(value));
      return div;
    }));
    const pin = $("actions").querySelector("[data-act=pin],[data-act=unpin]");
    pin.dataset.act = s?.pinned ? "unpin" : "pin";
    set(pin, s?.pinned ? "Unpin" : "Pin");
    for (const b of $("actions").querySelectorAll("button")) b.disabled = !s;
  }

  function drawHistory() {
    const list = executions.slice(0, 200);
    put($("history"), list.map((x) => {
      let tr = rows.get(x.id);
      if (!tr) {
        tr = element("tr");
        const code = element("td", "code"), open = element("button", "", x.title || "(empty)");
        open.type = "button";
        open.dataset.execution = x.id;
        open.title = x.title;
        code.append(open);
        const whose = element("td", "", x.session);
        whose.title = x.session;
        tr.append(element("td", "", clock(x.started)), whose, code, element("td"), element("td"));
        rows.set(x.id, tr);
      }
      const outcome = x.state === "running" ? "running" : x.outcome ?? "ended";
      const took = (x.ended ? new Date(x.ended) : new Date()) - new Date(x.started);
      tr.children[3].className = "o-" + outcome;
      set(tr.children[3], outcome);
      set(tr.children[4], span(Math.max(0, took)));
      return tr;
    }));
    const known = new Set(list.map((x) => x.id));
    for (const id of rows.keys()) if (!known.has(id)) rows.delete(id);
  }

  // note puts a change into the list of events, with others that come at once.
  function note(change) {
    if (notes.push(change) > 1) return;
    setTimeout(() => {
      const list = $("events"), end = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
      const made = document.createDocumentFragment();
      for (const c of notes.slice(-MAX_EVENTS)) {
        const li = element("li"), time = element("time", "", clock(c.at));
        time.dateTime = c.at;
        li.append(time, document.createTextNode(words(c)));
        made.append(li);
      }
      notes = [];
      list.append(made);
      while (list.childElementCount > MAX_EVENTS) list.firstElementChild.remove();
      if (end) list.scrollTop = list.scrollHeight;
    }, 50);
  }

  function words(c) {
    if (c.type === "restarted") return "the server was started anew";
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
        default: return; // status, host calls, comms
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
    if (!s || name === "stop" && !confirm(`Stop the session ${s.session}? What it has in memory is lost.`)) return;
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
      $("new-result").textContent = "starting " + name;
      const s = await call("POST", "/api/sessions", { session: name });
      $("new-name").value = "";
      $("new-result").textContent = "started " + name;
      await refresh(live.signal);
      select(s);
      $("code").focus();
    } catch (err) {
      $("new-result").textContent = "not started: " + err.message;
    }
  });

  on("find", "input", () => { most = PAGE; drawTree(); });
  on("find", "keydown", (e) => {
    if (e.key === "Escape") { $("find").value = ""; drawTree(); }
    else if (e.key === "ArrowDown") { e.preventDefault(); move(visible().find((i) => i.dataset.session) ?? visible()[0]); }
    else if (e.key === "Enter") { e.preventDefault(); choose(visible().find((i) => i.dataset.session)); }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA)$/.test(e.target.tagName) || $("live").hidden) return;
    e.preventDefault();
    $("find").focus();
    $("find").select();
  });

  // An address may bring the token behind its #, which no server and no log sees;
  // it is taken out of the address at once.
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) history.replaceState(null, "", location.pathname);
  const kept = given ?? sessionStorage.getItem(KEY);
  if (kept) signIn(kept);
})();
