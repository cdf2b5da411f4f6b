(() => {
  const fit = f => {
    const d = f.contentDocument;
    if (!d || !d.documentElement) return;
    f.style.height = "0"; // else it is as high as the frame at least
    f.style.height = Math.min(d.documentElement.scrollHeight + 2, 4000) + "px";
  };
  for (const f of document.querySelectorAll("iframe")) {
    f.addEventListener("load", () => fit(f));
    fit(f);
  }
  addEventListener("resize", () => document.querySelectorAll("iframe").forEach(fit));
})();
