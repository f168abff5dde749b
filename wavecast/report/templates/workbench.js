"use strict";
// The workbench: an editor, figures per GPU, and views of the code that are linked by source line.
const $ = (selector, root = document) => root.querySelector(selector);
const token = new URLSearchParams(location.search).get("token") || "";
const PAUSE = 700;   // milliseconds without a key before an edit is explained
const CHUNK = 400;   // rows of code per element that is laid out when it is seen
const ROW = 18;
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => escapes[c]);

let session = null;   // name, arch, arguments, watched
let result = null;    // the last answer
let explained = "";   // the source it is of
let before = null;    // figures to compare with: {label: {device: seconds}}
let pinned = false;
let launch = 0, target = 0, view = "Assembly", line = 0;
let timer = 0, number = 0;
let failed = null;    // {text, message} of the version that could not be explained, or only in part
let priced = false;   // whether findings have what their advice saves

async function call(path, body) {
  const options = { headers: { Authorization: `Bearer ${token}` } };
  if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  const response = await fetch(path, options);
  const found = await response.json();
  if (!response.ok) throw Object.assign(new Error(found.error || response.statusText), found);
  return found;
}
const ask = async (question, more = {}) => (await call("/api/ask", { question, launch, ...more })).answer;

// --- numbers ------------------------------------------------------------------------------------

function seconds(value) {
  for (const [unit, factor] of [["s", 1], ["ms", 1e3], ["µs", 1e6]])
    if (value * factor >= 1) return `${(value * factor).toPrecision(3)} ${unit}`;
  return `${(value * 1e9).toPrecision(3)} ns`;
}
function size(bytes) {
  return bytes >= 1024 ? `${+(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`;
}
function change(now, then) {
  if (!then || !now) return "";
  const part = 100 * (now / then - 1);
  const shown = Math.abs(part) < 0.05 ? "0.0 %" : `${part > 0 ? "+" : "−"}${Math.abs(part).toFixed(1)} %`;
  return `<span class="${part > 0.05 ? "bad" : part < -0.05 ? "good" : "dim"}">${shown}</span>`;
}

// --- what is shown ------------------------------------------------------------------------------

const current = () => result && result.launches[launch];
const entry = (one, index) => result.document.kernels.find((k) => k.label === one.label && k.device_id === one.targets[index].device);
const code = () => current() && current().targets[target];

/* Number of a line in the listing -> line of the editor, for the file that is edited. */
function editorLines(one) {
  const found = new Map();
  for (const file of one.files)
    if (file.name.split("/").pop() === session.name)
      for (const [index, row] of file.lines) found.set(index, row);
  return found;
}

async function explain() {
  clearTimeout(timer);
  const mine = ++number, text = source.value, started = performance.now();
  status("explaining …", true);
  try {
    const { answer } = await call("/api/explain", {
      text, arch: $("#arch").value, arguments: $("#arguments").value.split(/\s+/).filter(Boolean),
    });
    if (mine !== number) return;
    const why = reasons(answer.document.failures);
    if (!answer.launches.length) throw new Error(why || "no kernel was launched");
    if (result && !pinned) before = figures(result);
    result = answer;
    explained = answer.text;
    if (session.watched && source.value !== answer.text) edit(answer.text);
    status(`${((performance.now() - started) / 1000).toFixed(1)} s`);
    fail(why, answer.text);
    stale(false);
    launch = Math.min(launch, answer.launches.length - 1);
    target = Math.min(target, answer.launches[launch].targets.length - 1);
    priced = false;
    render();
    advice(mine);
  } catch (error) {
    if (mine !== number || error.replaced) return;
    status("");
    fail(error.message, text);
    stale(true);
    paint();
  }
}

/* What the advice of findings saves, which takes longer: their fixes are compiled. */
async function advice(mine) {
  try {
    const document = await ask("advice");
    if (mine !== number) return;
    result.document = document;
    priced = true;
    targets();
    paint();
    if (view === "Findings") tabs();
  } catch (error) {
    if (mine === number && !error.replaced) fail(error.message);
  }
}

/* Predicted seconds by launch and device. A launch is known by its kernel and its number among those. */
function figures(found) {
  const all = {};
  found.launches.forEach((one, index) => {
    const of = all[known(found, index)] = {};
    for (const { device } of one.targets)
      of[device] = found.document.kernels.find((k) => k.label === one.label && k.device_id === device).prediction?.seconds;
  });
  return all;
}
function known(found, index) {
  const { kernel } = found.launches[index];
  return `${kernel} ${found.launches.slice(0, index).filter((one) => one.kernel === kernel).length}`;
}

