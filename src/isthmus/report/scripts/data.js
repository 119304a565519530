"use strict";
// What the page shows and what is selected. Other scripts read Report and listen to its changes.
const Report = (() => {
  const data = JSON.parse(document.querySelector("#data").textContent);
  const { nodes, edges } = data;
  const touching = nodes.map(() => []);
  edges.forEach((edge, number) => {
    edge.number = number;
    edge.directed = !["open", "hidden", "unknown"].includes(edge.mark);
    touching[edge.from].push(edge);
    touching[edge.to].push(edge);
  });
  // Large networks, and those with more names than a phone has room for, open around the variable with most edges.
  const overview = nodes.length > 150 ? "groups" : "all";
  const degrees = touching.map((own) => own.filter((edge) => edge.inGraph).length);
  const hub = nodes.length ? degrees.indexOf(Math.max(...degrees)) : null;
  const crowded = nodes.length > 100 || (matchMedia("(max-width: 40rem)").matches && nodes.length > 14);
  const start = crowded && !data.compared && document.querySelector("#drawing") ? { mode: "near", chosen: hub } : { mode: overview, chosen: null };
  const state = { ...start, edge: null, view: "network", community: null, radius: 1, least: null, named: true, compared: data.compared };
  const listeners = [];

  function change(what) {
    Object.assign(state, what);
    for (const listener of listeners) listener(what);
  }

  // Show a part of the network. A variable that the reader did not choose is chosen only where one must be.
  let picked = false;
  listeners.push((what) => { picked ||= "chosen" in what; });
  function show(mode) {
    if (mode === "near" && state.chosen === null) change({ chosen: hub, mode });
    else change({ mode, view: "network", community: null, ...(mode !== "near" && !picked && { chosen: null }) });
  }

  const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
  const size = (edge) => (edge.values.length && edge.values[0] !== null ? Math.abs(edge.values[0]) : null);
  const largest = Math.max(0, ...edges.map((edge) => size(edge) ?? 0)) || 1;

  // Whether the slider and the comparison let an edge show.
  function visible(edge) {
    if (edge.state === "missing" && !edge.inGraph) return state.compared;
    return state.least === null || size(edge) === null || size(edge) >= state.least;
  }

  const other = (edge, node) => (edge.from === node ? edge.to : edge.from);

  function blanket(node) {
    const members = new Set();
    const inGraph = (v) => touching[v].filter((edge) => edge.inGraph);
    for (const edge of inGraph(node)) {
      members.add(other(edge, node));
      if (edge.from !== node) continue;
      for (const second of inGraph(edge.to)) if (second.to === edge.to) members.add(second.from);
    }
    members.delete(node);
    return [...members].sort((a, b) => a - b);
  }

  // The node and all nodes within this many visible edges of it; its Markov blanket for 0.
  function near(node, radius) {
    if (radius === 0) return new Set([node, ...blanket(node)]);
    const reached = new Set([node]);
    let border = [node];
    for (let step = 0; step < radius; step += 1) {
      const next = [];
      for (const v of border) {
        for (const edge of touching[v].filter(visible)) {
          const w = other(edge, v);
          if (!reached.has(w)) next.push(w);
          reached.add(w);
        }
      }
      border = next;
    }
    return reached;
  }

  // The best match of a text: equal, then at the start, then anywhere, without regard to case.
  function find(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return null;
    const lower = nodes.map((name) => name.toLowerCase());
    const tests = [(name, i) => nodes[i] === text.trim(), (name) => name === wanted, (name) => name.startsWith(wanted), (name) => name.includes(wanted)];
    const places = tests.map((test) => lower.findIndex(test)).filter((place) => place >= 0);
    return places.length ? places[0] : null;
  }

  const number = (value) => (value === null ? "" : String(Number(value.toPrecision(4))));

  function describe(edge) {
    const parts = [`${nodes[edge.from]} ${Report.marks.of(edge).sign} ${nodes[edge.to]}`];
    data.measures.forEach((name, i) => {
      if (edge.values[i] !== null && edge.values[i] !== undefined) parts.push(`${name} ${number(edge.values[i])}`);
    });
    if (edge.direction) parts.push(data.pag ? edge.direction : `direction ${edge.direction}`);
    if (edge.state) parts.push(edge.state);
    return parts.join(", ");
  }

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  const fileName = data.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase() || "network";

  return {
    fileName, data, nodes, edges, touching, degrees, hub, state, overview, change, show, visible, blanket, near, find, describe, size, largest, other, number, counted, color,
    large: nodes.length > 60,
    interactive: document.querySelector("#drawing") !== null,
    listen: (listener) => listeners.push(listener),
  };
})();
