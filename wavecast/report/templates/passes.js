"use strict";
// Panes of source and IR, linked by source line; a stepper over passes. Arrow keys step.
const kernels = JSON.parse(document.getElementById("data").textContent);

for (const section of document.querySelectorAll("section[data-kernel]")) {
  const data = kernels[Number(section.dataset.kernel)];
  const source = section.querySelector(".source");
  const code = section.querySelector(".code");
  const choice = section.querySelector("select");
  const figures = section.querySelector(".step-figures tbody");
  const summary = section.querySelector(".stepper .summary");
  let lit = "";

  function row(text, line, number) {
    const element = document.createElement("div");
    if (number) {
      const label = document.createElement("span");
      label.className = "number";
      label.textContent = number;
      element.append(label);
    }
    element.append(text || " ");
    if (line) element.dataset.line = line;
    return element;
  }

  function light(line, from) {
    lit = line;
    for (const pane of [source, code]) {
      let first = null;
      for (const element of pane.children) {
        const on = line !== "" && element.dataset.line === line;
        element.classList.toggle("lit", on);
        if (on && !first) first = element;
      }
      if (first && pane !== from) first.scrollIntoView({ block: "center" });
    }
  }

  function show(index) {
    const step = data.steps[index];
    choice.selectedIndex = index;
    summary.textContent = step.summary;
    code.replaceChildren(...step.text.map((text, n) => row(text, step.lines[n])));
    for (const element of source.children)
      element.classList.toggle("changed", element.dataset.line in step.changed);
    const before = index > 0 && data.steps[index - 1].stage === step.stage
      ? data.steps[index - 1].figures : {};
    figures.replaceChildren(...Object.entries(step.figures).map(([name, value]) => {
      const line = document.createElement("tr");
      const change = name in before ? value - before[name] : 0;
      const cells = [name, value, change ? (change > 0 ? "+" : "") + change : ""];
      for (const text of cells) {
        const cell = document.createElement("td");
        cell.textContent = text;
        line.append(cell);
      }
      line.lastChild.className = change > 0 ? "more" : "less";
      return line;
    }));
    light(lit, null);
  }

  source.append(...data.source.map(([line, text]) => row(text, line, line.split(":").pop())));
  for (const pane of [source, code])
    pane.addEventListener("click", (event) => {
      const element = event.target.closest("div[data-line]");
      if (element) light(element.dataset.line === lit ? "" : element.dataset.line, pane);
    });
  const move = (by) =>
    show(Math.min(data.steps.length - 1, Math.max(0, choice.selectedIndex + by)));
  section.querySelector(".before").addEventListener("click", () => move(-1));
  section.querySelector(".next").addEventListener("click", () => move(1));
  choice.addEventListener("change", () => show(choice.selectedIndex));
  section.addEventListener("keydown", (event) => {
    if (event.target === choice) return;
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });
  show(0);
}