function status(text, busy = false) {
  $("#status").textContent = text;
  $("#status").classList.toggle("busy", busy);
}
/* What failed, with the targets of one message together. */
function reasons(failures) {
  const targets = new Map();
  for (const { kernel, arch, message } of failures) {
    const text = `${kernel && `${kernel}: `}${message}`;
    targets.set(text, [...(targets.get(text) || []), arch].filter(Boolean));
  }
  return [...targets].map(([text, names]) => names.length ? `${names.join(", ")}: ${text}` : text).join("\n");
}

/* Show why something failed; `version` is the source it is of, whose line is marked. */
function fail(message, version = null) {
  const shown = session ? message.replaceAll(new RegExp(`[^\\s(]*/(?=${named()}:\\d)`, "g"), "") : message;   // the copy's folder says nothing
  failed = message && version !== null ? { text: version, message: shown } : null;
  $("#failure").textContent = shown;
  $("#failure").hidden = !message;
}

/* Lines of the editor that a message names, as `matmul.py:12`. */
function failedLines() {
  if (!failed || failed.text !== source.value) return new Set();
  return new Set([...failed.message.matchAll(new RegExp(`(?<![\\w.-])${named()}:(\\d+)`, "g"))].map((match) => Number(match[1])));
}
const named = () => session.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/* Figures of an earlier version are dimmed: the present one could not be explained. */
function stale(value) {
  document.body.classList.toggle("stale", value && result !== null);
  if (result) $("#compared").textContent = compared();
}
function compared() {
  if (document.body.classList.contains("stale")) return "figures of the last version that could be explained";
  return before ? `change: against the ${pinned ? "pinned figures" : "version before"}` : "";
}

function render() {
  const choice = $("#launch");
  choice.replaceChildren(...result.launches.map((one, index) => new Option(one.label, index)));
  choice.selectedIndex = launch;
  $("#compared").textContent = compared();
  targets();
  constants();
  paint();
  tabs();
}

function targets() {
  const one = current(), heads = document.querySelectorAll("#targets th");
  const rows = one.targets.map((_, index) => {
    const k = entry(one, index), p = k.prediction, row = document.createElement("tr");
    const then = before?.[known(result, launch)]?.[k.device_id];
    row.setAttribute("aria-selected", index === target);
    row.tabIndex = 0;
    row.innerHTML = `<td><i class="dot t${index % 8}"></i>${escape(k.device_id)} <span class="dim">${escape(k.arch)}</span></td>`
      + (p ? `<td class="n"><b>${seconds(p.seconds)}</b></td><td class="n dim">${seconds(p.low)} – ${seconds(p.high)}</td><td>${escape(p.limiter)}</td><td class="n">${change(p.seconds, then)}</td>`
        : `<td class="n dim" colspan="4" title="${escape(k.prediction_why_not)}">no predicted time</td>`)
      + `<td class="n">${k.registers.vgpr}${k.registers.agpr ? `+${k.registers.agpr}` : ""}</td><td class="n">${k.registers.sgpr || ""}</td><td class="n">${size(k.lds_bytes)}</td>`
      + `<td class="n">${k.occupancy.waves_per_simd}/${k.occupancy.max_waves_per_simd}</td><td class="n${k.registers.spilled ? " bad" : ""}">${k.registers.spilled}</td><td class="n">${k.findings.length}</td>`;
    let column = 0;
    for (const cell of row.cells) {
      cell.dataset.label = heads[column].textContent;
      column += cell.colSpan;
    }
    const select = () => { target = index; targets(); paint(); tabs(); };
    row.addEventListener("click", select);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") select(); });
    return row;
  });
  $("#targets tbody").replaceChildren(...rows);
}

// --- constants ----------------------------------------------------------------------------------

function constants() {
  $("#constants").replaceChildren(...(session.watched ? [] : result.constants).map((constant) => {
    const box = document.createElement("span"), input = document.createElement("input");
    const set = (value) => {
      if (!/^\d+$/.test(value) || source.value !== explained) return;
      edit(source.value.slice(0, constant.start) + value + source.value.slice(constant.stop));
      explain();
    };
    input.value = constant.value;
    input.inputMode = "numeric";
    input.setAttribute("aria-label", `${constant.name}, line ${constant.line}`);
    input.addEventListener("change", () => set(input.value.trim()));
    const value = Number(constant.value), power = value > 1 && Number.isInteger(Math.log2(value));
    const button = (text, next, title) => {
      const element = document.createElement("button");
      element.type = "button";
      element.textContent = text;
      element.title = title;
      element.addEventListener("click", () => set(String(next)));
      return element;
    };
    box.append(`${constant.name}, line ${constant.line} `, button("−", power ? value / 2 : Math.max(0, value - 1), "smaller"), input, button("+", power ? value * 2 : value + 1, "larger"));
    return box;
  }));
}

