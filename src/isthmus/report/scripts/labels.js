"use strict";
// Where names would be too small in their boxes, nodes are dots, and as many names as fit stand beside them.
(() => {
  const { cy, named } = Report.network;
  const { nodes, touching, groups, state, color } = Report;
  const SIZE = 12; // pixels
  const MOST = 150;
  const LONGEST = 22; // letters
  const canvas = document.querySelector("#labels");
  const pen = canvas.getContext("2d");
  const widths = new Map();

  function text(node) {
    const { node: number, groupNumber } = node.data();
    if (number !== undefined) return short(nodes[number]);
    const members = groups.members[groupNumber];
    return members.length > 1 ? `${short(nodes[members[0]])} + ${members.length - 1}` : short(nodes[members[0]]);
  }

  function short(name) {
    const letters = [...name];
    return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
  }

  // The selected variable first, then its neighbours, then by the number of edges or variables.
  function rank(node) {
    const { node: number, groupNumber } = node.data();
    const size = number === undefined ? 1e3 + groups.members[groupNumber].length : touching[number].length;
    return (node.hasClass("chosen") ? 1e6 : 0) + (node.hasClass("near") ? 1e5 : 0) + size;
  }

  function width(name) {
    if (!widths.has(name)) widths.set(name, pen.measureText(name).width + 4);
    return widths.get(name);
  }

  // What a name must not cover: dots, and arrowheads.
  function obstacles() {
    const around = (x, y, half) => [x - half, y - half, x + half, y + half];
    const taken = cy.nodes().not(".group").map((node) => node.renderedPosition()).map(({ x, y }) => around(x, y, 5));
    const toward = (tip, other) => { const far = Math.hypot(other.x - tip.x, other.y - tip.y) || 1; return around(tip.x + (5 * (other.x - tip.x)) / far, tip.y + (5 * (other.y - tip.y)) / far, 5); };
    for (const edge of cy.edges().toArray()) {
      const [start, end] = [edge.renderedSourceEndpoint(), edge.renderedTargetEndpoint()];
      if (!start || !end) continue;
      if (edge.data("head") !== "none") taken.push(toward(end, start));
      if (edge.data("tail") !== "none") taken.push(toward(start, end));
    }
    return taken;
  }

  function draw() {
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [cy.width(), cy.height()];
    if (canvas.width !== Math.round(wide * scale) || canvas.height !== Math.round(high * scale)) {
      Object.assign(canvas, { width: Math.round(wide * scale), height: Math.round(high * scale) });
      Object.assign(canvas.style, { width: `${wide}px`, height: `${high}px` });
    }
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, wide, high);
    canvas.dataset.shown = 0;
    Report.network.written = [];
    if (named()) return;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle", lineWidth: 3, lineJoin: "round", font: `${SIZE}px system-ui, sans-serif` });
    const [back, ink, mark] = ["back", "text", "mark"].map(color);
    const shown = cy.nodes("[label != '']").toArray().filter((node) => !node.hasClass("far"));
    const ranks = new Map(shown.map((node) => [node, rank(node)]));
    shown.sort((a, b) => ranks.get(b) - ranks.get(a));
    const taken = obstacles();
    let count = 0;
    for (const node of shown) {
      if (count >= MOST) break;
      const centre = node.renderedPosition();
      if (centre.x < 0 || centre.y < 0 || centre.x > wide || centre.y > high) continue;
      const name = text(node);
      const half = width(name) / 2;
      const places = [[0, -1], [0, 1], [1, 0], [-1, 0], [1, -0.8], [-1, -0.8], [1, 0.8], [-1, 0.8], [0, -1.7], [0, 1.7]].map(([dx, dy]) => [centre.x + dx * (half + 7), centre.y + dy * (SIZE + 1)]);
      const box = ([x, y]) => [x - half, y - SIZE * 0.6, x + half, y + SIZE * 0.6];
      const free = (b) => b[0] >= 0 && b[1] >= 0 && b[2] <= wide && b[3] <= high && !taken.some((t) => t[0] < b[2] && b[0] < t[2] && t[1] < b[3] && b[1] < t[3]);
      const place = places.find((at) => free(box(at))) ?? (node.hasClass("chosen") ? places[0] : null);
      if (!place) continue;
      taken.push(box(place));
      Report.network.written.push(box(place));
      count += 1;
      pen.strokeStyle = back;
      pen.strokeText(name, ...place);
      pen.fillStyle = node.hasClass("chosen") ? mark : ink;
      pen.fillText(name, ...place);
    }
    canvas.dataset.shown = count;
  }

  cy.on("render", draw);
})();
