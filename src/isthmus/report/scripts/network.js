"use strict";
// The drawing of the network, by cytoscape.js.
(() => {
  const { nodes, edges, state, groups, layout, routes, marks, color } = Report;
  const FONT = 13;
  const READABLE = 11; // pixels of the smallest names in boxes; below, nodes are dots and labels.js writes names
  const DOT = 9; // pixels
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
    return { width: Math.max(width + 14, 34), height: lines.length * FONT * 1.25 + 8 };
  }

  const labels = nodes.map(broken);
  const sizes = labels.map(sizeOf);
  const container = document.querySelector("#drawing");
  const tip = document.querySelector("#tip");
  let detail = 1; // the zoom that the style is made for
  const cy = cytoscape({ container, style: style(), minZoom: 0.02, maxZoom: 4, autounselectify: true, boxSelectionEnabled: false });

  const named = () => FONT * detail >= READABLE;

  function style() {
    const [text, box, line, mark, back, group, soft] = ["text", "box", "line", "mark", "back", "group", "rule"].map(color);
    const px = (pixels) => pixels / Math.min(detail, 1);
    const boxes = { shape: "round-rectangle", width: "data(width)", height: "data(height)", "text-opacity": 1 };
    const dots = { shape: "ellipse", width: DOT / detail, height: DOT / detail, "text-opacity": 0 };
    const far = { opacity: 0.2 };
    return [
      { selector: "node", style: { ...(FONT * detail >= READABLE ? boxes : dots), label: "data(label)", "text-wrap": "wrap", "text-valign": "center", "line-height": 1.2, "font-size": FONT, "font-family": "system-ui, sans-serif", color: text, "background-color": box, "border-color": line, "border-width": px(1) } },
      { selector: "node.group", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", "background-color": group, "border-color": soft, "border-width": 1, "z-compound-depth": "bottom" } },
      { selector: "node.closed", style: { "border-width": px(3), "border-style": "double" } },
      ...marks.styles(detail),
      { selector: "edge.straight", style: { "curve-style": "straight" } },
      { selector: "edge.bent", style: { "curve-style": "unbundled-bezier", "control-point-weights": "data(weights)", "control-point-distances": "data(distances)", "edge-distances": "node-position" } },
      { selector: "edge.routed, edge.radial", style: { "source-endpoint": "data(start)", "target-endpoint": "data(stop)" } },
      { selector: "edge.routed", style: { "edge-distances": "endpoints" } },
      { selector: "edge.counted", style: { "source-label": "data(count)", "source-text-offset": "data(along)", "font-size": px(12), color: text, "text-background-color": back, "text-background-opacity": 1, "text-background-padding": px(3), "text-background-shape": "round-rectangle" } },
      { selector: ".far", style: far },
      { selector: "node.near", style: { "border-color": mark, "border-width": px(2) } },
      { selector: "edge.near", style: { opacity: 1, "z-index": 9 } },
      { selector: "edge.near[!state]", style: marks.colored(mark) },
      { selector: "node.chosen", style: { "border-color": mark, "border-width": px(4) } },
      { selector: "edge.chosen", style: { opacity: 1, "z-index": 9, "underlay-color": mark, "underlay-opacity": 0.3, "underlay-padding": px(5) } },
      { selector: ":active", style: { "overlay-opacity": 0.08 } },
    ];
  }

  // Sizes that follow the zoom change in steps, so that moving stays quick.
  function adapt(zoom, always = false) {
    const stays = FONT * zoom >= READABLE === named() && Math.abs(Math.log(zoom / detail)) < 0.2;
    if (stays && !always) return;
    detail = zoom;
    cy.style().fromJson(style()).update();
  }
  cy.on("zoom", () => adapt(cy.zoom()));

  // Bends in the coordinates of cytoscape: along the line between the ends, and beside it.
  function segments(points, [ax, ay], [bx, by]) {
    const [dx, dy] = [bx - ax, by - ay];
    const length = Math.hypot(dx, dy) || 1;
    return {
      weights: points.map(([x, y]) => ((x - ax) * dx + (y - ay) * dy) / length ** 2),
      distances: points.map(([x, y]) => ((y - ay) * dx - (x - ax) * dy) / length),
    };
  }

  // A route between two places, as data of an edge.
  function along(route, from, to) {
    const relative = ([x, y], [cx, cy]) => `${x - cx}px ${y - cy}px`;
    return { ...segments(route.points, route.start, route.stop), start: relative(route.start, from), stop: relative(route.stop, to) };
  }

  function nodeElement(node, place, own = sizes[node]) {
    return { group: "nodes", data: { id: `n${node}`, node, label: labels[node], ...own }, position: { x: place[0], y: place[1] } };
  }

  const dense = edges.length > Math.max(40, 2 * nodes.length);
  const rank = new Map([...edges].sort((a, b) => (Report.size(a) ?? 0) - (Report.size(b) ?? 0)).map((edge, i, { length }) => [edge, (i + 1) / length]));

  // Weak edges of dense networks fade; their arrowheads stay, and so do edges without any.
  const strengthFade = (edge) => (dense ? Math.max(edge.mark === "open" ? 0.7 : 0.2, 0.2 + 0.75 * rank.get(edge) ** 3) : 0.9);

  // Along a route, or to the dots that stand for names that are too small.
  function edgeElement(edge, places, { route = null, dots = null, fade = strengthFade(edge) }) {
    const own = edge.state && state.compared && edge.state !== "same" ? edge.state : "";
    // In a comparison, widths tell the differences.
    const strength = state.compared ? null : Report.size(edge);
    const { head, tail, fill, tailFill = "filled" } = marks.of(edge);
    const data = {
      id: `e${edge.number}`, edge: edge.number, source: `n${edge.from}`, target: `n${edge.to}`, head, tail, fill, tailFill, mark: edge.mark,
      fade,
      width: strength === null ? 1.4 : 0.8 + (2.4 * strength) / Report.largest, ...(own && { state: own }),
    };
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (route) Object.assign(data, along(route, from, to));
    else Object.assign(data, { start: dots.start, stop: dots.stop }, segments(dots.points, from, to));
    const curve = route ? "bent routed" : `radial ${dots.points.length ? "bent" : "straight"}`;
    return { group: "edges", data, classes: [own, curve].filter(Boolean).join(" ") };
  }

  const MARGIN = matchMedia("(max-width: 40rem)").matches ? 12 : 24;
  const CLOSEST = 1.5; // zoom of small drawings
  const aspect = () => Math.max(0.4, Math.min(2.5, container.clientWidth / Math.max(container.clientHeight, 1)));
  const room = () => [container.clientWidth, container.clientHeight].map((pixels) => (pixels - 2 * MARGIN) / CLOSEST); // at the closest zoom
  const links = (own) => own.map((edge) => ({ from: edge.from, to: edge.to, weight: edge.state === "missing" ? 0 : 1 }));
  const size = (id) => sizes[id];

  function shownEdges(ids) {
    const shown = new Set(ids);
    return edges.filter((edge) => Report.visible(edge) && shown.has(edge.from) && shown.has(edge.to));
  }

  function drawn(elements, bends = []) {
    return { elements, view: viewOf(elements.filter(({ group }) => group === "nodes").map(({ data, position }) => ({ ...data, ...position })), bends) };
  }

  // The bends that a smooth curve needs. One is where dagre crosses a layer: a straight line does as well.
  function smooth(points) {
    if (points.length < 2) return [];
    const [[ax, ay], [bx, by]] = [points[0], points.at(-1)];
    return points.filter(([x, y], i) => i === 0 || i === points.length - 1 || Math.abs((x - ax) * (by - ay) - (y - ay) * (bx - ax)) > 20 * Math.hypot(bx - ax, by - ay));
  }

  // Edges between dots, 22 pixels of each in the direction of its head.
  const toDots = (own, { places, bends }, { view }) => routes.radial(own, places, ({ from, to }) => smooth(bends.get(`${from} ${to}`) ?? []), 22 / view.zoom);

  // Boxes that have room for all arrowheads.
  const taller = (heads, id, step = 5, own = sizes[id]) => ({ ...own, height: Math.max(own.height, routes.room(heads(id), step)) });
  const wider = (heads, id) => ({ ...sizes[id], width: Math.max(sizes[id].width, routes.room(heads(id), routes.HEAD) + 12) });

  function flatElements(ids) {
    const own = shownEdges(ids);
    const heads = routes.heads(own);
    const wide = (id) => wider(heads, id);
    const box = layout.stretched(layout.flat(ids, links(own), wide, aspect()), wide, ...room());
    const boxes = ids.map((id) => nodeElement(id, box.places.get(id), wide(id)));
    const made = drawn(boxes, [...box.bends.values()].flat());
    const way = readable(made) ? routes.down(own, box.places, box.bends, wide) : null;
    const dots = way ? null : toDots(own, box, made);
    const look = (edge) => (way ? { route: way(edge) } : { dots: dots(edge) });
    made.elements.push(...own.map((edge) => edgeElement(edge, box.places, look(edge))));
    return made;
  }

  // Edges inside of a ring of names, with this much room for each arrowhead.
  function ringElements(ids, step) {
    const own = shownEdges(ids);
    const heads = routes.heads(own);
    const tall = (id) => taller(heads, id, step);
    const box = layout.ring(ids, links(own), tall, aspect());
    const way = routes.across(own, box, tall);
    return drawn([...ids.map((id) => nodeElement(id, box.places.get(id), tall(id))), ...own.map((edge) => edgeElement(edge, box.places, { route: way(edge) }))]);
  }

  // A variable between its parents and its children; edges among those are faint.
  function aroundElements(centre) {
    const ids = [...Report.near(centre, state.radius)].filter((id) => id !== centre);
    const own = shownEdges([centre, ...ids]);
    const touches = (edge) => edge.from === centre || edge.to === centre;
    const link = new Map(own.filter(touches).map((edge) => [Report.other(edge, centre), edge]));
    const before = ids.filter((id) => link.get(id)?.directed && link.get(id)?.to === centre);
    const after = ids.filter((id) => link.get(id)?.directed && link.get(id)?.from === centre);
    // Neighbours without direction, and spouses, stand where there is room.
    for (const id of ids.filter((one) => !before.includes(one) && !after.includes(one))) (before.length < after.length ? before : after).push(id);
    const [wide, high] = [container.clientWidth, container.clientHeight].map((pixels) => (pixels - 2 * MARGIN) * (FONT / READABLE));
    const most = Math.max(before.length, after.length);
    const margin = own.every(touches) ? 0 : 100; // for what bulges
    let roomy = (id) => (id === centre ? taller(() => most, id, most > 20 ? 5 : routes.HEAD) : sizes[id]);
    let box = layout.around(centre, before, after, roomy, wide - margin, high);
    if (box.narrow) box = layout.around(centre, before, after, (roomy = size), wide - margin / 2, high);
    const way = routes.around(own, centre, box, roomy);
    const arcs = own.filter((edge) => !touches(edge)).flatMap((edge) => way(edge).points);
    return drawn([
      ...[centre, ...ids].map((id) => nodeElement(id, box.places.get(id), roomy(id))),
      ...own.map((edge) => edgeElement(edge, box.places, { route: way(edge), fade: touches(edge) ? 0.9 : 0.3 })),
    ], arcs);
  }

  // The box behind the nodes of an open group. A parent in the sense of cytoscape.js would be slow.
  function frame(group, inner) {
    const [left, right] = [Math.min(...inner.map(([x, , own]) => x - own.width / 2)), Math.max(...inner.map(([x, , own]) => x + own.width / 2))];
    const [top, bottom] = [Math.min(...inner.map(([, y, own]) => y - own.height / 2)), Math.max(...inner.map(([, y, own]) => y + own.height / 2))];
    const data = { id: `g${group}`, groupNumber: group, label: "", width: right - left + 16, height: bottom - top + 16 };
    return { group: "nodes", data, position: { x: (left + right) / 2, y: (top + bottom) / 2 }, classes: "group", grabbable: false };
  }

  const closedNode = (id, [x, y], own) => ({ group: "nodes", data: { id, groupNumber: groupOf(id), label: groups.label(groupOf(id)), ...own }, position: { x, y }, classes: "closed" });
  const groupOf = (id) => Number(id.slice(1));
  const around = ([x, y], { width, height }) => [x - width / 2, y - height / 2, x + width / 2, y + height / 2];

  // Points along the curve that cytoscape.js draws, and their distances from its start.
  function sampled(path) {
    const middle = ([ax, ay], [bx, by]) => [(ax + bx) / 2, (ay + by) / 2];
    const [start, stop] = [path[0], path.at(-1)];
    const controls = path.length > 2 ? path.slice(1, -1) : [middle(start, stop)];
    const knots = [start, ...controls.slice(1).map((point, i) => middle(controls[i], point)), stop];
    const points = [[...start, 0]];
    controls.forEach((control, i) => {
      for (let step = 1; step <= 20; step += 1) {
        const t = step / 20;
        const [x, y] = [0, 1].map((k) => (1 - t) ** 2 * knots[i][k] + 2 * t * (1 - t) * control[k] + t ** 2 * knots[i + 1][k]);
        const [px, py, far] = points.at(-1);
        points.push([x, y, far + Math.hypot(x - px, y - py)]);
      }
    });
    return points;
  }

  // How far along its path the number of an edge stands: near the middle, on no box and no other number.
  function free(path, text, taken) {
    const points = sampled(path);
    const size = { width: pen.measureText(text).width + 8, height: 20 };
    const at = (share) => points.find(([, , far]) => far >= share * points.at(-1)[2]);
    const clear = (point) => { const [left, top, right, bottom] = around(point, size); return !taken.some((t) => t[0] < right && left < t[2] && t[1] < bottom && top < t[3]); };
    const place = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18].map(at).find(clear) ?? at(0.5);
    taken.push(around(place, size));
    return place[2];
  }

  // Lines with large numbers come last, so that no other crosses them out.
  const byCount = (merged) => merged.sort((a, b) => a.edges.length - b.edges.length);

  // An edge that stands for several, along a path or a route.
  function mergedEdge({ from, to, edges: own, heads }, path, taken, route = null) {
    const count = groups.tally(own);
    return {
      group: "edges",
      data: { id: `m${from} ${to}`, source: from, target: to, head: heads.has(to) ? "triangle" : "none", tail: heads.has(from) ? "triangle" : "none", fill: "filled", tailFill: "filled", mark: heads.size ? "determined" : "open", fade: 0.6, width: 1 + 0.6 * Math.log2(own.length), count, edges: own.length, undetermined: groups.undetermined(own), differ: groups.differences(own), along: count ? free(path, count, taken) : 0, ...route },
      classes: `counted ${route ? "bent routed" : "straight"}`,
    };
  }

  // Groups on two sides of their edges: names need less room than on an ellipse.
  function ringOfGroups(ids, own) {
    const heads = routes.heads(own);
    const tall = (id) => taller(heads, id, 5, sizeOf(groups.label(groupOf(id))));
    const box = layout.ring(ids, joint(own), tall, aspect());
    const way = routes.across(own, box, tall);
    const taken = ids.map((id) => around(box.places.get(id), tall(id)));
    const lines = own.map((edge) => {
      const route = way(edge);
      return mergedEdge(edge, [route.start, ...route.points, route.stop], taken, along(route, box.places.get(edge.from), box.places.get(edge.to)));
    });
    return drawn([...ids.map((id) => closedNode(id, box.places.get(id), tall(id))), ...lines]);
  }

  const joint = (between) => between.map(({ from, to, edges: own }) => ({ from, to, weight: own.length }));

  // Each group is one box, in layers or on an ellipse if names can be read then.
  function groupElements() {
    const ids = groups.members.map((_, group) => `g${group}`);
    const own = byCount(groups.joined((node) => `g${groups.of[node]}`, Report.visible));
    const extent = (id) => sizeOf(groups.label(groupOf(id)));
    const boxes = new Map(ids.map((id) => [id, layout.single(id, extent)]));
    const { places } = layout.stretched(layout.grouped(boxes, joint(own), aspect()), extent, ...room());
    // The border of one box, on the line to the centre of another.
    const border = (a, b) => {
      const [[ax, ay], [bx, by]] = [places.get(a), places.get(b)];
      const share = Math.min(0.5, extent(a).width / 2 / Math.abs(bx - ax || 1e-9), extent(a).height / 2 / Math.abs(by - ay || 1e-9));
      return [ax + share * (bx - ax), ay + share * (by - ay)];
    };
    const taken = ids.map((id) => around(places.get(id), extent(id)));
    const lines = own.map((edge) => mergedEdge(edge, [border(edge.from, edge.to), border(edge.to, edge.from)], taken));
    const made = drawn([...ids.map((id) => closedNode(id, places.get(id), extent(id))), ...lines]);
    if (readable(made)) return made;
    const ring = ringOfGroups(ids, own);
    return readable(ring) ? ring : made;
  }

  // The nodes of each group in a frame.
  function openElements() {
    const own = edges.filter(Report.visible);
    const boxes = new Map(groups.members.map((members, group) => [group, layout.flat(members, links(shownEdges(members)), size, 1.6)]));
    const box = layout.grouped(boxes, joint(groups.joined((node) => groups.of[node], Report.visible)), aspect());
    const { places, bends } = box;
    const made = drawn([
      ...groups.members.map((members, group) => frame(group, members.map((node) => [...places.get(node), sizes[node]]))),
      ...everything.map((node) => nodeElement(node, places.get(node))),
    ], [...bends.values()].flat());
    const dots = toDots(own, box, made);
    made.elements.push(...own.map((edge) => edgeElement(edge, places, { dots: dots(edge), fade: groupFade(edge) })));
    return made;
  }

  // Edges between groups are fainter than those inside, unless they lack an arrowhead.
  const groupFade = (edge) => strengthFade(edge) * (groups.of[edge.from] === groups.of[edge.to] || edge.mark === "open" ? 1 : 0.5);

  const everything = [...nodes.keys()];
  const zoomOf = ({ view }) => view?.zoom ?? 0;
  const readable = (made) => zoomOf(made) * FONT >= READABLE;

  // Variables and the edges among them: on a ring if they are dense and their names can be read then; else in layers.
  function partElements(ids) {
    if (ids.length > 16 && ids.length <= 64 && shownEdges(ids).length > 2 * ids.length) {
      const ring = [5, routes.HEAD / 3].map((step) => ringElements(ids, step)).find(readable);
      if (ring) return ring;
    }
    return flatElements(ids);
  }

  // The whole network at once if its names can be read then; else in communities.
  function wholeElements() {
    const flat = nodes.length <= 150 ? partElements(everything) : null;
    if (nodes.length <= 12 || (flat && readable(flat))) return flat;
    const parts = openElements();
    return flat && zoomOf(flat) > zoomOf(parts) ? flat : parts;
  }

  let fitted = null;
  function draw() {
    if (state.view !== "network") return;
    cy.resize();
    const near = state.mode === "near" && state.chosen !== null;
    let made;
    if (near && state.radius <= 1) made = aroundElements(state.chosen);
    else if (near) made = flatElements([...Report.near(state.chosen, state.radius)].sort((a, b) => a - b));
    else if (state.mode === "groups") made = state.community === null ? groupElements() : partElements(groups.members[state.community]);
    else made = wholeElements();
    fitted = made.view;
    cy.elements().remove();
    tip.hidden = true; // it was about one of them
    // The zoom is known before there are elements, so that their style is computed once.
    if (fitted) adapt(fitted.zoom, true);
    cy.add(made.elements);
    if (fitted) cy.viewport(fitted);
    highlight();
    if (named() !== state.named) Report.change({ named: named() });
  }

  // Show everything; a neighbourhood with names that can be read, around its centre if it is large.
  function fit() {
    const view = viewOf(cy.nodes().map((node) => ({ ...node.data(), ...node.position() })), []);
    if (view) cy.viewport(view);
  }

  function viewOf(boxes, bends) {
    cy.resize();
    const [xs, ys] = [bends.map(([x]) => x), bends.map(([, y]) => y)];
    for (const { x, y, width, height } of boxes) {
      xs.push(x - width / 2, x + width / 2);
      ys.push(y - height / 2, y + height / 2);
    }
    if (!xs.length) return null;
    const [left, right, top, bottom] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b)), ys.reduce((a, b) => Math.min(a, b)), ys.reduce((a, b) => Math.max(a, b))];
    const [width, height] = [cy.width(), cy.height()];
    let zoom = Math.min(CLOSEST, (width - 2 * MARGIN) / (right - left), (height - 2 * MARGIN) / (bottom - top));
    let centre = { x: (left + right) / 2, y: (top + bottom) / 2 };
    if (state.mode === "near" && state.chosen !== null && zoom < READABLE / FONT) {
      zoom = READABLE / FONT;
      // Around the chosen one, as far as there is something to see.
      const half = (height / 2 - MARGIN) / zoom;
      const { y } = boxes.find(({ node }) => node === state.chosen);
      if (bottom - top > 2 * half) centre = { x: centre.x, y: Math.max(top + half, Math.min(bottom - half, y)) };
    }
    return { zoom, pan: { x: width / 2 - zoom * centre.x, y: height / 2 - zoom * centre.y } };
  }

  function focus(own) {
    const close = own.closedNeighborhood();
    close.difference(own).addClass("near");
    cy.elements().difference(close).not(".group").addClass("far");
  }

  function highlight() {
    cy.batch(() => {
      cy.elements().removeClass("near far chosen");
      if (state.edge !== null) return cy.$id(`e${state.edge}`).addClass("chosen");
      const own = state.chosen === null ? cy.collection() : cy.$id(`n${state.chosen}`);
      if (own.empty()) return undefined;
      own.addClass("chosen");
      return state.mode === "near" ? undefined : focus(own);
    });
  }

  cy.on("tap", (event) => {
    if (event.target === cy) return Report.change({ chosen: null, edge: null, ...(state.mode === "near" && { chosen: state.chosen }) });
    const { node, edge, groupNumber } = event.target.data();
    if (node !== undefined) return Report.change({ chosen: node === state.chosen && state.mode !== "near" ? null : node, edge: null });
    if (edge !== undefined) return Report.change({ edge });
    if (groupNumber === undefined) return undefined;
    return Report.change({ chosen: null, edge: null, ...(state.mode === "groups" && { community: groupNumber }) });
  });

  cy.on("mouseover", "node, edge", (event) => {
    const { node, edge, groupNumber, edges: own, undetermined, differ } = event.target.data();
    let text = "";
    if (node !== undefined) text = `${nodes[node]}: ${Report.counted(Report.touching[node].filter((e) => e.inGraph).length, "edge")}`;
    else if (edge !== undefined) text = Report.describe(edges[edge]);
    else if (groupNumber !== undefined) text = `${Report.counted(groups.members[groupNumber].length, "variable")} around ${nodes[groups.members[groupNumber][0]]}`;
    else if (own) text = `${Report.counted(own, "edge")}${undetermined ? `, direction not determined: ${undetermined}` : ""}${differ ? `, different from the reference: ${differ}` : ""}`;
    tip.textContent = text;
    tip.hidden = !text;
    if (edge !== undefined) event.target.addClass("near");
    if (node !== undefined && node !== state.chosen && (state.chosen === null || state.mode === "near")) cy.batch(() => focus(event.target));
  });
  cy.on("mousemove", (event) => {
    const { x, y } = event.renderedPosition;
    tip.style.left = `${Math.min(x + 14, container.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(y + 14, container.clientHeight - tip.offsetHeight - 4)}px`;
  });
  cy.on("mouseout", "node, edge", () => {
    tip.hidden = true;
    highlight();
  });

  function zoom(factor) {
    if (!factor) return fit();
    return cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: container.clientWidth / 2, y: container.clientHeight / 2 } });
  }

  function restyle() {
    adapt(detail, true);
    draw();
  }

  Report.listen((what) => {
    if ("mode" in what || "community" in what || "radius" in what || "least" in what || "compared" in what || ("view" in what && what.view === "network")) draw();
    else if ("chosen" in what && state.mode === "near" && state.chosen !== null) draw();
    else if ("chosen" in what || "edge" in what) highlight();
  });

  // Another drawing fits another shape of the screen better, unless someone has moved this one.
  function resize() {
    const { zoom: level } = fitted ?? {};
    if (level !== undefined && Math.abs(level - cy.zoom()) < 1e-9) draw();
    else fit();
  }

  Object.assign(Report.network, { cy, draw, fit, zoom, resize, restyle, adapt, named, font: FONT, readable: READABLE });
})();