// --- editor -------------------------------------------------------------------------------------

const source = $("#source"), gutter = $(".gutter"), backdrop = $(".text pre");
const PYTHON = /("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(#[^\n]*)|(@[\w.]+)|\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|not|or|pass|raise|return|True|try|while|with|yield)\b|\b(\d[\w.]*)/g;
const C = /("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|^;[^\n]*)|(^\s*#\s*\w+)|\b(auto|bool|break|case|char|const|constexpr|continue|do|double|else|extern|float|for|if|inline|int|long|namespace|return|short|signed|sizeof|static|struct|switch|template|typename|unsigned|using|void|volatile|while|__\w+__)\b|\b(\d[\w.]*)/gm;

function coloured(text) {
  const kinds = ["s", "m", "a", "k", "d0"];
  let html = "", from = 0;
  for (const match of text.matchAll(session.name.endsWith(".py") ? PYTHON : C)) {
    html += escape(text.slice(from, match.index));
    const kind = kinds[match.slice(1).findIndex((part) => part !== undefined)];
    html += match[0].split("\n").map((part) => `<span class="${kind}">${escape(part)}</span>`).join("\n");
    from = match.index + match[0].length;
  }
  return (html + escape(text.slice(from))).split("\n");
}

function edit(text) {
  const { scrollTop, scrollLeft, selectionStart } = source;
  source.value = text;
  source.setSelectionRange(selectionStart, selectionStart);
  source.scrollTop = scrollTop;
  source.scrollLeft = scrollLeft;
  paint();
}

/* Draw the text again, with the heat and the findings of the chosen target where they are current. */
function paint() {
  const fresh = result && source.value === explained && code();
  const heat = new Map(), marks = new Map(), wrong = failedLines();
  if (fresh) {
    const lines = editorLines(current());
    for (const [index, shade] of Object.entries(code().assembly.line_heat)) if (lines.has(Number(index))) heat.set(lines.get(Number(index)), shade);
    for (const finding of entry(current(), target).findings)
      for (const at of finding.lines) if (!marks.has(at)) marks.set(at, finding);
  }
  for (const at of wrong) marks.set(at, { severity: "error", message: failed.message });
  const rows = coloured(source.value), row = (index) => `${index + 1 === line ? "lit" : ""}${wrong.has(index + 1) ? " wrong" : ""}`;
  backdrop.innerHTML = rows.map((text, index) => `<div class="${row(index)}">${text || " "}</div>`).join("");
  gutter.innerHTML = rows.map((_, index) => {
    const mark = marks.get(index + 1);
    return `<div class="${row(index)}"><i class="h h${heat.get(index + 1) || 0}"></i><i class="f ${mark ? mark.severity : ""}"${mark ? ` title="${escape(mark.message)}"` : ""}>${mark ? "!" : ""}</i><u>${index + 1}</u></div>`;
  }).join("");
  scrolled();
}
function scrolled() {
  backdrop.scrollTop = gutter.scrollTop = source.scrollTop;
  backdrop.scrollLeft = source.scrollLeft;
}
function caretLine() {
  return source.value.slice(0, source.selectionStart).split("\n").length;
}
function light(next, from) {
  if (next === line) return;
  line = next;
  for (const rows of [backdrop.children, gutter.children])
    [...rows].forEach((row, index) => row.classList.toggle("lit", index + 1 === line));
  if (from !== "source" && line) {
    const top = (line - 1) * ROW;
    if (top < source.scrollTop || top > source.scrollTop + source.clientHeight - 2 * ROW) source.scrollTop = top - source.clientHeight / 3;
  }
  linked(from !== "view");
}

source.addEventListener("scroll", scrolled);
source.addEventListener("input", () => {
  paint();
  clearTimeout(timer);
  timer = setTimeout(explain, PAUSE);
});
for (const event of ["click", "keyup"]) source.addEventListener(event, () => light(caretLine(), "source"));
source.addEventListener("keydown", (event) => {
  if (event.key !== "Tab" || event.shiftKey || source.readOnly) return;
  event.preventDefault();
  document.execCommand("insertText", false, "    ");
});

// --- views --------------------------------------------------------------------------------------

const panel = $("#view");

function tabs() {
  const found = code();
  const names = ["Assembly", ...found.stages.map((stage) => stage.title), "Findings", "Memory", "Timeline", "Roofline", "What if"];
  if (!names.includes(view)) view = "Assembly";
  $("#tabs").replaceChildren(...names.map((name) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "tab");
    button.setAttribute("aria-selected", name === view);
    button.textContent = name;
    button.addEventListener("click", () => { view = name; tabs(); });
    return button;
  }));
  const special = { Assembly: assembly, Findings: findings, Memory: memory, Timeline: timeline, Roofline: roofline, "What if": whatIf }[view];
  if (special) special();
  else stage(found.stages.find((one) => one.title === view));
  linked(false);
}

