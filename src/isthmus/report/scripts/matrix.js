"use strict";
// The second view: rows are causes, columns are effects, in the order of the communities.
Report.matrix = (() => {
  const { nodes, edges, state, groups, color } = Report;
  const root = document.querySelector("#matrix");
  const scroller = root.querySelector("#scroller");
  const extent = root.querySelector("#extent");
  const canvas = root.querySelector("canvas");
  const tip = document.querySelector("#tip");
  const order = groups.members.flat();
  const place = new Map(order.map((node, i) => [node, i]));
  const cells = new Map();
  for (const edge of edges) {
    cells.set(`${edge.from} ${edge.to}`, edge);
    if (!edge.directed) cells.set(`${edge.to} ${edge.from}`, edge);
  }
  const SIGNS = { added: "+", missing: "−", reversed: "↔", undecided: "?" };
  let cell = 14;
  let margin = 90;

  function measure() {
    const pen = canvas.getContext("2d");
    pen.font = "12px system-ui, sans-serif";
    const widest = Math.max(...nodes.map((name) => pen.measureText(name).width), 20);
    margin = Math.max(84, Math.min(widest + 14, 0.3 * Math.min(root.clientWidth, root.clientHeight) + 20));
    const room = Math.min(root.clientWidth, root.clientHeight) - margin - 12;
    cell = Math.max(14, Math.min(56, room / nodes.length));
    extent.style.width = extent.style.height = `${margin + nodes.length * cell + 8}px`;
    const scale = window.devicePixelRatio || 1;
    canvas.width = scroller.clientWidth * scale;
    canvas.height = scroller.clientHeight * scale;
    canvas.style.width = `${scroller.clientWidth}px`;
    canvas.style.height = `${scroller.clientHeight}px`;
  }

  function draw() {
    if (state.view !== "matrix") return;
    const pen = canvas.getContext("2d");
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.width / scale, canvas.height / scale];
    const [ox, oy] = [margin - scroller.scrollLeft, margin - scroller.scrollTop];
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const range = (offset, size) => [Math.max(0, Math.floor((margin - offset) / cell)), Math.min(nodes.length, Math.ceil((size - offset) / cell))];
    const [firstColumn, lastColumn] = range(ox, width);
    const [firstRow, lastRow] = range(oy, height);
    pen.save();
    pen.beginPath();
    pen.rect(margin, margin, width, height);
    pen.clip();
    grid(pen, ox, oy, width, height);
    for (let r = firstRow; r < lastRow; r += 1) {
      for (let c = firstColumn; c < lastColumn; c += 1) {
        const edge = cells.get(`${order[r]} ${order[c]}`);
        if (edge && Report.visible(edge)) paint(pen, edge, ox + c * cell, oy + r * cell);
      }
    }
    pen.restore();
    pen.font = `${Math.min(12, cell - 2)}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    const mark = color("mark");
    const text = color("text");
    for (let i = firstRow; i < lastRow; i += 1) name(pen, order[i], margin - 6, oy + (i + 0.5) * cell, 0);
    for (let i = firstColumn; i < lastColumn; i += 1) name(pen, order[i], ox + (i + 0.5) * cell, margin - 6, Math.PI / 2);
    pen.fillStyle = color("back");
    pen.fillRect(0, 0, margin - 4, margin - 4);
    pen.fillStyle = color("soft");
    pen.textAlign = "left";
    pen.font = "11px system-ui, sans-serif";
    pen.fillText("row → column", 6, 12, margin - 12);

    function name(brush, node, x, y, turn) {
      brush.save();
      brush.translate(x, y);
      brush.rotate(turn);
      brush.textAlign = "right";
      brush.fillStyle = node === state.chosen ? mark : text;
      if (node === state.chosen) brush.font = `bold ${brush.font}`;
      brush.fillText(short(nodes[node], brush), 0, 0);
      brush.restore();
    }
  }

  function short(name, pen) {
    if (pen.measureText(name).width <= margin - 10) return name;
    let kept = name;
    while (kept.length > 1 && pen.measureText(`${kept}…`).width > margin - 10) kept = kept.slice(0, -1);
    return `${kept}…`;
  }

  function grid(pen, ox, oy, width, height) {
    pen.fillStyle = color("group");
    let start = 0;
    for (const members of groups.members) {
      pen.fillRect(ox + start * cell, oy + start * cell, members.length * cell, members.length * cell);
      start += members.length;
    }
    pen.strokeStyle = color("rule");
    pen.lineWidth = 0.5;
    pen.beginPath();
    for (let i = 0; i <= nodes.length; i += 1) {
      pen.moveTo(ox + i * cell, oy);
      pen.lineTo(ox + i * cell, Math.min(oy + nodes.length * cell, height));
      pen.moveTo(ox, oy + i * cell);
      pen.lineTo(Math.min(ox + nodes.length * cell, width), oy + i * cell);
    }
    pen.stroke();
    if (state.chosen === null) return;
    pen.globalAlpha = 0.18;
    pen.fillStyle = color("mark");
    pen.fillRect(ox, oy + place.get(state.chosen) * cell, nodes.length * cell, cell);
    pen.fillRect(ox + place.get(state.chosen) * cell, oy, cell, nodes.length * cell);
    pen.globalAlpha = 1;
  }

  function paint(pen, edge, x, y) {
    const different = edge.state && state.compared && edge.state !== "same";
    const size = Report.size(edge);
    pen.fillStyle = color(different ? edge.state : "accent");
    pen.globalAlpha = different || size === null ? 1 : 0.25 + (0.75 * size) / Report.largest;
    pen.fillRect(x + 1, y + 1, cell - 2, cell - 2);
    pen.globalAlpha = 1;
    if (!different) return;
    // A sign for those who cannot tell the colours apart.
    pen.fillStyle = color("back");
    pen.font = `bold ${Math.min(16, cell - 3)}px system-ui, sans-serif`;
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    pen.fillText(SIGNS[edge.state], x + cell / 2, y + cell / 2 + 0.5);
  }

  function under(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const index = (at, scroll) => (at < margin ? null : order[Math.floor((at - margin + scroll) / cell)]);
    return { x, y, row: index(y, scroller.scrollTop), column: index(x, scroller.scrollLeft) };
  }

  scroller.addEventListener("scroll", draw);
  scroller.addEventListener("click", (event) => {
    const { row, column } = under(event);
    const node = row ?? column;
    if (node !== undefined && node !== null) Report.change({ chosen: node });
  });
  scroller.addEventListener("mousemove", (event) => {
    const { x, y, row, column } = under(event);
    const edge = cells.get(`${row} ${column}`);
    tip.textContent = edge && Report.visible(edge) ? Report.describe(edge) : "";
    tip.hidden = !tip.textContent;
    tip.style.left = `${Math.min(x + 14, root.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(y + 14, root.clientHeight - tip.offsetHeight - 4)}px`;
  });
  scroller.addEventListener("mouseleave", () => { tip.hidden = true; });

  function show() {
    root.hidden = state.view !== "matrix";
    if (root.hidden) return;
    measure();
    draw();
  }
  Report.listen((what) => {
    if ("view" in what) show();
    if ("chosen" in what && state.chosen !== null && state.view === "matrix") {
      const at = place.get(state.chosen) * cell;
      const away = (from, size) => at < from || at > from + size - margin - cell;
      if (away(scroller.scrollTop, scroller.clientHeight)) scroller.scrollTop = at - scroller.clientHeight / 3;
      if (away(scroller.scrollLeft, scroller.clientWidth)) scroller.scrollLeft = at - scroller.clientWidth / 3;
    }
    draw();
  });
  return { draw, show };
})();
