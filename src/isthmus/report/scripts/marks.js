"use strict";
// How edges look: the marks at their ends and their lines. The drawing, the panel, the table and downloads use this.
Report.marks = (() => {
  const kinds = {
    determined: { head: "triangle", tail: "none", fill: "filled", sign: "→", color: "line" },
    fixed: { head: "triangle", tail: "none", fill: "hollow", sign: "→", color: "line" },
    open: { head: "none", tail: "none", fill: "filled", sign: "—", color: "open", dashes: [6, 4] },
    possible: { head: "triangle", tail: "circle", fill: "filled", tailFill: "hollow", sign: "○→", color: "line" },
    hidden: { head: "triangle", tail: "triangle", fill: "filled", sign: "↔", color: "line", dashes: [5, 3] },
    unknown: { head: "circle", tail: "circle", fill: "hollow", tailFill: "hollow", sign: "○–○", color: "line" },
  };
  const states = { added: { width: 4 }, missing: { dashes: [7, 4], width: 2.5 }, reversed: { dashes: [2, 3], width: 4 }, undecided: { dashes: [9, 3, 2, 3], width: 2.5 } };

  const HEAD = 8; // pixels of arrowheads in small drawings

  // Length of an arrowhead of cytoscape.js at scale one.
  const arrow = (width) => 0.3 * Math.max((13.37 * width) ** 0.9, 29);

  const of = (edge) => kinds[edge.mark];
  const colored = (name) => ({ "line-color": name, "target-arrow-color": name, "source-arrow-color": name });
  const dashed = (dashes, zoom) => (dashes ? { "line-style": "dashed", "line-dash-pattern": dashes.map((length) => length / Math.min(zoom, 1)) } : { "line-style": "solid" });

  // A colour mixed with the background: lines fade, their arrowheads do not.
  function faded(name, share) {
    const [ink, back] = [Report.color(name), Report.color("back")].map((hex) => [1, 3, 5].map((i) => Number.parseInt(hex.length === 4 ? hex[(i + 1) / 2].repeat(2) : hex.slice(i, i + 2), 16)));
    return `rgb(${ink.map((value, i) => Math.round(share * value + (1 - share) * back[i])).join()})`;
  }

  // Styles of edges at a zoom. However small the drawing, arrowheads have a size that can be seen, and a line has one pixel.
  function styles(zoom) {
    const { color } = Report;
    const least = 1 / zoom;
    const width = (edge) => Math.max(edge.data("width"), least);
    return [
      { selector: "edge", style: { ...colored(color("line")), width, "target-arrow-shape": "data(head)", "source-arrow-shape": "data(tail)", "target-arrow-fill": "data(fill)", "source-arrow-fill": "data(tailFill)", "arrow-scale": (edge) => Math.max(1.05, (zoom < 0.5 ? HEAD : 9.5) / zoom / arrow(width(edge))), "curve-style": "bezier" } },
      ...Object.entries(kinds).map(([name, own]) => ({ selector: `edge[mark = "${name}"]`, style: { ...colored(color(own.color)), ...dashed(own.dashes, zoom), "line-color": (edge) => faded(own.color, edge.data("fade")) } })),
      ...Object.entries(states).map(([name, own]) => ({ selector: `edge.${name}`, style: { ...colored(color(name)), ...dashed(own.dashes, zoom), width: Math.max(own.width, least) } })),
    ];
  }

  return { of, styles, colored };
})();