function rows(count, row) {
  const html = ['<div class="lines">'];
  for (let start = 0; start < count; start += CHUNK) {
    const stop = Math.min(start + CHUNK, count);
    html.push(`<div class="chunk" style="contain-intrinsic-size:auto ${(stop - start) * ROW}px">`);
    for (let index = start; index < stop; index++) html.push(row(index));
    html.push("</div>");
  }
  panel.innerHTML = html.join("") + "</div>";
}

function assembly() {
  const { text, chain, chains, heat, classes, labels, class: kind } = code().assembly;
  const lines = editorLines(current());
  if (!text.length) { panel.innerHTML = '<div class="inner">There is no assembly to show.</div>'; return; }
  const heads = new Map(labels.map(([first, name, , note]) => [first, [name, note]]));
  rows(text.length, (index) => {
    const at = chains[chain[index]].map((s) => lines.get(s)).filter(Boolean).pop() || "";
    const full = text[index], cut = full.search(/\s/) < 0 ? full.length : full.search(/\s/);
    const head = heads.get(index);
    return (head ? `<div class="r l"><i class="h"></i><u></u>${escape(head[0])}:<em>${escape(head[1])}</em></div>` : "")
      + `<div class="r" data-line="${at}" data-i="${index}"><i class="h h${heat[index] || 0}"></i><u>${index}</u><code><b class="c-${escape(classes[kind[index]])}">${escape(full.slice(0, cut))}</b>${escape(full.slice(cut))}</code><s>${at && `:${at}`}</s></div>`;
  });
}

function stage(one) {
  const lines = editorLines(current());
  rows(one.text.length, (index) => {
    const at = one.lines[index] === null ? "" : lines.get(one.lines[index]) || "";
    return `<div class="r" data-line="${at}"><u>${index + 1}</u><code>${escape(one.text[index])}</code><s>${at && `:${at}`}</s></div>`;
  });
}

/* Mark the rows of the lit line. */
function linked(scroll) {
  let first = null;
  for (const row of panel.querySelectorAll("[data-line]")) {
    const on = line > 0 && Number(row.dataset.line) === line;
    row.classList.toggle("lit", on);
    if (on) first ??= row;
  }
  if (scroll && first) first.scrollIntoView({ block: "center" });
}
panel.addEventListener("click", (event) => {
  const row = event.target.closest("[data-line]");
  if (row && row.dataset.line) light(Number(row.dataset.line), "view");
});

function findings() {
  const found = entry(current(), target).findings;
  panel.innerHTML = `<div class="inner">${priced ? "" : '<p class="dim">What the advice saves is being predicted …</p>'}${found.length ? "" : "No findings."}<ul class="findings">` + found.map((one) =>
    `<li class="finding"${one.line ? ` data-line="${one.line}"` : ""}><span class="sev ${escape(one.severity)}">${escape(one.severity)}</span><div><p><strong>${escape(one.message)}</strong> ${one.lines.length ? `<span class="dim">line ${one.lines.join(", ")}</span>` : ""} ${one.gain ? `<span class="tag">saves ${(100 * one.gain).toFixed(1)}%</span> ` : ""}<code class="rule">${escape(one.rule)}</code></p>${one.evidence ? `<p class="dim">${escape(one.evidence)}</p>` : ""}${one.advice && priced ? `<p class="advice">${escape(one.advice)}</p>` : ""}</div></li>`).join("") + "</ul></div>";
}

async function later(what, more, draw) {
  const mine = `${number} ${launch} ${target} ${view}`;
  panel.innerHTML = '<div class="inner dim">being simulated …</div>';
  try {
    const found = await ask(what, { target, ...more });
    if (mine === `${number} ${launch} ${target} ${view}`) draw(found);
  } catch (error) {
    panel.innerHTML = `<div class="inner">${escape(error.message)}</div>`;
  }
}

