"use strict";
// The button that switches between light and dark; the choice is kept for all pages.
{
  const root = document.documentElement;
  const stored = (() => {
    try { return localStorage.getItem("wavecast-theme"); } catch { return null; }
  })();
  if (stored) root.dataset.theme = stored;
  document.querySelector("#theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("wavecast-theme", root.dataset.theme); } catch { /* not allowed from file:// everywhere */ }
  });
}
