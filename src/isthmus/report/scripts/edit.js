"use strict";
// What the reader knows about edges, and the command that learns again with it.
Report.edit = (() => {
  const { nodes, data } = Report;
  const opinions = new Map(); // by pair of nodes: "forbid", or the required edge

  const pair = (a, b) => `${Math.min(a, b)} ${Math.max(a, b)}`;
  const of = (a, b) => opinions.get(pair(a, b)) ?? null;

  function set(a, b, kind) {
    if (kind === null) opinions.delete(pair(a, b));
    else opinions.set(pair(a, b), { kind, from: a, to: b });
    Report.change({ edited: true });
  }

  // As a POSIX shell reads it.
  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

  function command() {
    const words = [data.again];
    for (const { kind, from, to } of opinions.values()) {
      const [a, b] = [quoted(nodes[from]), quoted(nodes[to])];
      if (kind === "require") words.push(`--required ${a} ${b}`);
      else words.push(`--forbidden ${a} ${b}`, `--forbidden ${b} ${a}`);
    }
    return words.join(" ");
  }

  // Whether the required edges close a circle, which no network can have.
  function circular() {
    const next = new Map();
    for (const { kind, from, to } of opinions.values()) if (kind === "require") next.set(from, [...(next.get(from) ?? []), to]);
    const reaches = (start, goal, seen = new Set()) => (next.get(start) ?? []).some((v) => v === goal || (!seen.has(v) && reaches(v, goal, seen.add(v))));
    return [...next.keys()].some((v) => reaches(v, v));
  }

  return { possible: data.again !== null, opinions, of, set, quoted, command, circular, clear: () => { opinions.clear(); Report.change({ edited: true }); } };
})();