function memory() {
  later("accesses", {}, (found) => {
    panel.innerHTML = `<div class="inner">${found.length ? '<p class="dim">A cell is 4 bytes, with the first lane that touches it. Rows are cache lines of global memory, and groups of lanes that the LDS serves together.</p>' : "No access of this kernel has known addresses."}` + found.map((one) =>
      `<div class="drawn"${one.line ? ` data-line="${one.line}"` : ""}><p>${one.line ? `<b>line ${one.line}</b> ` : ""}${escape(one.title)}</p>${one.image}</div>`).join("") + "</div>";
    linked(false);
  });
}

function roofline() {
  const key = '<p class="legend"><span class="dim">colours: the GPUs above</span><span class="dim">— datasheet</span><span class="dim">┄ sustained</span><span class="dim">● predicted</span><span class="dim">○ at most</span></p>';
  panel.innerHTML = `<div class="inner">${current().roofline ? current().roofline + key : "No roofline: work or rates are not known."}</div>`;
}

function whatIf() {
  const one = current(), names = one.rates, factors = {};
  panel.innerHTML = '<div class="inner"><p class="dim">The launch is simulated again with these rates of the chip multiplied.</p>' + names.map((name, index) =>
    `<label class="rate"><span>${escape(name)}</span><input type="range" min="-2" max="2" step="0.25" value="0" data-rate="${index}"><output>×1</output></label>`).join("")
    + '<table class="changed"><thead><tr><th>GPU</th><th class="n">time</th><th class="n">change</th></tr></thead><tbody></tbody></table></div>';
  let waiting = 0, asked = 0;
  const show = async () => {
    const mine = ++asked, found = await ask("what-if", { factors }).catch((error) => { fail(error.message); return null; });
    if (!found || mine !== asked || view !== "What if") return;
    $("tbody", panel).innerHTML = found.map((value, index) => {
      const now = entry(one, index).prediction?.seconds;
      return `<tr><td>${escape(one.targets[index].device)}</td><td class="n">${value === null ? "" : seconds(value)}</td><td class="n">${change(value, now)}</td></tr>`;
    }).join("");
  };
  for (const slider of panel.querySelectorAll("input")) slider.addEventListener("input", () => {
    const factor = 2 ** Number(slider.value);
    slider.nextElementSibling.textContent = `×${+factor.toPrecision(3)}`;
    factors[names[slider.dataset.rate]] = factor;
    clearTimeout(waiting);
    waiting = setTimeout(show, 120);
  });
  show();
}

// --- timeline -----------------------------------------------------------------------------------

function timeline() {
  later("timeline", {}, (found) => {
    if (!found.events) { panel.innerHTML = '<div class="inner">This launch is not predicted, so there is no timeline.</div>'; return; }
    panel.innerHTML = '<div class="inner"><p class="dim">One compute unit, a row for each wave slot. Scroll to zoom, drag to move, click to go to the source line.</p><canvas class="unit"></canvas><p class="at dim"></p></div>';
    new UnitTimeline(found, $("canvas", panel), $(".at", panel));
  });
}

