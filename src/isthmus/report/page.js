"use strict";
(() => {
  const svg = document.querySelector("#picture svg");
  const nodes = [...svg.querySelectorAll(".node")];
  const edges = [...svg.querySelectorAll(".edge")];
  const panels = [...document.querySelectorAll("[data-panel]")];
  let chosen = null;

  function choose(node) {
    chosen = node === chosen ? null : node;
    const near = new Set([chosen]);
    for (const edge of edges) {
      const { from, to } = edge.dataset;
      const mine = from === chosen || to === chosen;
      if (mine) near.add(from).add(to);
      edge.classList.toggle("near", chosen !== null && mine);
      edge.classList.toggle("far", chosen !== null && !mine);
    }
    for (const box of nodes) {
      const name = box.dataset.node;
      box.classList.toggle("chosen", name === chosen);
      box.classList.toggle("near", chosen !== null && near.has(name));
      box.classList.toggle("far", chosen !== null && !near.has(name));
    }
    for (const panel of panels) panel.open = panel.dataset.panel === chosen;
  }

  for (const box of nodes) {
    box.addEventListener("click", () => choose(box.dataset.node));
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") choose(box.dataset.node);
    });
  }

  const least = document.querySelector("#least");
  if (least) {
    const steps = least.dataset.steps.split(" ").map(Number);
    const show = () => {
      const limit = steps[Number(least.value)];
      for (const edge of edges) {
        const strength = edge.dataset.strength;
        edge.classList.toggle("hidden", strength !== undefined && Number(strength) < limit);
      }
      const left = steps.filter((step) => step >= limit).length;
      document.querySelector("#shown").textContent = `${left} of ${steps.length}`;
    };
    least.addEventListener("input", show);
    show();
  }

  const box = svg.viewBox.baseVal;
  function scale() {
    return Math.max(box.width / svg.clientWidth, box.height / svg.clientHeight);
  }
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const factor = Math.exp(event.deltaY / 500);
    const frame = svg.getBoundingClientRect();
    const x = (event.clientX - frame.left) / frame.width;
    const y = (event.clientY - frame.top) / frame.height;
    box.x += box.width * x * (1 - factor);
    box.y += box.height * y * (1 - factor);
    box.width *= factor;
    box.height *= factor;
  }, { passive: false });
  let dragged = null;
  svg.addEventListener("pointerdown", (event) => { dragged = [event.clientX, event.clientY]; });
  svg.addEventListener("pointermove", (event) => {
    if (dragged === null || event.buttons === 0) return;
    box.x -= (event.clientX - dragged[0]) * scale();
    box.y -= (event.clientY - dragged[1]) * scale();
    dragged = [event.clientX, event.clientY];
  });
})();
