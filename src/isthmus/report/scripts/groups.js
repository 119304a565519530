"use strict";
// Communities of nodes.
Report.groups = (() => {
  const { data, nodes, edges, touching, state } = Report;
  const count = Math.max(-1, ...data.groups) + 1;
  const members = Array.from({ length: count }, () => []);
  data.groups.forEach((group, node) => members[group].push(node));
  // Nodes without edges come last.
  const linked = (own) => own.some((node) => touching[node].length > 0);
  members.sort((a, b) => Number(linked(b)) - Number(linked(a)) || b.length - a.length);
  members.forEach((own, group) => own.forEach((node) => { data.groups[node] = group; }));
  for (const own of members) own.sort((a, b) => touching[b].length - touching[a].length || a - b);

  // Names are cut here: a box of three long names would hide the rest.
  const short = (name) => ([...name].length > 24 ? `${[...name].slice(0, 23).join("")}…` : name);

  function label(group) {
    const own = members[group];
    const most = count > 9 || matchMedia("(max-width: 40rem)").matches ? 1 : 3; // many boxes are small ones
    const shown = own.slice(0, most).map((node) => short(nodes[node]));
    if (own.length > most) shown.push(`and ${own.length - most} more`);
    const inner = edges.filter((edge) => edge.inGraph && data.groups[edge.from] === group && data.groups[edge.to] === group);
    if (undetermined(inner)) shown.push(`${undetermined(inner)} undetermined`);
    const differ = differences(edges.filter((edge) => data.groups[edge.from] === group && data.groups[edge.to] === group));
    if (differ) shown.push(`${differ} ${differ === 1 ? "difference" : "differences"}`);
    return shown.join("\n");
  }

  // How many edges lack a direction.
  const undetermined = (own) => own.filter((edge) => edge.mark === "open").length;

  // How many edges differ from the reference, if it is shown.
  function differences(own) {
    return state.compared ? own.filter((edge) => edge.state && edge.state !== "same").length : 0;
  }

  // What is written at an edge between groups.
  function tally(own) {
    const differ = differences(own);
    if (differ) return `${own.length} (≠ ${differ})`;
    return own.length > 1 ? String(own.length) : "";
  }

  // Edges between what stands for nodes, with the edges that each replaces and the ends that have an arrowhead.
  function joined(place, visible) {
    const between = new Map();
    for (const edge of edges.filter(visible)) {
      const [a, b] = [place(edge.from), place(edge.to)];
      if (a === b) continue;
      const [first, second] = between.has(`${b} ${a}`) ? [b, a] : [a, b];
      const key = `${first} ${second}`;
      const own = between.get(key) ?? { from: first, to: second, edges: [], heads: new Set() };
      own.edges.push(edge);
      const { head, tail } = Report.marks.of(edge);
      if (head === "triangle") own.heads.add(b);
      if (tail === "triangle") own.heads.add(a);
      between.set(key, own);
    }
    return [...between.values()];
  }

  return { of: data.groups, members, label, tally, undetermined, differences, joined };
})();
