"use strict";
// Positions: in layers by dagre, parts packed into rows; dense graphs on a ring; neighbourhoods around their centre.
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
    graph.setGraph({ rankdir: direction, nodesep: 14, ranksep: 40, edgesep: 12, ranker: ids.length > 150 ? "longest-path" : "network-simplex" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const id of ids) graph.setNode(id, { ...size(id) });
    for (const { from, to, weight } of links) graph.setEdge(from, to, { weight: weight ?? 1 });
    dagre.layout(graph);
    const box = new Box();
    for (const id of ids) {
      const { x, y, width, height } = graph.node(id);
      box.add(id, x, y, width, height);
    }
    for (const { from, to } of links) {
      const bends = (graph.edge(from, to)?.points ?? []).slice(1, -1).map(({ x, y }) => [x, y]);
      for (const [x, y] of bends) box.cover(x, y, 0, 0);
      box.bends.set(`${from} ${to}`, bends);
    }
    return direction === "TB" ? stretched(box, size, box.height * aspect, box.width / aspect) : box;
  }

  // The same drawing with wider gaps, if it is smaller than the place it has.
  function stretched(box, size, wide, high) {
    const [sx, sy] = [wide / Math.max(box.width, 1), high / Math.max(box.height, 1)].map((factor) => Math.max(1, Math.min(2.4, factor)));
    const whole = new Box();
    for (const [id, [x, y]] of box.places) whole.add(id, sx * x, sy * y, size(id).width, size(id).height);
    for (const [key, points] of box.bends) {
      whole.bends.set(key, points.map(([x, y]) => [sx * x, sy * y]));
      for (const [x, y] of whole.bends.get(key)) whole.cover(x, y, 0, 0);
    }
    return whole;
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

  // Items side by side, in as many rows as their width takes, all about equally wide.
  function lines(ids, size, limit) {
    const total = ids.reduce((sum, id) => sum + size(id).width + 16, 0);
    const most = Math.min(total / Math.ceil(total / limit) + 40, limit);
    const made = [];
    for (const id of ids) {
      const own = size(id).width + 16;
      if (!made.length || made.at(-1).width + own > most) made.push({ ids: [], width: 0, height: 0 });
      const row = made.at(-1);
      row.ids.push(id);
      row.width += own;
      row.height = Math.max(row.height, size(id).height);
    }
    return made;
  }

  // A node between its parents, above, and its children, below; few neighbours without direction stand at its sides.
  function around(centre, { above, beside, below }, size, limit, high) {
    const whole = new Box();
    const own = size(centre);
    const half = Math.ceil(beside.length / 2);
    const columns = [beside.slice(0, half), beside.slice(half)];
    const widest = columns.map((ids) => Math.max(0, ...ids.map((id) => size(id).width)));
    const fits = own.width + widest[0] + widest[1] + 160 <= limit && half <= 3;
    if (!fits && above.length <= below.length) above = [...beside, ...above];
    else if (!fits) below = [...beside, ...below];
    const rows = (ids, start, sign) => {
      let y = start;
      for (const row of sign < 0 ? lines(ids, size, limit).reverse() : lines(ids, size, limit)) {
        let x = -row.width / 2;
        for (const id of row.ids) {
          whole.add(id, x + 8 + size(id).width / 2, y + (sign * row.height) / 2, size(id).width, size(id).height);
          x += size(id).width + 16;
        }
        y += sign * (row.height + 30);
      }
    };
    whole.add(centre, 0, 0, own.width, own.height);
    const tall = [above, below].map((ids) => lines(ids, size, limit).reduce((sum, row) => sum + row.height + 30, 0));
    let reach = own.height / 2 + Math.max(64, Math.min(150, (high - tall[0] - tall[1]) / 2 - own.height));
    if (fits) {
      columns.forEach((ids, side) => {
        const total = ids.reduce((sum, id) => sum + size(id).height + 12, -12);
        let y = -total / 2;
        for (const id of ids) {
          const x = (own.width / 2 + 80 + widest[side] / 2) * (side ? 1 : -1);
          whole.add(id, x, y + size(id).height / 2, size(id).width, size(id).height);
          y += size(id).height + 12;
        }
        reach = Math.max(reach, total / 2 + 40);
      });
    }
    rows(above, -reach, -1);
    rows(below, reach, 1);
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

  // Names on both sides of an ellipse, one below the other, with all edges inside: none passes behind a name.
  // Sides are 1 for names to the right of their place, -1 for names to the left.
  function ring(ids, links, size, aspect) {
    const order = ordered(ids, links);
    const count = Math.ceil(order.length / 2);
    const halves = [order.slice(0, count), order.slice(count).reverse()];
    const tall = (half) => half.reduce((sum, id) => sum + size(id).height + 8, 0);
    const high = Math.max(...halves.map(tall)) / 2;
    const wide = Math.max(...order.map((id) => size(id).width));
    const across = Math.max(2 * high * aspect - 2 * wide, 1.4 * high) / 2;
    const box = new Box();
    const sides = new Map();
    halves.forEach((half, left) => {
      let y = -tall(half) / 2;
      const side = left ? -1 : 1;
      for (const id of half) {
        const { width, height } = size(id);
        y += height / 2 + 4;
        const x = side * (across * (0.5 + 0.5 * Math.sqrt(1 - (y / high) ** 2)) + width / 2);
        box.add(id, x, y, width, height);
        sides.set(id, side);
        y += height / 2 + 4;
      }
    });
    return Object.assign(box, { sides });
  }

  // Each group in a box of its own: in layers or on an ellipse if they are few, else in rows that fit the screen.
  function grouped(boxes, links, aspect) {
    const size = (id) => ({ width: boxes.get(id).width + 26, height: boxes.get(id).height + 26 });
    const ids = ordered([...boxes.keys()], links);
    let best = flat(ids, [], size, aspect);
    if (ids.length <= 40 && links.length <= 1.5 * ids.length) {
      for (const direction of ["LR", "TB"]) {
        const next = flat(ids, links, size, aspect, direction);
        if (fit(next, aspect) > 0.6 * fit(best, aspect)) best = next;
      }
    } else if (ids.length <= 24 && [...boxes.values()].every(({ places }) => places.size === 1)) {
      const next = ring(ids, links, size, aspect);
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

  return { flat, around, ring, grouped, single, stretched };
})();
