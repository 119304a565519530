"use strict";
// Without the libraries that draw: mark nodes and edges in the drawing that the page has.
(() => {
  const { edges, state } = Report;
  addEventListener("load", () => document.documentElement.classList.add("ready")); // it is drawn
  const svg = document.querySelector("#picture > svg");
  const boxes = svg ? [...svg.querySelectorAll(".node")] : [];
  const lines = svg ? [...svg.querySelectorAll(".edge")] : [];
  for (const box of boxes) {
    const choose = () => Report.change({ chosen: Number(box.dataset.node) });
    box.addEventListener("click", choose);
    box.addEventListener("keydown", (event) => event.key === "Enter" && choose());
  }
  Report.listen(() => {
    const { chosen } = state;
    const close = chosen === null ? new Set() : Report.near(chosen, 1);
    for (const box of boxes) {
      const node = Number(box.dataset.node);
      box.classList.toggle("chosen", node === chosen);
      box.classList.toggle("near", close.has(node));
      box.classList.toggle("far", chosen !== null && !close.has(node));
    }
    for (const line of lines) {
      const [a, b] = [Number(line.dataset.from), Number(line.dataset.to)];
      const edge = edges.find((e) => (e.from === a && e.to === b) || (e.from === b && e.to === a));
      const own = a === chosen || b === chosen;
      line.classList.toggle("off", Boolean(edge) && !Report.visible(edge));
      line.classList.toggle("near", own);
      line.classList.toggle("far", chosen !== null && !own);
    }
    if (svg) svg.style.display = state.view === "network" ? "" : "none";
  });
})();
