"use strict";
// Downloads, all of them made in the page.
(() => {
  const { data, color } = Report;
  const name = Report.fileName;

  function save(content, type, extension) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = `${name}.${extension}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  function csv() {
    const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    // A cell that starts like a formula would be computed by a spreadsheet.
    const safe = (text) => quoted(/^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
    const lines = [["from", "to", data.pag ? "edge" : "directed", ...data.measures, ...(data.compared ? ["comparison"] : [])]];
    const body = document.querySelector("#edge-table")?.tBodies[0];
    for (const row of body?.rows ?? []) {
      if (row.hidden) continue;
      const edge = Report.edges[Number(row.dataset.edge)];
      const values = edge.values.map((value) => (value === null ? "" : String(value)));
      lines.push([Report.nodes[edge.from], Report.nodes[edge.to], data.pag ? Report.marks.of(edge).sign : String(edge.directed), ...values, ...(data.compared ? [edge.state ?? ""] : [])]);
    }
    return lines.map((line) => line.map(safe).join(",")).join("\r\n");
  }

  function svg() {
    const { cy, adapt } = Report.network;
    adapt(1, true); // with names in boxes, however small they are on the screen
    const space = "http://www.w3.org/2000/svg";
    const box = cy.elements().boundingBox();
    const make = (tag, attributes, parent) => {
      const made = document.createElementNS(space, tag);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
      parent?.append(made);
      return made;
    };
    const root = make("svg", { viewBox: `${box.x1 - 12} ${box.y1 - 12} ${box.w + 24} ${box.h + 24}`, width: box.w + 24, height: box.h + 24, "font-family": "system-ui, sans-serif", "font-size": 13 });
    make("rect", { x: box.x1 - 12, y: box.y1 - 12, width: box.w + 24, height: box.h + 24, fill: color("back") }, root);
    for (const node of cy.nodes(".group").toArray()) outline(node, "group");
    for (const edge of cy.edges().toArray()) line(edge);
    for (const node of cy.nodes().not(".group").toArray()) {
      outline(node, "box");
      const lines = node.data("label").split("\n");
      const { x, y } = node.position();
      lines.forEach((text, i) => {
        make("text", { x, y: y + (i - (lines.length - 1) / 2) * 16 + 4.5, "text-anchor": "middle", fill: color("text") }, root).textContent = text;
      });
    }
    adapt(cy.zoom(), true);
    return new XMLSerializer().serializeToString(root);

    function outline(node, fill) {
      const own = node.boundingBox({ includeLabels: false, includeOverlays: false });
      make("rect", { x: own.x1, y: own.y1, width: own.w, height: own.h, rx: 6, fill: color(fill), stroke: node.style("border-color") }, root);
    }

    function line(edge) {
      const start = edge.sourceEndpoint();
      const end = edge.targetEndpoint();
      const inner = edge.controlPoints() ?? [];
      const dashes = edge.style("line-style") === "dashed" ? edge.style("line-dash-pattern") : "";
      const stroke = edge.style("line-color");
      const width = Number.parseFloat(edge.style("width"));
      make("path", { d: curve(start, inner, end), fill: "none", stroke, "stroke-width": width, "stroke-opacity": edge.style("opacity"), ...(dashes && { "stroke-dasharray": dashes }) }, root);
      const ink = edge.style("target-arrow-color");
      const fill = edge.style("target-arrow-fill") === "hollow" ? color("back") : ink;
      if (edge.style("target-arrow-shape") === "triangle") arrow(end, inner.at(-1) ?? start, ink, fill, width);
      if (edge.style("source-arrow-shape") === "triangle") arrow(start, inner[0] ?? end, ink, fill, width);
      if (edge.style("target-arrow-shape") === "circle") make("circle", { cx: end.x, cy: end.y, r: 4, fill: color("back"), stroke: ink }, root);
      if (edge.style("source-arrow-shape") === "circle") make("circle", { cx: start.x, cy: start.y, r: 4, fill: color("back"), stroke: ink }, root);
    }

    // As cytoscape.js draws it: quadratic pieces that meet halfway between their control points.
    function curve(start, inner, end) {
      const text = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
      const pieces = inner.map((point, i) => {
        const next = inner[i + 1];
        return `Q${text(point)} ${text(next ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : end)}`;
      });
      return `M${text(start)}${pieces.join("") || `L${text(end)}`}`;
    }

    function arrow(tip, before, stroke, fill, width) {
      const angle = Math.atan2(tip.y - before.y, tip.x - before.x);
      const size = 6 + 1.6 * width;
      const corner = (turn) => `${(tip.x - size * Math.cos(angle + turn)).toFixed(1)} ${(tip.y - size * Math.sin(angle + turn)).toFixed(1)}`;
      make("path", { d: `M${tip.x.toFixed(1)} ${tip.y.toFixed(1)}L${corner(0.42)}L${corner(-0.42)}Z`, fill, stroke }, root);
    }
  }

  const makers = {
    csv: () => save(csv(), "text/csv", "csv"),
    svg: () => {
      Report.network.start();
      save(svg(), "image/svg+xml", "svg");
    },
    png: () => {
      Report.network.start();
      const { cy, adapt } = Report.network;
      adapt(1, true);
      const { w, h } = cy.elements().boundingBox();
      // Browsers refuse canvases beyond about 16,000 pixels a side.
      cy.png({ output: "blob-promise", full: true, scale: Math.min(2, 12_000 / Math.max(w, h, 1)), bg: color("back") }).then((blob) => save(blob, "image/png", "png"));
      adapt(cy.zoom(), true);
    },
  };
  for (const button of document.querySelectorAll("[data-export]")) {
    const kind = button.dataset.export;
    button.addEventListener("click", makers[kind] ?? (() => save(data.exports[kind], "text/plain", kind)));
  }
})();
