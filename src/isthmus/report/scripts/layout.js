"use strict";
// Positions: in layers by dagre, parts packed into rows; dense graphs on a ring; communities in boxes; neighbourhoods around their centre.
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
    const [sx, sy] = [wide / Math.max(box.width, 1), high / Math.max(box.height, 1)].map((factor, i) => Math.max(1, Math.min(i ? 5 : 2.4, factor))); // phones are tall
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

  // A variable between the lists of its parents and of its children; where the screen is narrow, both hang on its right.
  // Lists have two columns if they are long, each box of the second one behind a gap of the first.
  function around(centre, before, after, size, wide, high) {
    const whole = Object.assign(new Box(), { parts: new Map() });
    const own = size(centre);
    const widest = (ids) => Math.max(0, ...ids.map((id) => size(id).width));
    const pitch = Math.max(0, ...[...before, ...after].map((id) => size(id).height)) + 9;
    const columns = (ids, rows) => (ids.length > rows ? [ids.filter((_, i) => i % 2 === 0), ids.filter((_, i) => i % 2 === 1)] : [ids]);
    const breadth = (parts) => parts.reduce((sum, ids) => sum + widest(ids) + 26, -26);
    let lists = [before, after].map((ids) => columns(ids, Math.floor(high / pitch)));
    const spare = wide - own.width - breadth(lists[0]) - breadth(lists[1]);
    whole.narrow = spare < 120;
    if (whole.narrow) {
      const rows = (high - own.height - 60) / pitch / (before.length + after.length);
      lists = [before, after].map((ids) => columns(ids, Math.floor(rows * ids.length)));
      lists = lists.map((parts, i) => (breadth(parts) + own.width + 20 <= wide ? parts : [[before, after][i]]));
    }
    const gap = Math.max(60, Math.min(200, spare / 2));
    whole.add(centre, 0, 0, own.width, own.height);
    lists.forEach((parts, list) => {
      const side = whole.narrow || list ? 1 : -1;
      const via = side * (own.width / 2 + (whole.narrow ? Math.min(20, wide - own.width - breadth(parts)) : gap));
      // Boxes of one column stand as close as they can, those of two in a pattern of bricks.
      const rows = parts.length > 1 ? parts[0].map(() => pitch) : parts[0].map((id) => size(id).height + 9);
      const tall = rows.reduce((sum, height) => sum + height, parts.length > 1 && parts[1].length === parts[0].length ? pitch / 2 : 0);
      const start = own.height / 2 + 24;
      const top = whole.narrow ? (list ? start : -start - tall) : -tall / 2;
      const middle = rows.map((height, row) => top + rows.slice(0, row).reduce((sum, other) => sum + other, height / 2));
      const part = { side, via, name: list ? "after" : "before" };
      let x = via;
      parts.forEach((ids, column) => {
        ids.forEach((id, row) => {
          const { width, height } = size(id);
          whole.add(id, x + (side * width) / 2, middle[row] + (column * pitch) / 2, width, height);
          whole.parts.set(id, part);
        });
        x += side * (widest(ids) + 26);
      });
    });
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
    const wide = Math.max(...order.map((id) => size(id).width));
    const boxes = (half) => half.reduce((sum, id) => sum + size(id).height, 0);
    // As far apart as fills a tall screen.
    const gap = Math.max(8, Math.min(40, ((2 * wide + 110) / aspect - Math.max(...halves.map(boxes))) / count));
    const tall = (half) => boxes(half) + half.length * gap;
    const high = Math.max(...halves.map(tall)) / 2;
    const across = Math.max(2 * high * aspect - 2 * wide, Math.min(1.4 * high, 110)) / 2;
    const box = new Box();
    const sides = new Map();
    halves.forEach((half, left) => {
      let y = -tall(half) / 2;
      const side = left ? -1 : 1;
      for (const id of half) {
        const { width, height } = size(id);
        y += (height + gap) / 2;
        const x = side * (across * (0.5 + 0.5 * Math.sqrt(1 - (y / high) ** 2)) + width / 2);
        box.add(id, x, y, width, height);
        sides.set(id, side);
        y += (height + gap) / 2;
      }
    });
    return Object.assign(box, { sides, gap: 1.5 * across });
  }

  // Whether a line between two places passes behind a box.
  function hides([x, y], { width, height }, [ax, ay], [bx, by]) {
    const near = Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)));
    return Math.abs(ax + near * (bx - ax) - x) < width / 2 && Math.abs(ay + near * (by - ay) - y) < height / 2;
  }

  // Whether no line passes behind a box.
  const clear = ({ places }, links, size) => links.every(({ from, to }) => [...places].every(([id, place]) => id === from || id === to || !hides(place, size(id), places.get(from), places.get(to))));

  // Boxes on an ellipse, as small as it can be if none touches another, and lines pass behind none.
  function circle(ids, links, size, aspect) {
    const shape = Math.max(0.7, Math.min(1.6, aspect));
    const joined = new Set(links.flatMap(({ from, to }) => [`${from} ${to}`, `${to} ${from}`])); // room for heads and a number
    const placed = (radius) => {
      const box = new Box();
      ids.forEach((id, i) => {
        const angle = (2 * Math.PI * (i + 0.5)) / ids.length;
        box.add(id, radius * shape * Math.sin(angle), -radius * Math.cos(angle), size(id).width, size(id).height);
      });
      return box;
    };
    const apart = ([a, [ax, ay]], [b, [bx, by]]) => Math.abs(ax - bx) >= (size(a).width + size(b).width) / 2 + (joined.has(`${a} ${b}`) ? 56 : 8) || Math.abs(ay - by) >= (size(a).height + size(b).height) / 2 + 30;
    const free = ({ places }) => {
      const all = [...places];
      return all.every((one, i) => all.slice(i + 1).every((two) => apart(one, two)));
    };
    let radius = 60;
    while (!free(placed(radius))) radius *= 1.08;
    const larger = [1, 1.1, 1.2, 1.3, 1.4].map((factor) => placed(factor * radius));
    return larger.find((box) => clear(box, links, size)) ?? larger[0];
  }

  // Each group in a box of its own: in layers or on an ellipse if they are few, else in rows that fit the screen.
  function grouped(boxes, links, aspect) {
    const size = (id) => ({ width: boxes.get(id).width + 26, height: boxes.get(id).height + 26 });
    const ids = ordered([...boxes.keys()], links);
    const own = (id) => boxes.get(id);
    const closed = ids.every((id) => own(id).places.size === 1);
    const lines = flat(ids, [], size, aspect);
    let best = null;
    if (ids.length <= 40 && links.length <= 1.5 * ids.length) {
      for (const direction of ["LR", "TB"]) {
        const next = flat(ids, links, size, aspect, direction);
        if (fit(next, aspect) > 0.6 * fit(best ?? lines, aspect) && (!closed || clear(next, links, own))) best = next;
      }
    }
    best ??= closed && ids.length <= 24 ? circle(ids, links, own, aspect) : lines;
    const { left, right, top, bottom } = best;
    const whole = Object.assign(new Box(), { left, right, top, bottom });
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
