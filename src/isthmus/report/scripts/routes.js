"use strict";
// How edges run: from one side of a box to a side of another, so that no arrowhead lies on another one or behind a name.
Report.routes = (() => {
  const HEAD = 11; // size of an arrowhead at zoom one

  // Places of this many arrowheads along a side: offsets from its middle, and distances from the box, in up to three rows.
  function slots(count, room) {
    const rows = [1, 2, 3].find((number) => (count * HEAD) / number <= room) ?? 3;
    const step = Math.min(HEAD, room / Math.max(count, 1));
    return Array.from({ length: count }, (_, i) => ({ along: (i - (count - 1) / 2) * step, away: 1 + HEAD * (i % rows) }));
  }

  // The length of a side on which this many arrowheads can be seen, with so much for each.
  const room = (count, step) => count * step + 6;

  // Whether an edge, or an edge that stands for several, has a mark at this end.
  const marked = (edge, id) => edge.heads?.has(id) ?? Report.marks.of(edge)[id === edge.to ? "head" : "tail"] !== "none";

  const heads = (edges) => {
    const counts = new Map();
    for (const edge of edges) for (const id of [edge.from, edge.to]) if (marked(edge, id)) counts.set(id, (counts.get(id) ?? 0) + 1);
    return (id) => counts.get(id) ?? 0;
  };

  // Ends of edges side by side, in the order in which they come: those with marks in slots, others spread evenly.
  function ends(edges, id, length, key) {
    const sorted = (own) => own.map((edge) => [key(edge), edge]).sort(([a], [b]) => a - b).map(([, edge]) => edge);
    const arriving = sorted(edges.filter((edge) => marked(edge, id)));
    const leaving = sorted(edges.filter((edge) => !marked(edge, id)));
    const places = slots(arriving.length, length - 2);
    const step = Math.min(HEAD, (0.7 * length) / Math.max(leaving.length, 1));
    return new Map([
      ...arriving.map((edge, i) => [edge, places[i]]),
      ...leaving.map((edge, i) => [edge, { along: (i - (leaving.length - 1) / 2) * step, away: 0 }]),
    ]);
  }

  // In layers: from the bottom of a box through the gaps between the boxes of other layers to the top of a box.
  function down(edges, places, bends, size) {
    const layers = new Set([...places.values()].map(([, y]) => Math.round(y)));
    const inLayer = ([, y]) => [-1, 0, 1].some((step) => layers.has(Math.round(y) + step)); // others are halfway to the next one
    const points = new Map(edges.map((edge) => [edge, (bends.get(`${edge.from} ${edge.to}`) ?? []).filter(inLayer)]));
    const up = ({ from, to }) => places.get(from)[1] > places.get(to)[1];
    const next = (edge, id) => (id === edge.from ? points.get(edge)[0] ?? places.get(edge.to) : points.get(edge).at(-1) ?? places.get(edge.from));
    const top = (edge, id) => (id === edge.to) !== up(edge);
    const sides = new Map();
    for (const id of places.keys()) {
      const own = edges.filter(({ from, to }) => from === id || to === id);
      for (const above of [true, false]) sides.set(`${id} ${above}`, ends(own.filter((edge) => top(edge, id) === above), id, size(id).width - 8, (edge) => slope(next(edge, id), places.get(id))));
    }
    const end = (edge, id) => {
      const [x, y] = places.get(id);
      const above = top(edge, id);
      const { along, away } = sides.get(`${id} ${above}`).get(edge);
      return [x + along, y + (above ? -1 : 1) * (size(id).height / 2 + away)];
    };
    return (edge) => {
      const [start, stop] = [end(edge, edge.from), end(edge, edge.to)];
      const way = [start, ...points.get(edge), stop];
      const controls = [];
      way.slice(1).forEach(([x, y], i) => {
        const [ax, ay] = way[i];
        const reach = 0.25 * (y - ay);
        controls.push([ax, ay + reach], [x, y - reach]);
      });
      return { start, stop, points: controls };
    };
  }

  const slope = ([x, y], [cx, cy]) => Math.atan2(x - cx, Math.abs(y - cy));

  // Inside of a ring of names: from and to their inner sides.
  function across(edges, box, size) {
    const inner = new Map([...box.places].map(([id, [x, y]]) => [id, [x - (box.sides.get(id) * size(id).width) / 2, y]]));
    const sides = new Map();
    for (const id of box.places.keys()) {
      const own = edges.filter(({ from, to }) => from === id || to === id);
      // Edges to the same side bend back most: the upper ones arrive above all others, the lower ones below.
      const height = (edge) => {
        const other = edge.from === id ? edge.to : edge.from;
        const far = inner.get(other)[1] - inner.get(id)[1];
        return box.sides.get(other) === box.sides.get(id) ? Math.sign(far) * (1e6 - Math.abs(far)) : far;
      };
      sides.set(id, ends(own, id, size(id).height, height));
    }
    const end = (edge, id) => {
      const [x, y] = inner.get(id);
      const { along, away } = sides.get(id).get(edge);
      return [x - box.sides.get(id) * away, y + along];
    };
    return (edge) => {
      const [start, stop] = [end(edge, edge.from), end(edge, edge.to)];
      const [a, b] = [box.sides.get(edge.from), box.sides.get(edge.to)];
      const reach = a === b ? Math.min(45 + 0.35 * Math.abs(start[1] - stop[1]), box.gap) : 0.35 * Math.abs(start[0] - stop[0]);
      return { start, stop, points: [[start[0] - a * reach, start[1]], [stop[0] - b * reach, stop[1]]] };
    };
  }

  // Around a variable: to the near sides of its neighbours; edges among those on one side bulge at their far sides.
  function around(edges, centre, box, size) {
    const spoke = ({ from, to }) => from === centre || to === centre;
    const sideOf = (id) => box.parts.get(id).side;
    // The border of a box at which an edge starts or ends: direction as x and y, and the length of it.
    function border(edge, id) {
      const { width, height } = size(id);
      const other = edge.from === id ? edge.to : edge.from;
      if (id !== centre) return { x: sideOf(id) * (spoke(edge) || sideOf(other) !== sideOf(id) ? -1 : 1), y: 0, half: width / 2, length: height };
      if (box.narrow) return { x: 0, y: box.parts.get(other).name === "before" ? -1 : 1, half: height / 2, length: width - 8 };
      return { x: sideOf(other), y: 0, half: width / 2, length: height - 4 };
    }
    const [, middle] = box.places.get(centre);
    const places = new Map();
    for (const id of box.places.keys()) {
      const own = edges.filter(({ from, to }) => from === id || to === id).map((edge) => ({ edge, at: border(edge, id) }));
      const height = (edge) => box.places.get(edge.from === id ? edge.to : edge.from)[1];
      for (const name of new Set(own.map(({ at }) => `${at.x} ${at.y}`))) {
        const here = own.filter(({ at }) => `${at.x} ${at.y}` === name);
        const key = here[0].at.y ? (edge) => -Math.abs(height(edge) - middle) : height;
        for (const [edge, place] of ends(here.map(({ edge }) => edge), id, here[0].at.length, key)) places.set(`${id} ${edge.number}`, place);
      }
    }
    const end = (edge, id) => {
      const [x, y] = box.places.get(id);
      const { along, away } = places.get(`${id} ${edge.number}`);
      const at = border(edge, id);
      return [x + (at.y ? along : at.x * (at.half + away)), y + (at.y ? at.y * (at.half + away) : along)];
    };
    // Edges from one side to the other pass above or below the variable, not behind it.
    const passing = (edge) => !spoke(edge) && sideOf(edge.from) !== sideOf(edge.to);
    const above = ({ from, to }) => box.places.get(from)[1] + box.places.get(to)[1] < 2 * middle;
    const lanes = [true, false].map((up) => edges.filter((edge) => passing(edge) && above(edge) === up));
    return (edge) => {
      const [start, stop] = [end(edge, edge.from), end(edge, edge.to)];
      if (passing(edge)) {
        const { width, height } = size(centre);
        const y = middle + (above(edge) ? -1 : 1) * (height / 2 + 22 + 9 * lanes[above(edge) ? 0 : 1].indexOf(edge));
        const points = [-1, 1].map((side) => [side * (width / 2 + 20), y]);
        return { start, stop, points: sideOf(edge.from) < 0 ? points : points.reverse() };
      }
      if (!spoke(edge)) {
        const [a, b] = [border(edge, edge.from).x, border(edge, edge.to).x];
        const reach = a === b ? Math.min(70, 25 + 0.2 * Math.abs(start[1] - stop[1])) : 0.4 * Math.abs(start[0] - stop[0]);
        return { start, stop, points: [[start[0] + a * reach, start[1]], [stop[0] + b * reach, stop[1]]] };
      }
      const out = edge.from === centre;
      const [first, last] = out ? [start, stop] : [stop, start];
      const { via } = box.parts.get(out ? edge.to : edge.from);
      const step = 0.35 * (via - first[0]);
      const points = box.narrow ? [[first[0], last[1]]] : [[first[0] + step, first[1]], [via - step, last[1]]];
      if (Math.abs(last[0] - via) > 40) points.push([via, last[1]]); // level through a gap of the first column
      return { start, stop, points: out ? points : points.reverse() };
    };
  }

  // Angles moved until neighbours on the circle are this far apart, or all of them evenly.
  function spread(angles) {
    const least = Math.min(50, 360 / angles.length);
    const moved = [...angles];
    for (let round = 0; round < 60; round += 1) {
      moved.forEach((angle, i) => {
        const last = i === moved.length - 1;
        const lack = least - (moved[last ? 0 : i + 1] + (last ? 360 : 0) - angle);
        if (lack <= 0 || moved.length === 1) return;
        moved[i] -= lack / 2;
        moved[last ? 0 : i + 1] += lack / 2;
      });
    }
    return moved;
  }

  // Among dots: heads point to the centre, and those at the same dot come from different sides.
  // The last bend is this far from the dot, and at most halfway.
  function radial(edges, places, bends, reach) {
    const inner = new Map(edges.map((edge) => [edge, bends(edge)]));
    const next = (edge, id) => (id === edge.to ? inner.get(edge).at(-1) ?? places.get(edge.from) : inner.get(edge)[0] ?? places.get(edge.to));
    const sides = new Map();
    for (const edge of edges) for (const id of [edge.from, edge.to]) if (marked(edge, id)) sides.set(id, [...(sides.get(id) ?? []), edge]);
    const angles = new Map();
    for (const [id, own] of sides) {
      const [x, y] = places.get(id);
      const angle = (edge) => { const [nx, ny] = next(edge, id); return (Math.atan2(nx - x, y - ny) * 180) / Math.PI; }; // from above, clockwise
      const sorted = own.map((edge) => [angle(edge), edge]).sort(([a], [b]) => a - b);
      spread(sorted.map(([first]) => first)).forEach((last, i) => angles.set(`${id} ${sorted[i][1].number}`, last));
    }
    const bend = (edge, id) => {
      const angle = angles.get(`${id} ${edge.number}`);
      if (angle === undefined) return { end: "outside-to-node", points: [] };
      const [[x, y], [nx, ny], turn] = [places.get(id), next(edge, id), (angle * Math.PI) / 180];
      const far = Math.min(reach, 0.5 * Math.hypot(nx - x, ny - y));
      return { end: `${angle}deg`, points: [[x + far * Math.sin(turn), y - far * Math.cos(turn)]] };
    };
    return (edge) => {
      const [start, stop] = [bend(edge, edge.from), bend(edge, edge.to)];
      return { start: start.end, stop: stop.end, points: [...start.points, ...inner.get(edge), ...stop.points] };
    };
  }

  return { HEAD, room, heads, down, across, around, radial };
})();
