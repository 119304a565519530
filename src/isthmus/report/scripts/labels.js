"use strict";
// Level of detail: where names would be too small to read, show as many at a readable size as fit.
(() => {
  const { cy, font, readable } = Report.network;
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
    if (!widths.has(name)) widths.set(name, pen.measureText(name).width + 6);
    return widths.get(name);
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
    const large = font * cy.zoom() >= readable;
    Report.network.name(large);
    if (large) return;
    pen.font = `${SIZE}px system-ui, sans-serif`;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    const [back, ink, mark] = ["back", "text", "mark"].map(color);
    const shown = cy.nodes("[label != '']").toArray().filter((node) => state.chosen === null || !node.hasClass("far"));
    const ranks = new Map(shown.map((node) => [node, rank(node)]));
    shown.sort((a, b) => ranks.get(b) - ranks.get(a));
    const taken = [];
    for (const node of shown) {
      if (taken.length >= MOST) break;
      const centre = node.renderedPosition();
      if (centre.x < 0 || centre.y < 0 || centre.x > wide || centre.y > high) continue;
      const name = text(node);
      const half = width(name) / 2;
      const x = Math.max(half, Math.min(wide - half, centre.x));
      const y = Math.max(SIZE, Math.min(high - SIZE, centre.y));
      const box = [x - half, y - SIZE * 0.75, x + half, y + SIZE * 0.75];
      if (taken.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3])) continue;
      taken.push(box);
      pen.fillStyle = back;
      pen.globalAlpha = 0.88;
      pen.fillRect(box[0], box[1], 2 * half, 1.5 * SIZE);
      pen.globalAlpha = 1;
      pen.fillStyle = node.hasClass("chosen") ? mark : ink;
      pen.fillText(name, x, y);
    }
    canvas.dataset.shown = taken.length;
  }

  cy.on("render", draw);
})();
