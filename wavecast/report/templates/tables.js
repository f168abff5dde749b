"use strict";
// Tables that sort by a click on their heads, and a field that filters their rows.
{
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      const sort = () => {
        const numbers = head.classList.contains("n");
        const before = head.getAttribute("aria-sort");
        const up = before ? before === "descending" : !numbers;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => {
          const cell = row.cells[column], given = cell.dataset.value;
          return numbers ? (given === undefined || given === "" ? -Infinity : Number(given)) : cell.textContent.trim();
        };
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => {
          const x = value(a), y = value(b);
          const order = numbers ? x - y : x.localeCompare(y);
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    });
  }

  const filter = document.getElementById("filter"), shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0, all = 0;
    for (const row of document.querySelectorAll("table.sortable tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
      all += 1;
    }
    shown.textContent = words.length ? `${count} of ${all}` : "";
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== filter) {
      event.preventDefault();
      filter.focus();
    }
  });
}
