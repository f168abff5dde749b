"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse($("#data").textContent);
  const CHUNK = 400;
  const ROW = 18;
  const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => text.replace(/[&<>"]/g, (c) => escapes[c]);
  let query = "";

  // --- one assembly panel: rows are built when the panel is first seen -----------------------

  class Assembly {
    constructor(element, target) {
      this.element = element;
      this.target = target;
      this.lines = $(".lines", element);
      this.rows = [];
      this.bySource = new Map();
      this.built = false;
      target.chains.forEach((chain, index) => {
        for (const s of chain) {
          if (!this.bySource.has(s)) this.bySource.set(s, new Set());
          this.bySource.get(s).add(index);
        }
      });
    }

    show() {
      if (!this.built && this.target.text.length) this.build();
    }

    matches() {
      if (!query) return null;
      const found = [];
      this.target.text.forEach((text, i) => {
        if (text.toLowerCase().includes(query)) found.push(i);
      });
      return found;
    }

    build() {
      this.built = true;
      const { text } = this.target;
      const chosen = this.matches();
      const total = chosen ? chosen.length : text.length;
      const html = [];
      let label = 0;
      let depth = 0;
      for (let start = 0; start < total; start += CHUNK) {
        const stop = Math.min(start + CHUNK, total);
        html.push(`<div class="chunk" style="contain-intrinsic-size:auto ${(stop - start) * ROW}px">`);
        for (let k = start; k < stop; k++) {
          const i = chosen ? chosen[k] : k;
          while (label < this.target.labels.length && this.target.labels[label][0] <= i) {
            const [, name, level, note] = this.target.labels[label++];
            depth = level;
            if (!chosen) html.push(`<div class="r l"><i class="h"></i><u></u>${escape(name)}:<em>${escape(note)}</em></div>`);
          }
          html.push(this.row(i, depth));
        }
        html.push("</div>");
      }
      this.lines.innerHTML = html.join("");
      this.rows = new Array(text.length);
      for (const row of $$(".r[data-i]", this.lines)) this.rows[row.dataset.i] = row;
    }

    row(i, depth) {
      const { text, heat, chain, chains, classes } = this.target;
      const full = text[i];
      const space = full.search(/\s/);
      const cut = space < 0 ? full.length : space;
      const source = chains[chain[i]];
      const line = source.length ? lineNumber(this.kernel, source[source.length - 1]) : "";
      return `<div class="r" data-i="${i}"><i class="h h${heat[i] || 0}"></i><i class="d d${Math.min(depth, 3)}"></i><u>${i}</u><code><b class="c-${escape(classes[this.target.class[i]])}">${marked(full.slice(0, cut))}</b>${marked(full.slice(cut))}</code><s>${line}</s></div>`;
    }

    rebuild() {
      this.built = false;
      this.lines.textContent = "";
      if (!this.element.hidden) this.show();
    }

    instructionsOf(s) {
      const wanted = this.bySource.get(s);
      if (!wanted) return [];
      const found = [];
      this.target.chain.forEach((c, i) => {
        if (wanted.has(c)) found.push(i);
      });
      return found;
    }

    sourcesOf(i) {
      return this.target.chains[this.target.chain[i]] || [];
    }
  }

  function marked(text) {
    if (!query) return escape(text);
    const lower = text.toLowerCase();
    let html = "";
    let from = 0;
    for (let at = lower.indexOf(query); at >= 0; at = lower.indexOf(query, from)) {
      html += `${escape(text.slice(from, at))}<mark>${escape(text.slice(at, at + query.length))}</mark>`;
      from = at + query.length;
    }
    return html + escape(text.slice(from));
  }

  function lineNumber(kernel, s) {
    const row = kernel.sources.get(s);
    return row ? `:${$("a", row).textContent}` : "";
  }

  function scrollInto(box, row) {
    const outer = box.getBoundingClientRect();
    const inner = row.getBoundingClientRect();
    if (inner.top < outer.top + 30 || inner.bottom > outer.bottom) {
      box.scrollTop += inner.top - outer.top - outer.height / 3;
    }
  }

  // --- one kernel: tabs, source panel, links between the panels ------------------------------

  class Kernel {
    constructor(element) {
      this.element = element;
      this.index = Number(element.dataset.k);
      this.targets = data.kernels[this.index].targets;
      this.sources = new Map($$(".sources .r", element).map((row) => [Number(row.dataset.s), row]));
      this.assemblies = $$(".asm", element).map((box, t) => new Assembly(box, this.targets[t]));
      for (const assembly of this.assemblies) assembly.kernel = this;
      this.tabs = $$("[role=tab]", element);
      this.panels = $$("[role=tabpanel]", element);
      this.selected = 0;
      this.columns = false;
      this.lit = [];
      this.pinned = [];
      this.listen();
      this.heat();
    }

    listen() {
      this.tabs.forEach((tab, t) => tab.addEventListener("click", () => this.select(t)));
      const list = $("[role=tablist]", this.element);
      list.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        this.select((this.selected + step + this.tabs.length) % this.tabs.length);
        this.tabs[this.selected].focus();
      });
      const side = $(".side", this.element);
      if (side) side.addEventListener("click", () => this.setColumns(!this.columns));
      const explorer = $(".explorer", this.element);
      explorer.addEventListener("mouseover", (event) => this.hover(event.target.closest(".r")));
      explorer.addEventListener("mouseleave", () => this.light([]));
      explorer.addEventListener("click", (event) => {
        const row = event.target.closest(".r");
        if (!row || row.classList.contains("l")) return;
        event.preventDefault();
        if (row.dataset.s !== undefined) this.pinSource(Number(row.dataset.s));
        else this.pinInstruction(this.assemblyOf(row), Number(row.dataset.i));
      });
      this.element.addEventListener("click", (event) => {
        const link = event.target.closest("a.line");
        if (!link) return;
        event.preventDefault();
        const panel = link.closest(".panel");
        if (panel) this.select(Number(panel.dataset.t));
        if (link.dataset.s !== undefined) this.pinSource(Number(link.dataset.s));
        else this.pinInstruction(this.assemblies[this.selected], Number(link.dataset.i));
        explorer.scrollIntoView({ block: "nearest" });
      });
      for (const plot of $$(".plot.pressure", this.element)) this.listenPressure(plot);
      new IntersectionObserver((entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        this.shown = true;
        this.refresh();
      }, { rootMargin: "800px" }).observe(explorer);
    }

    assemblyOf(row) {
      return this.assemblies[Number(row.closest(".asm").dataset.t)];
    }

    visible() {
      return this.assemblies.filter((assembly) => !assembly.element.hidden);
    }

    refresh() {
      if (this.shown) for (const assembly of this.visible()) assembly.show();
    }

    select(t) {
      this.selected = t;
      this.tabs.forEach((tab, k) => {
        tab.setAttribute("aria-selected", String(k === t));
        tab.tabIndex = k === t ? 0 : -1;
      });
      this.layout();
      if (this.columns) this.panels[t].scrollIntoView({ block: "nearest", inline: "nearest" });
    }

    setColumns(on) {
      this.columns = on;
      this.element.classList.toggle("columns", on);
      $(".side", this.element).setAttribute("aria-pressed", String(on));
      this.layout();
    }

    layout() {
      this.panels.forEach((panel, k) => { panel.hidden = !this.columns && k !== this.selected; });
      this.assemblies.forEach((a, k) => { a.element.hidden = !this.columns && k !== this.selected; });
      this.heat();
      this.refresh();
      this.repin();
    }

    heat() {
      const { line_heat: shades, line_note: notes } = this.targets[this.selected];
      for (const [s, row] of this.sources) {
        const gutter = $(".h", row);
        gutter.className = `h h${shades[s] || 0}`;
        gutter.title = notes[s] || "";
      }
    }

    hover(row) {
      if (!row || row.classList.contains("l")) return this.light([]);
      if (row.dataset.s !== undefined) return this.light(this.partners(Number(row.dataset.s)));
      const sources = this.assemblyOf(row).sourcesOf(Number(row.dataset.i));
      return this.light(sources.map((s) => this.sources.get(s)));
    }

    partners(s) {
      return this.visible().flatMap((a) => a.instructionsOf(s).map((i) => a.rows[i]));
    }

    light(rows) {
      for (const row of this.lit) row.classList.remove("lit");
      this.lit = rows.filter(Boolean);
      for (const row of this.lit) row.classList.add("lit");
    }

    pin(rows) {
      for (const row of this.pinned) row.classList.remove("pin");
      this.pinned = rows.filter(Boolean);
      for (const row of this.pinned) row.classList.add("pin");
    }

    repin() {
      if (this.pinnedSource !== undefined) this.pinSource(this.pinnedSource);
    }

    pinSource(s) {
      this.pinnedSource = s;
      this.shown = true;
      this.refresh();
      const row = this.sources.get(s);
      this.pin([row, ...this.partners(s)]);
      if (row) scrollInto($(".sources", this.element), row);
      for (const assembly of this.visible()) {
        const first = assembly.instructionsOf(s).map((i) => assembly.rows[i]).find(Boolean);
        if (first) scrollInto(assembly.element, first);
      }
    }

    pinInstruction(assembly, i) {
      this.pinnedSource = undefined;
      this.shown = true;
      this.refresh();
      const sources = assembly.sourcesOf(i).map((s) => this.sources.get(s)).filter(Boolean);
      this.pin([assembly.rows[i], ...sources]);
      if (assembly.rows[i]) scrollInto(assembly.element, assembly.rows[i]);
      if (sources.length) scrollInto($(".sources", this.element), sources[sources.length - 1]);
    }

    move(box, step) {
      const assembly = this.assemblies[Number(box.dataset.t)];
      const rows = assembly ? assembly.rows.filter(Boolean) : [...this.sources.values()].filter((r) => !r.hidden);
      if (!rows.length) return;
      const current = rows.findIndex((row) => row === this.cursor);
      const next = rows[Math.max(0, Math.min(rows.length - 1, current + step))];
      this.cursor = next;
      if (assembly) this.pinInstruction(assembly, Number(next.dataset.i));
      else this.pinSource(Number(next.dataset.s));
    }

    // The pressure plot: the instruction under the pointer, and a way to it.
    listenPressure(plot) {
      const t = Number(plot.closest(".panel").dataset.t);
      const out = $(".at", plot.parentElement);
      const cursor = $(".cursor", plot);
      const total = Number(plot.dataset.total);
      const left = Number(plot.dataset.left);
      const right = Number(plot.dataset.right);
      const at = (event) => {
        const box = plot.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
        const i = Math.floor(((x - left) / (right - left)) * total);
        return Math.max(0, Math.min(total - 1, i));
      };
      plot.addEventListener("mousemove", (event) => {
        const i = at(event);
        const x = left + ((i + 0.5) / total) * (right - left);
        cursor.setAttribute("d", `M${x} 14V164`);
        const [vgpr, agpr, sgpr] = this.targets[t].pressure.map((curve) => curve[i]);
        const source = this.assemblies[t].sourcesOf(i);
        const line = source.length ? lineNumber(this, source[source.length - 1]) : "";
        out.textContent = `${i} ${line} ${this.targets[t].text[i] || ""} — ${vgpr} VGPR, ${agpr} AGPR, ${sgpr} SGPR`;
      });
      plot.addEventListener("mouseleave", () => {
        cursor.setAttribute("d", "");
        out.textContent = "";
      });
      plot.addEventListener("click", (event) => {
        this.select(t);
        this.pinInstruction(this.assemblies[t], at(event));
        $(".explorer", this.element).scrollIntoView({ block: "nearest" });
      });
    }

    filter() {
      let lines = 0;
      let findings = 0;
      let instructions = 0;
      for (const row of this.sources.values()) {
        const code = $("code", row);
        row.hidden = query !== "" && !code.textContent.toLowerCase().includes(query);
        if (row.dataset.marked || query) {
          code.innerHTML = row.hidden ? escape(code.textContent) : marked(code.textContent);
          row.dataset.marked = query ? "1" : "";
        }
        if (!row.hidden) lines++;
      }
      for (const finding of $$(".finding", this.element)) {
        const text = $$(".sev, p:not(.rule p), .rule summary", finding).map((one) => one.textContent).join(" ");
        finding.hidden = query !== "" && !text.toLowerCase().includes(query);
        if (!finding.hidden) findings++;
      }
      this.assemblies.forEach((assembly) => {
        if (query && !assembly.element.hidden) instructions += assembly.matches().length;
        assembly.rebuild();
      });
      if (!query) this.repin();
      return [lines, instructions, findings];
    }
  }

  const kernels = $$(".kernel").map((element) => new Kernel(element));

  // --- search, links from the comparison ----------------------------------------------

  const search = $("#search");
  const found = $("#found");
  let timer = 0;

  function apply() {
    query = search.value.trim().toLowerCase();
    const totals = [0, 0, 0];
    for (const kernel of kernels) kernel.filter().forEach((n, k) => { totals[k] += n; });
    const [lines, instructions, findings] = totals;
    found.textContent = query ? `${lines} lines · ${instructions} instructions · ${findings} findings` : "";
  }
  // Enter goes to the next match that is shown, with Shift to the one before.
  let at = -1;
  function step(by) {
    const matches = [...new Set($$(".finding:not([hidden]), .explorer .r mark").filter((one) => one.offsetParent).map((one) => one.closest(".r, .finding")))];
    if (!query || !matches.length) return;
    at = (at + by + matches.length) % matches.length;
    for (const one of $$(".here")) one.classList.remove("here");
    matches[at].classList.add("here");
    matches[at].scrollIntoView({ block: "center" });
    found.textContent = `${at + 1} of ${matches.length}`;
  }
  search.addEventListener("input", () => {
    at = -1;
    clearTimeout(timer);
    timer = setTimeout(apply, 120);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
      search.select();
    } else if (event.key === "Enter" && event.target === search) {
      clearTimeout(timer);
      if (search.value.trim().toLowerCase() !== query) apply();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && event.target === search) {
      search.value = "";
      apply();
      search.blur();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.matches(".sources, .asm")) {
      event.preventDefault();
      const kernel = kernels[Number(event.target.closest(".kernel").dataset.k)];
      kernel.move(event.target, event.key === "ArrowDown" ? 1 : -1);
    }
  });

  function go(id) {
    const match = /^k(\d+)(?:t(\d+))?$/.exec(id);
    if (!match || !kernels[match[1]]) return;
    const kernel = kernels[match[1]];
    if (match[2] !== undefined) kernel.select(Number(match[2]));
    (match[2] === undefined ? kernel.element : $(".tabs", kernel.element)).scrollIntoView();
  }
  for (const row of $$("tr[data-go]")) {
    row.addEventListener("click", (event) => {
      event.preventDefault();
      go(row.dataset.go);
    });
  }
  const jump = $("#jump");
  if (jump) {
    jump.addEventListener("change", () => {
      go(jump.value);
      jump.value = "";
    });
  }
  if (location.hash) go(location.hash.slice(1));
})();
