"use strict";
const filter = document.getElementById("filter");
const only = document.getElementById("only");
const shown = document.getElementById("shown");
const cards = [...document.querySelectorAll(".histories > article")];

function apply() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const card of cards) {
    const about = card.dataset.about;
    const fits = words.every((word) => about.includes(word)) && (!only.checked || "changed" in card.dataset);
    card.hidden = !fits;
    count += fits;
  }
  shown.textContent = `${count} of ${cards.length}`;
}

filter.addEventListener("input", apply);
only.addEventListener("change", apply);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== filter) {
    event.preventDefault();
    filter.focus();
  }
});
apply();
