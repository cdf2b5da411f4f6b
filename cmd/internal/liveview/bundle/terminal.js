// The terminal of a process, made of xterm.js.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";

/**
 * styled is a document whose style elements are sheets that are adopted: the page's policy
 * allows no elements with styles.
 */
function styled() {
  const made = new Set();
  const element = (tag, ...rest) => {
    const e = document.createElement(tag === "style" ? "span" : tag, ...rest);
    if (tag !== "style") return e;
    const sheet = new CSSStyleSheet();
    made.add(sheet);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    e.hidden = true;
    Object.defineProperty(e, "textContent", { set: (text) => sheet.replaceSync(text), get: () => "" });
    return e;
  };
  const over = new Proxy(document, {
    get(_, name) {
      if (name === "createElement") return element;
      const value = Reflect.get(document, name, document);
      return typeof value === "function" ? value.bind(document) : value;
    },
    set: (_, name, value) => Reflect.set(document, name, value, document),
  });
  return { over, end: () => { document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => !made.has(s)); } };
}

/**
 * makeTerminal puts a terminal into an element. o has input(bytes as a string of them),
 * resize(columns, rows), and label.
 */
export function makeTerminal(at, o) {
  const { over, end } = styled(), of = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(), dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => ({ background: of("--code"), foreground: of("--text"), cursor: of("--text"), cursorAccent: of("--code"), selectionBackground: "#7aa7e866" });
  const terminal = new Terminal({
    documentOverride: over, cursorBlink: false, screenReaderMode: true, fontSize: 14, scrollback: 5000, allowProposedApi: false, convertEol: false, linkHandler: { activate: () => {} },
    fontFamily: of("--mono"), minimumContrastRatio: 4.5,
    theme: theme(),
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(at);
  terminal.textarea?.setAttribute("aria-label", o.label);
  const scheme = () => { terminal.options.theme = theme(); };
  dark.addEventListener("change", scheme);
  const size = () => { try { fit.fit(); } catch { /* it is not in sight */ } };
  const watch = new ResizeObserver(size);
  terminal.onResize(({ cols, rows }) => o.resize(cols, rows));
  terminal.onData((text) => o.input(new TextEncoder().encode(text)));
  terminal.onBinary((text) => o.input(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  // Tab belongs to the shell; Ctrl+Shift+Escape takes the focus out.
  terminal.attachCustomKeyEventHandler((e) => { if (e.type === "keydown" && e.key === "Escape" && e.ctrlKey && e.shiftKey) { terminal.blur(); o.leave(); return false; } return true; });
  size();
  watch.observe(at);
  return {
    write: (data) => terminal.write(data), focus: () => terminal.focus(), size: () => ({ columns: terminal.cols, rows: terminal.rows }),
    text: () => { const b = terminal.buffer.active, out = []; for (let i = 0; i < b.length; i++) out.push(b.getLine(i)?.translateToString(true) ?? ""); return out.join("\n"); },
    stop: () => { terminal.options.disableStdin = true; terminal.options.cursorInactiveStyle = "none"; },
    end: () => { watch.disconnect(); dark.removeEventListener("change", scheme); terminal.dispose(); end(); },
  };
}
