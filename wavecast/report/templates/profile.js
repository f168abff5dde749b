"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const ROW = 22, AXIS = 18, TITLE = 16;

function time(nanoseconds) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (Math.abs(nanoseconds) >= size) return `${+(nanoseconds / size).toPrecision(4)} ${unit}`;
  }
  return `${Math.round(nanoseconds)} ns`;
}

class Timeline {
  constructor(section, profile) {
    this.profile = profile;
    this.canvas = section.querySelector("canvas");
    this.output = section.querySelector("output");
    this.whole = Math.max(...profile.timelines.map((one) => one.span), 1);
    this.from = 0;
    this.to = this.whole;
    this.height = AXIS + profile.timelines.reduce((sum, one) => sum + TITLE + ROW * one.rows.length, 0);
    this.canvas.style.height = `${this.height}px`;
    section.querySelector("[data-zoom=in]").addEventListener("click", () => this.zoom(0.5, 0.5));
    section.querySelector("[data-zoom=out]").addEventListener("click", () => this.zoom(2, 0.5));
    section.querySelector("[data-zoom=all]").addEventListener("click", () => this.show(0, this.whole));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, event.offsetX / this.canvas.clientWidth);
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.drag = { x: event.clientX, from: this.from, to: this.to };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointerup", () => { this.drag = null; });
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(from, to) {
    const length = Math.min(this.whole, Math.max(100, to - from));
    this.from = Math.min(Math.max(0, from), this.whole - length);
    this.to = this.from + length;
    this.draw();
  }

  zoom(factor, at) {
    const length = this.to - this.from, centre = this.from + at * length;
    this.show(centre - at * length * factor, centre + (1 - at) * length * factor);
  }

  key(event) {
    const length = this.to - this.from;
    const actions = {
      "+": () => this.zoom(0.5, 0.5), "-": () => this.zoom(2, 0.5), "0": () => this.show(0, this.whole),
      ArrowLeft: () => this.show(this.from - length / 4, this.to - length / 4),
      ArrowRight: () => this.show(this.from + length / 4, this.to + length / 4),
    };
    if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
  }

  move(event) {
    if (this.drag) {
      const moved = (this.drag.x - event.clientX) / this.canvas.clientWidth * (this.drag.to - this.drag.from);
      this.show(this.drag.from + moved, this.drag.to + moved);
      return;
    }
    const found = this.at(event.offsetX, event.offsetY);
    this.output.textContent = found || "";
  }

  at(x, y) {
    let top = AXIS;
    const when = this.from + x / this.canvas.clientWidth * (this.to - this.from);
    for (const one of this.profile.timelines) {
      const row = Math.floor((y - top - TITLE) / ROW);
      if (row >= 0 && row < one.rows.length) {
        for (let i = this.first(one, when); i < one.start.length && one.start[i] <= when; i++) {
          if (one.row[i] === row && one.start[i] + one.length[i] >= when) {
            return `${time(one.length[i])} at ${time(one.start[i])}, ${one.title}, ${one.rows[row]}: ${this.profile.names[one.name[i]]}`;
          }
        }
      }
      top += TITLE + ROW * one.rows.length;
    }
    return "";
  }

  /* The first slice that can reach a time: slices are sorted by start. */
  first(one, when) {
    one.longest ??= one.length.reduce((most, length) => Math.max(most, length), 0);
    let low = 0, high = one.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (one.start[middle] < when - one.longest) low = middle + 1; else high = middle;
    }
    return low;
  }

  draw() {
    const ratio = devicePixelRatio || 1, width = this.canvas.clientWidth;
    this.canvas.width = width * ratio;
    this.canvas.height = this.height * ratio;
    const pen = this.canvas.getContext("2d"), style = getComputedStyle(this.canvas);
    const colour = (name) => {
      const probe = document.createElement("i");
      probe.style.color = `var(${name})`;
      this.canvas.parentElement.append(probe);
      const value = getComputedStyle(probe).color;
      probe.remove();
      return value;
    };
    const colours = [...Array(8).keys()].map((n) => colour(`--t${n}`)), text = colour("--text"), dim = colour("--dim"), card = colour("--card");
    pen.scale(ratio, ratio);
    pen.font = `11px ${style.fontFamily}`;
    const scale = width / (this.to - this.from);
    this.axis(pen, width, scale, dim);
    let top = AXIS;
    for (const one of this.profile.timelines) {
      pen.fillStyle = text;
      pen.fillText(`${one.title}: ${time(one.span)}`, 4, top + 12);
      top += TITLE;
      const last = new Array(one.rows.length).fill(-1);
      for (let i = this.first(one, this.from); i < one.start.length && one.start[i] <= this.to; i++) {
        const x = (one.start[i] - this.from) * scale, end = x + one.length[i] * scale;
        const row = one.row[i];
        if (end < 0 || end <= last[row]) continue;
        const left = Math.max(x, last[row], 0), wide = Math.max(0.7, end - left);
        last[row] = Math.max(last[row], left + (wide < 1 ? wide : wide - 0.5));
        pen.fillStyle = colours[this.profile.colours[one.name[i]]];
        pen.fillRect(left, top + row * ROW + 2, wide, ROW - 4);
        if (wide > 60) {
          pen.save();
          pen.beginPath();
          pen.rect(left, top + row * ROW, wide - 4, ROW);
          pen.clip();
          pen.fillStyle = card;
          pen.fillText(this.profile.names[one.name[i]], left + 4, top + row * ROW + 15);
          pen.restore();
        }
      }
      top += ROW * one.rows.length;
    }
  }

  axis(pen, width, scale, dim) {
    const wanted = (this.to - this.from) / Math.max(2, width / 130);
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= wanted);
    pen.fillStyle = dim;
    pen.strokeStyle = dim;
    pen.globalAlpha = 0.25;
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = (at - this.from) * scale;
      pen.globalAlpha = 0.25;
      pen.fillRect(x, AXIS, 1, this.height);
      pen.globalAlpha = 1;
      pen.fillText(time(at), x + 3, 12);
    }
    pen.globalAlpha = 1;
  }
}

document.querySelectorAll(".timeline").forEach((section, number) => {
  window.timelines = [...(window.timelines || []), new Timeline(section, data[number])];
});
