"use strict";
// Positions: dagre draws each connected part in layers, parts are packed into rows.
Report.layout = (() => {
  const GAP = 28;

  function components(ids, links) {
    const linked = new Map(ids.map((id) => [id, []]));
    for (const { from, to } of links) {
      linked.get(from).push(to);
      linked.get(to).push(from);
    }
    const seen = new Set();
    const parts = [];
    for (const id of ids) {
      if (seen.has(id)) continue;
      const part = [id];
      seen.add(id);
      for (let i = 0; i < part.length; i += 1) {
        for (const next of linked.get(part[i])) {
          if (!seen.has(next)) part.push(next);
          seen.add(next);
        }
      }
      parts.push(part);
    }
    return parts;
  }

  function layered(ids, links, size, aspect, direction) {
    const graph = new dagre.graphlib.Graph({ multigraph: false });
    graph.setGraph({ rankdir: direction, nodesep: 16, ranksep: 42, edgesep: 10, ranker: ids.length > 150 ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const id of ids) graph.setNode(id, { ...size(id) });
    for (const { from, to, weight } of links) graph.setEdge(from, to, { weight: weight ?? 1 });
    dagre.layout(graph);
    const box = new Box();
    // Layers of a flat drawing are moved apart, so that edges are steeper and more names fit.
    const { width: wide, height: high } = graph.graph();
    const stretch = direction === "TB" ? Math.min(3, Math.max(1, wide / (1.2 * aspect * high))) : 1;
    for (const id of ids) {
      const { x, y, width, height } = graph.node(id);
      box.add(id, x, stretch * y, width, height);
    }
    for (const { from, to } of links) {
      const bends = (graph.edge(from, to)?.points ?? []).slice(1, -1).map(({ x, y }) => [x, stretch * y]);
      for (const [x, y] of bends) box.cover(x, y, 0, 0);
      box.bends.set(`${from} ${to}`, bends);
    }
    return box;
  }

  class Box {
    constructor() {
      this.places = new Map();
      this.bends = new Map();
      this.left = this.top = Infinity;
      this.right = this.bottom = -Infinity;
    }

    add(id, x, y, width, height) {
      this.places.set(id, [x, y]);
      this.cover(x, y, width, height);
    }

    cover(x, y, width, height) {
      this.left = Math.min(this.left, x - width / 2);
      this.right = Math.max(this.right, x + width / 2);
      this.top = Math.min(this.top, y - height / 2);
      this.bottom = Math.max(this.bottom, y + height / 2);
    }

    get width() { return this.right - this.left; }

    get height() { return this.bottom - this.top; }
  }

  // Boxes side by side in rows, as wide as fits the screen best; returns positions and bends.
  function pack(boxes, aspect) {
    const area = boxes.reduce((sum, box) => sum + (box.width + GAP) * (box.height + GAP), 0);
    const widest = Math.max(0, ...boxes.map((box) => box.width));
    const tries = [0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2].map((factor) => rows(boxes, Math.max(Math.sqrt(area * aspect) * factor, widest)));
    return tries.reduce((best, next) => (fit(next, aspect) > 1.001 * fit(best, aspect) ? next : best));
  }

  const fit = (box, aspect) => Math.min(aspect / Math.max(box.width, 1), 1 / Math.max(box.height, 1));

  function rows(boxes, limit) {
    const whole = new Box();
    let [x, y, tall] = [0, 0, 0];
    for (const box of boxes) {
      if (x > 0 && x + box.width > limit) [x, y, tall] = [0, y + tall + GAP, 0];
      const [dx, dy] = [x - box.left, y - box.top];
      for (const [id, [px, py]] of box.places) whole.places.set(id, [px + dx, py + dy]);
      for (const [key, points] of box.bends) whole.bends.set(key, points.map(([px, py]) => [px + dx, py + dy]));
      whole.left = Math.min(whole.left, x);
      whole.top = Math.min(whole.top, y);
      whole.right = Math.max(whole.right, x + box.width);
      whole.bottom = Math.max(whole.bottom, y + box.height);
      x += box.width + GAP;
      tall = Math.max(tall, box.height);
    }
    if (!boxes.length) Object.assign(whole, { left: 0, right: 0, top: 0, bottom: 0 });
    return whole;
  }

  function single(id, size) {
    const box = new Box();
    const { width, height } = size(id);
    box.add(id, 0, 0, width, height);
    return box;
  }

  // Layers from top to bottom; nodes without edges come last.
  function flat(ids, links, size, aspect, direction = "TB") {
    const parts = components(ids, links);
    if (links.length) parts.sort((a, b) => b.length - a.length);
    const boxes = parts.map((part) => {
      if (part.length === 1) return single(part[0], size);
      const own = new Set(part);
      return layered(part, links.filter(({ from }) => own.has(from)), size, aspect, direction);
    });
    return pack(boxes, aspect);
  }

  // Layers that are too wide are broken into rows, so that names can be large enough to read.
  function folded(box, size, limit) {
    const layers = new Map();
    for (const [id, [, y]] of box.places) layers.set(Math.round(y), [...(layers.get(Math.round(y)) ?? []), id]);
    const whole = new Box();
    let top = 0;
    for (const level of [...layers.keys()].sort((a, b) => a - b)) {
      const ids = layers.get(level).sort((a, b) => box.places.get(a)[0] - box.places.get(b)[0]);
      const total = ids.reduce((sum, id) => sum + size(id).width + 16, 0);
      const most = Math.min(total / Math.ceil(total / limit) + 40, limit);
      let row = [];
      let width = 0;
      const place = () => {
        const height = Math.max(...row.map((id) => size(id).height));
        let x = -width / 2;
        for (const id of row) {
          const own = size(id);
          whole.add(id, x + 8 + own.width / 2, top + height / 2, own.width, own.height);
          x += own.width + 16;
        }
        top += height + 18;
        [row, width] = [[], 0];
      };
      for (const id of ids) {
        const own = size(id).width + 16;
        if (row.length && width + own > most) place();
        row.push(id);
        width += own;
      }
      place();
      top += 34;
    }
    return whole;
  }

  // The next is always the one with most edges to those before: neighbours stand close together.
  function ordered(ids, links) {
    const between = new Map();
    for (const { from, to, weight } of links) for (const [a, b] of [[from, to], [to, from]]) between.set(`${a} ${b}`, (between.get(`${a} ${b}`) ?? 0) + weight);
    const left = [...ids];
    const done = [];
    while (left.length) {
      const pull = left.map((id) => done.slice(-4).reduce((sum, other) => sum + (between.get(`${id} ${other}`) ?? 0), 0));
      done.push(...left.splice(pull.indexOf(Math.max(...pull)), 1));
    }
    return done;
  }

  // On an ellipse, where no edge passes behind a box.
  function ring(ids, size, aspect) {
    const [wide, tall] = [Math.max(...ids.map((id) => size(id).width)), Math.max(...ids.map((id) => size(id).height))];
    for (let radius = tall; ; radius *= 1.08) {
      const places = ids.map((_, i) => [aspect * radius * Math.sin((2 * Math.PI * i) / ids.length), -radius * Math.cos((2 * Math.PI * i) / ids.length)]);
      const free = places.every(([x, y], i) => places.slice(i + 1).every(([u, v]) => Math.abs(x - u) >= wide || Math.abs(y - v) >= tall));
      if (!free) continue;
      const box = new Box();
      ids.forEach((id, i) => box.add(id, ...places[i], size(id).width, size(id).height));
      return box;
    }
  }

  // Each group in a box of its own: in layers or on an ellipse if they are few, else in rows that fit the screen.
  function grouped(boxes, links, aspect) {
    const size = (id) => ({ width: boxes.get(id).width + 40, height: boxes.get(id).height + 40 });
    const ids = ordered([...boxes.keys()], links);
    let best = flat(ids, [], size, aspect);
    if (ids.length <= 40 && links.length <= 1.5 * ids.length) {
      for (const direction of ["LR", "TB"]) {
        const next = flat(ids, links, size, aspect, direction);
        if (fit(next, aspect) > 0.6 * fit(best, aspect)) best = next;
      }
    } else if (ids.length <= 24 && [...boxes.values()].every(({ places }) => places.size === 1)) {
      const next = ring(ids, size, aspect);
      if (fit(next, aspect) > 0.5 * fit(best, aspect)) best = next;
    }
    const whole = new Box();
    for (const [id, [x, y]] of best.places) {
      const box = boxes.get(id);
      const [dx, dy] = [x - (box.left + box.right) / 2, y - (box.top + box.bottom) / 2];
      for (const [inner, [px, py]] of box.places) whole.places.set(inner, [px + dx, py + dy]);
      for (const [key, points] of box.bends) whole.bends.set(key, points.map(([px, py]) => [px + dx, py + dy]));
    }
    return whole;
  }

  return { flat, folded, grouped, single };
})();
