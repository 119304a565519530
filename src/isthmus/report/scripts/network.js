"use strict";
// The drawing of the network, by cytoscape.js.
(() => {
  const { nodes, edges, state, groups, layout, color } = Report;
  const FONT = 13;
  const READABLE = 11; // pixels of the smallest names
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${FONT}px system-ui, sans-serif`;

  // Long names are broken after separators.
  function broken(name) {
    const lines = [""];
    for (const piece of name.replaceAll("\n", " ").match(/[^\s_.\-/:]{1,20}[\s_.\-/:]*|[\s_.\-/:]+/g) ?? [name]) {
      if (lines.at(-1) && (lines.at(-1) + piece).length > 20) lines.push("");
      lines[lines.length - 1] += piece;
    }
    return lines.map((line) => line.trim()).slice(0, 4).join("\n") || " ";
  }

  function sizeOf(label) {
    const lines = label.split("\n");
    const width = Math.max(...lines.map((line) => pen.measureText(line).width));
    return { width: Math.max(width + 18, 34), height: lines.length * FONT * 1.25 + 10 };
  }

  const labels = nodes.map(broken);
  const sizes = labels.map(sizeOf);
  const container = document.querySelector("#drawing");
  let named = true;
  const cy = cytoscape({ container, style: style(), minZoom: 0.02, maxZoom: 4, autounselectify: true, boxSelectionEnabled: false });

  function style() {
    const [text, box, line, mark, back, group, soft] = ["text", "box", "line", "mark", "back", "group", "rule"].map(color);
    const states = [["added", [1, 0], 4], ["missing", [7, 4], 2.5], ["reversed", [2, 3], 4], ["undecided", [9, 3, 2, 3], 2.5]];
    return [
      { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "line-height": 1.2, "font-size": FONT, "text-opacity": named ? 1 : 0, "font-family": "system-ui, sans-serif", color: text, "background-color": box, "border-color": line, "border-width": 1 } },
      { selector: "node.group", style: { "background-color": group, "border-color": soft, "border-width": 1, "z-compound-depth": "bottom" } },
      { selector: "node.closed", style: { "background-color": box, "border-width": 3, "border-style": "double", "border-color": line } },
      { selector: "edge", style: { width: "data(width)", "line-color": line, "target-arrow-color": line, "source-arrow-color": line, "target-arrow-shape": "data(head)", "source-arrow-shape": "data(tail)", "arrow-scale": 0.9, "curve-style": "bezier", opacity: 0.85 } },
      { selector: "edge.bent", style: { "curve-style": "round-segments", "segment-weights": "data(weights)", "segment-distances": "data(distances)", "segment-radii": 14, "edge-distances": "node-position" } },
      { selector: "edge.across", style: { "curve-style": "straight", opacity: 0.4 } },
      { selector: "edge.counted", style: { label: "data(count)", "font-size": 12, "min-zoomed-font-size": 9, color: text, "text-background-color": back, "text-background-opacity": 1, "text-background-padding": 3, "text-background-shape": "round-rectangle", opacity: 1, "line-opacity": 0.6 } },
      ...states.map(([name, dashes, width]) => ({ selector: `edge.${name}`, style: { "line-color": color(name), "target-arrow-color": color(name), "source-arrow-color": color(name), "line-style": dashes[1] ? "dashed" : "solid", "line-dash-pattern": dashes, width, opacity: 1 } })),
      { selector: "edge.across[state]", style: { width: 1.5, opacity: 0.7 } },
      { selector: ".far", style: { opacity: 0.12 } },
      { selector: "node.near", style: { "border-color": mark, "border-width": 2 } },
      { selector: "edge.near", style: { opacity: 1, "z-index": 9 } },
      { selector: "edge.near[!state]", style: { "line-color": mark, "target-arrow-color": mark, "source-arrow-color": mark } },
      { selector: "node.chosen", style: { "border-color": mark, "border-width": 4 } },
      { selector: ":active", style: { "overlay-opacity": 0.08 } },
    ];
  }

  // Bends in the coordinates of cytoscape: along the line between the ends, and beside it.
  function segments(points, [ax, ay], [bx, by]) {
    const [dx, dy] = [bx - ax, by - ay];
    const length = Math.hypot(dx, dy) || 1;
    return {
      weights: points.map(([x, y]) => ((x - ax) * dx + (y - ay) * dy) / length ** 2),
      distances: points.map(([x, y]) => ((y - ay) * dx - (x - ax) * dy) / length),
    };
  }

  function nodeElement(node, place) {
    return { group: "nodes", data: { id: `n${node}`, node, label: labels[node], ...sizes[node] }, position: { x: place[0], y: place[1] } };
  }

  function edgeElement(edge, places, bends, across) {
    const own = edge.state && state.compared && edge.state !== "same" ? edge.state : "";
    // In a comparison, widths tell the differences.
    const strength = state.compared ? null : Report.size(edge);
    const data = {
      id: `e${edge.number}`, edge: edge.number, source: `n${edge.from}`, target: `n${edge.to}`, head: edge.directed ? "triangle" : "none", tail: "none",
      width: strength === null ? 1.4 : 0.8 + (3.2 * strength) / Report.largest, ...(own && { state: own }),
    };
    const classes = [own, across ? "across" : ""];
    const points = bends ?? [];
    if (points.length > 1) {
      Object.assign(data, segments(points, places.get(edge.from), places.get(edge.to)));
      classes.push("bent");
    }
    return { group: "edges", data, classes: classes.filter(Boolean).join(" ") };
  }

  const MARGIN = 24;
  let bends = []; // points of the edges in the drawing, to fit it
  const aspect = () => Math.max(0.4, Math.min(2.5, container.clientWidth / Math.max(container.clientHeight, 1)));
  const links = (own) => own.map((edge) => ({ from: edge.from, to: edge.to, weight: edge.state === "missing" ? 0 : 1 }));

  function flatElements(ids) {
    const shown = new Set(ids);
    const own = edges.filter((edge) => Report.visible(edge) && shown.has(edge.from) && shown.has(edge.to));
    let box = layout.flat(ids, links(own), (id) => sizes[id], aspect());
    const limit = (container.clientWidth - 2 * MARGIN) * (FONT / READABLE);
    if (state.mode === "near" && box.width > limit) box = layout.folded(box, (id) => sizes[id], limit);
    bends = [...box.bends.values()].flat();
    return [
      ...ids.map((id) => nodeElement(id, box.places.get(id))),
      ...own.map((edge) => edgeElement(edge, box.places, box.bends.get(`${edge.from} ${edge.to}`), false)),
    ];
  }

  // The box behind the nodes of an open group. A parent in the sense of cytoscape.js would be slow.
  function frame(group, inner) {
    const [left, right] = [Math.min(...inner.map(([x, , size]) => x - size.width / 2)), Math.max(...inner.map(([x, , size]) => x + size.width / 2))];
    const [top, bottom] = [Math.min(...inner.map(([, y, size]) => y - size.height / 2)), Math.max(...inner.map(([, y, size]) => y + size.height / 2))];
    const data = { id: `g${group}`, groupNumber: group, label: "", width: right - left + 24, height: bottom - top + 24 };
    return { group: "nodes", data, position: { x: (left + right) / 2, y: (top + bottom) / 2 }, classes: "group", grabbable: false };
  }

  // Open groups show their nodes in a box, closed ones are a node of their own.
  function groupElements(open) {
    const place = (node) => (open.has(groups.of[node]) ? node : `g${groups.of[node]}`);
    const visible = edges.filter(Report.visible);
    const boxes = new Map();
    groups.members.forEach((members, group) => {
      const inner = visible.filter((e) => groups.of[e.from] === group && groups.of[e.to] === group);
      boxes.set(group, open.has(group) ? layout.flat(members, links(inner), (id) => sizes[id], 1.9) : layout.single(`g${group}`, () => sizeOf(groups.label(group))));
    });
    const between = groups.joined((node) => groups.of[node], Report.visible);
    const whole = layout.grouped(boxes, between.map(({ from, to, edges: own }) => ({ from, to, weight: own.length })), aspect());
    bends = [...whole.bends.values()].flat();
    const elements = [];
    groups.members.forEach((members, group) => {
      const id = `g${group}`;
      if (open.has(group)) {
        elements.push(frame(group, members.map((node) => [...whole.places.get(node), sizes[node]])));
        elements.push(...members.map((node) => nodeElement(node, whole.places.get(node))));
      } else {
        const [x, y] = whole.places.get(id);
        const label = groups.label(group);
        elements.push({ group: "nodes", data: { id, groupNumber: group, label, ...sizeOf(label) }, position: { x, y }, classes: "closed" });
      }
    });
    const single = visible.filter((e) => typeof place(e.from) === "number" && typeof place(e.to) === "number");
    elements.push(...single.map((e) => edgeElement(e, whole.places, whole.bends.get(`${e.from} ${e.to}`), groups.of[e.from] !== groups.of[e.to])));
    const id = (end) => (typeof end === "number" ? `n${end}` : end);
    const merged = groups.joined(place, (e) => Report.visible(e) && !single.includes(e));
    elements.push(...merged.map(({ from, to, edges: own, both }) => ({
      group: "edges",
      data: { id: `m${from} ${to}`, source: id(from), target: id(to), head: "triangle", tail: both ? "triangle" : "none", width: 1 + 0.6 * Math.log2(own.length), count: groups.tally(own), edges: own.length, differ: groups.differences(own) },
      classes: "counted",
    })));
    return elements;
  }

  function draw() {
    if (state.view !== "network") return;
    let elements;
    if (state.mode === "near" && state.chosen !== null) elements = flatElements([...Report.near(state.chosen, state.radius)].sort((a, b) => a - b));
    else if (state.mode === "groups") elements = groupElements(groups.expanded);
    else if (Report.large) elements = groupElements(new Set(groups.members.keys()));
    else elements = flatElements([...nodes.keys()]);
    cy.elements().remove();
    // Whether names fit is known before there are elements, so that their style is computed once.
    const view = viewOf(elements.filter(({ group }) => group === "nodes").map(({ data, position }) => ({ ...data, ...position })));
    if (view) name(FONT * view.zoom >= READABLE);
    cy.add(elements);
    if (view) cy.viewport(view);
    highlight();
  }

  // Show everything; a neighbourhood with names that can be read, around its centre if it is large.
  function fit() {
    const view = viewOf(cy.nodes().map((node) => ({ ...node.data(), ...node.position() })));
    if (view) cy.viewport(view);
  }

  function viewOf(boxes) {
    cy.resize();
    const [xs, ys] = [bends.map(([x]) => x), bends.map(([, y]) => y)];
    for (const { x, y, width, height } of boxes) {
      xs.push(x - width / 2, x + width / 2);
      ys.push(y - height / 2, y + height / 2);
    }
    if (!xs.length) return null;
    const [left, right, top, bottom] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b)), ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
    const [width, height] = [cy.width(), cy.height()];
    let zoom = Math.min(1.3, (width - 2 * MARGIN) / (right - left), (height - 2 * MARGIN) / (bottom - top));
    let centre = { x: (left + right) / 2, y: (top + bottom) / 2 };
    if (state.mode === "near" && state.chosen !== null && zoom < READABLE / FONT) {
      zoom = READABLE / FONT;
      if ((bottom - top) * zoom > height) centre = { x: centre.x, y: boxes.find(({ node }) => node === state.chosen).y };
    }
    return { zoom, pan: { x: width / 2 - zoom * centre.x, y: height / 2 - zoom * centre.y } };
  }

  function highlight() {
    cy.batch(() => {
      cy.elements().removeClass("near far chosen");
      if (state.chosen === null) return;
      const own = cy.$id(`n${state.chosen}`);
      if (own.empty()) return;
      own.addClass("chosen");
      const close = own.closedNeighborhood();
      close.difference(own).addClass("near");
      if (state.mode !== "near") cy.elements().difference(close).not(".group").addClass("far");
    });
  }

  cy.on("tap", (event) => {
    if (event.target === cy) return Report.change({ chosen: null });
    const { node, groupNumber } = event.target.data();
    if (node !== undefined) return Report.change({ chosen: node === state.chosen ? null : node });
    if (groupNumber === undefined) return undefined;
    const { expanded } = groups;
    if (state.mode !== "groups") return Report.change({ chosen: null });
    if (!expanded.delete(groupNumber)) expanded.add(groupNumber);
    return draw();
  });

  const tip = document.querySelector("#tip");
  cy.on("mouseover", "node, edge", (event) => {
    const { node, edge, groupNumber, edges: own, differ } = event.target.data();
    let text = "";
    if (node !== undefined) text = `${nodes[node]}: ${Report.counted(Report.touching[node].filter((e) => e.inGraph).length, "edge")}`;
    else if (edge !== undefined) text = Report.describe(edges[edge]);
    else if (groupNumber !== undefined) text = `${Report.counted(groups.members[groupNumber].length, "variable")} around ${nodes[groups.members[groupNumber][0]]}`;
    else if (own) text = `${Report.counted(own, "edge")}${differ ? `, different from the reference: ${differ}` : ""}`;
    tip.textContent = text;
    tip.hidden = !text;
    if (node !== undefined && state.chosen === null) {
      event.target.addClass("near");
      event.target.connectedEdges().addClass("near");
    }
  });
  cy.on("mousemove", (event) => {
    const { x, y } = event.renderedPosition;
    tip.style.left = `${Math.min(x + 14, container.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(y + 14, container.clientHeight - tip.offsetHeight - 4)}px`;
  });
  cy.on("mouseout", "node, edge", () => {
    tip.hidden = true;
    if (state.chosen === null) cy.elements(".near").removeClass("near");
  });

  function zoom(factor) {
    if (!factor) return fit();
    return cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: container.clientWidth / 2, y: container.clientHeight / 2 } });
  }

  function restyle() {
    cy.style().fromJson(style()).update();
    draw();
  }

  Report.listen((what) => {
    if ("mode" in what || "radius" in what || "least" in what || "compared" in what || ("view" in what && what.view === "network")) draw();
    else if ("chosen" in what && state.mode === "near" && state.chosen !== null) draw();
    else if ("chosen" in what) highlight();
  });

  // Whether boxes have their names in them; labels.js shows names where boxes are small.
  function name(wanted) {
    if (named === wanted) return;
    named = wanted;
    cy.style().fromJson(style()).update();
  }

  Object.assign(Report.network, { cy, draw, fit, zoom, restyle, name, font: FONT, readable: READABLE });
})();
