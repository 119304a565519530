"use strict";
// Level of detail: where names would be too small to read, show as many at a readable size as fit.
(() => {
  const { cy, pen, labels, font } = Report.network;
  if (!cy) return;
  const READABLE = 8; // pixels
  const SIZE = 12; // pixels of the names that are shown instead
  const MOST = 150;
  let far = false;
  let waiting = false;

  function update() {
    waiting = false;
    const zoom = cy.zoom();
    const nodes = cy.nodes("[node]");
    if (font * zoom >= READABLE) {
      if (!far) return;
      far = false;
      cy.batch(() => nodes.removeClass("mute over").removeStyle("font-size"));
      return;
    }
    far = true;
    const { state, touching } = Report;
    const rank = (node) => (node.hasClass("chosen") ? 1e6 : 0) + (node.hasClass("near") ? 1e5 : 0) + touching[node.data("node")].length;
    const shown = nodes.toArray().filter((node) => state.chosen === null || !node.hasClass("far"));
    shown.sort((a, b) => rank(b) - rank(a));
    const taken = [];
    const chosen = new Set();
    const extent = { right: cy.width(), bottom: cy.height() };
    for (const node of shown) {
      if (chosen.size >= MOST) break;
      const { x, y } = node.renderedPosition();
      const width = (pen.measureText(labels[node.data("node")].replaceAll("\n", " ")).width * SIZE) / font + 6;
      const box = [x - width / 2, y - SIZE * 0.75, x + width / 2, y + SIZE * 0.75];
      if (x < 0 || y < 0 || x > extent.right || y > extent.bottom) continue;
      if (taken.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3])) continue;
      taken.push(box);
      chosen.add(node.id());
    }
    cy.batch(() => {
      for (const node of nodes.toArray()) {
        const here = chosen.has(node.id());
        node.toggleClass("mute", !here);
        node.toggleClass("over", here);
        if (here) node.style("font-size", SIZE / zoom);
        else node.removeStyle("font-size");
      }
    });
  }

  function later() {
    if (!waiting) requestAnimationFrame(update);
    waiting = true;
  }
  cy.on("zoom pan resize add dragfree", later);
  Report.listen(later);
})();
