"use strict";
// The controls of the page.
(() => {
  const { state, edges, network } = Report;
  const $ = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  // The drawing fills what is left of the window below the controls.
  const stage = $("#stage");
  function fill() {
    const top = Math.ceil(stage.getBoundingClientRect().top + scrollY) + 16;
    stage.style.height = matchMedia("(max-width: 52rem)").matches ? "" : `max(30rem, calc(100vh - ${top}px))`;
  }
  addEventListener("resize", fill);

  const search = $("#search");
  function choose() {
    const node = Report.find(search.value);
    search.setCustomValidity(node === null && search.value ? "No variable has this name." : "");
    search.reportValidity();
    if (node === null) return;
    Report.change({ chosen: node, edge: null, ...(Report.large && state.view === "network" && { mode: "near" }) });
    if (matchMedia("(max-width: 52rem)").matches) $("#toolbar").scrollIntoView();
  }
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
  search.addEventListener("input", (event) => {
    search.setCustomValidity("");
    // A choice from the list is no typing.
    if (!(event instanceof InputEvent) || event.inputType === "insertReplacementText") choose();
  });

  for (const button of all("[data-view]")) button.addEventListener("click", () => Report.change({ view: button.dataset.view }));
  for (const button of all("[data-mode]")) button.addEventListener("click", () => Report.show(button.dataset.mode));
  $("#radius")?.addEventListener("change", (event) => Report.change({ radius: Number(event.target.value) }));
  $("#compare")?.addEventListener("change", (event) => Report.change({ compared: event.target.checked }));
  for (const button of all("[data-zoom]")) button.addEventListener("click", () => network.zoom(Number(button.dataset.zoom)));

  const least = $("#least");
  if (least) {
    const steps = [...new Set(edges.map(Report.size).filter((size) => size !== null))].sort((a, b) => a - b);
    least.max = Math.max(steps.length - 1, 0);
    const { threshold } = Report.data;
    if (threshold !== null) least.value = Math.max(0, steps.findIndex((step) => step > threshold));
    if (threshold !== null && !steps.some((step) => step > threshold)) least.value = least.max;
    const limit = () => (Number(least.value) > 0 ? steps[Number(least.value)] : null);
    const show = () => {
      const own = edges.filter((edge) => Report.size(edge) !== null);
      $("#shown").textContent = `${own.filter(Report.visible).length} of ${own.length}`;
    };
    least.addEventListener("input", () => {
      Report.change({ least: limit() });
      show();
    });
    state.least = limit();
    show();
  }

  function mark() {
    for (const button of all("[data-view]")) button.ariaPressed = String(button.dataset.view === state.view);
    for (const button of all("[data-mode]")) button.ariaPressed = String(button.dataset.mode === state.mode);
    for (const part of all(".network-only")) part.hidden = state.view !== "network";
    const radius = $("#radius-label");
    if (radius) radius.hidden = state.mode !== "near" || state.view !== "network";
    const drawing = $("#drawing");
    if (drawing) drawing.style.visibility = state.view === "network" ? "" : "hidden";
    for (const part of all("#legend, #least-label")) part.hidden = state.view === "whatif"; // they are about edges
    fill();
  }
  Report.listen(mark);
  mark();

  const theme = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  function recolor() {
    network.restyle();
    Report.matrix.draw();
  }
  $("#theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
    recolor();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);

  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape") {
      if ($("#downloads").open) closeMenu();
      else Report.change({ chosen: null, edge: null, community: null, ...(state.mode === "near" && { mode: Report.overview }) });
    }
  });
  $("#picture").addEventListener("keydown", (event) => {
    if (event.target.closest("button")) return;
    const { cy } = network;
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (cy && step) cy.panBy({ x: step[0], y: step[1] });
    else if (event.key === "+") network.zoom(1.4);
    else if (event.key === "-") network.zoom(0.7);
    else if (event.key === "0") network.fit();
    else return;
    event.preventDefault();
  });
  function closeMenu() {
    $("#downloads").open = false;
    $("#downloads summary").focus();
  }
  document.addEventListener("click", (event) => {
    const menu = $("#downloads");
    if (!menu.contains(event.target) || event.target.closest("[data-export]")) menu.open = false;
  });
  let resized;
  let size = "";
  new ResizeObserver(([{ contentRect }]) => {
    const first = !size;
    const changed = size !== (size = `${contentRect.width} ${contentRect.height}`);
    if (first || !changed) return; // the drawing fits already
    clearTimeout(resized);
    resized = setTimeout(() => {
      if (state.view === "matrix") Report.matrix.show();
      else network.resize();
    }, 100);
  }).observe($("#picture"));
})();