class UnitTimeline {
  constructor(data, canvas, note) {
    Object.assign(this, { data, canvas, note });
    this.end = data.events.reduce((last, [, start, clocks]) => Math.max(last, start + clocks), 1);
    this.from = 0;
    this.to = Math.min(this.end, 3000);
    this.label = 120;
    this.step = Math.max(10, Math.min(22, 420 / data.rows.length));
    canvas.style.height = `${24 + this.step * data.rows.length}px`;
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event); }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => { this.held = { x: event.offsetX, from: this.from, to: this.to }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  get width() { return Math.max(50, this.canvas.clientWidth - this.label); }
  clock(x) { return this.from + (x - this.label) / this.width * (this.to - this.from); }
  zoom(event) {
    const at = this.clock(event.offsetX), factor = event.deltaY > 0 ? 1.25 : 0.8;
    const span = Math.min(this.end, Math.max(40, (this.to - this.from) * factor));
    this.from = Math.max(0, Math.min(this.end - span, at - (at - this.from) * span / (this.to - this.from)));
    this.to = this.from + span;
    this.draw();
  }
  move(event) {
    if (this.held) {
      const span = this.held.to - this.held.from, by = (this.held.x - event.offsetX) / this.width * span;
      this.from = Math.max(0, Math.min(this.end - span, this.held.from + by));
      this.to = this.from + span;
      this.draw();
      return;
    }
    const hit = this.at(event);
    this.note.textContent = hit ? `clock ${Math.round(hit[1])}, ${hit[2]} clocks: ${this.data.names[hit[3]]}${this.data.lines[hit[3]] ? ` (line ${this.data.lines[hit[3]]})` : ""}` : "";
  }
  release(event) {
    const moved = this.held && Math.abs(this.held.x - event.offsetX) > 3;
    this.held = null;
    const hit = moved ? null : this.at(event);
    if (hit && this.data.lines[hit[3]]) light(this.data.lines[hit[3]], "timeline");
  }
  at(event) {
    const row = Math.floor((event.offsetY - 20) / this.step), when = this.clock(event.offsetX);
    return this.data.events.find(([of, start, clocks]) => of === row && start <= when && when <= start + Math.max(clocks, (this.to - this.from) / this.width));
  }
  draw() {
    const ratio = devicePixelRatio || 1, { canvas } = this, pen = canvas.getContext("2d");
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.scale(ratio, ratio);
    const known = new Map();
    const colour = (name) => {
      if (!known.has(name)) {
        const probe = document.createElement("i");
        probe.style.color = `var(--${name}, var(--other))`;
        panel.append(probe);
        known.set(name, getComputedStyle(probe).color);
        probe.remove();
      }
      return known.get(name);
    };
    pen.font = "10px system-ui, sans-serif";
    pen.fillStyle = colour("dim");
    const step = 10 ** Math.floor(Math.log10((this.to - this.from) / 3));
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.label + (at - this.from) / (this.to - this.from) * this.width;
      pen.globalAlpha = 0.25;
      pen.fillRect(x, 16, 1, canvas.clientHeight);
      pen.globalAlpha = 1;
      pen.fillText(`${Math.round(at)}`, x + 2, 11);
    }
    this.data.rows.forEach((name, row) => { if (this.step >= 10) pen.fillText(name, 0, 20 + row * this.step + 9); });
    for (const [row, start, clocks, index] of this.data.events) {
      if (start + clocks < this.from || start > this.to) continue;
      const x = this.label + Math.max(0, (start - this.from) / (this.to - this.from)) * this.width;
      const end = this.label + Math.min(1, (start + clocks - this.from) / (this.to - this.from)) * this.width;
      pen.fillStyle = colour(this.data.classes[index]);
      pen.fillRect(x, 20 + row * this.step, Math.max(0.7, end - x), this.step - 2);
    }
  }
}

// --- session ------------------------------------------------------------------------------------

function load(state) {
  session = state;
  document.title = `${state.name} · wavecast workbench`;
  $("#name").textContent = state.watched ? `${state.name} (watched)` : state.name;
  $("#arch").value = state.arch;
  $("#arguments").value = state.arguments.join(" ");
  source.readOnly = state.watched;
  source.value = state.text;
  result = before = null;
  explained = "";
  fail("");
  stale(false);
  line = 0;
  paint();
  explain();
}

$("#run").addEventListener("click", explain);
for (const name of ["#arch", "#arguments"]) $(name).addEventListener("change", explain);
$("#launch").addEventListener("change", (event) => { launch = event.target.selectedIndex; target = 0; targets(); paint(); tabs(); });
$("#pin").addEventListener("click", () => { if (result) { before = figures(result); pinned = true; render(); } });
$("#theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
});
$("#save").addEventListener("click", () => {
  const { schema, name } = session;
  const saved = { schema, name, text: source.value, arch: $("#arch").value, arguments: $("#arguments").value.split(/\s+/).filter(Boolean) };
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(saved, null, 2)], { type: "application/json" }));
  link.download = `${name}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
$("#open").addEventListener("click", () => $("#file").click());
$("#file").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  try { load((await call("/api/open", JSON.parse(await file.text()))).answer); }
  catch (error) { fail(`${file.name}: ${error instanceof SyntaxError ? "not JSON" : error.message}`); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); explain(); }
});

/* Explain again whenever the watched file has changed. */
async function watch() {
  const response = await fetch("/api/changes", { headers: { Authorization: `Bearer ${token}` } });
  const reader = response.body.getReader(), decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (decoder.decode(value, { stream: true }).includes("data:")) explain();
  }
}

call("/api/session").then((state) => { load(state); if (state.watched) watch(); }).catch((error) => fail(error.message));
