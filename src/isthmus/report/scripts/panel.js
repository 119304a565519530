"use strict";
// The panel beside the drawing: what is known about the selected variable.
(() => {
  const { nodes, data, state, touching, groups } = Report;
  const panel = document.querySelector("#panel");
  const hint = panel.firstElementChild;

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  function button(node) {
    const made = element("button", nodes[node], { type: "button", class: "name" });
    made.addEventListener("click", () => Report.change({ chosen: node, edge: null }));
    return made;
  }

  // Buttons that say what the reader knows about an edge.
  function opinionButtons(edge) {
    if (!Report.edit.possible) return [];
    const [a, b] = [edge.from, edge.to];
    const held = Report.edit.of(a, b);
    const choice = (text, from, to, kind) => {
      const pressed = kind === null ? held === null : held?.kind === kind && (kind === "forbid" || held.from === from);
      const made = element("button", text, { type: "button", "aria-pressed": String(pressed) });
      made.addEventListener("click", () => Report.edit.set(from, to, kind));
      return made;
    };
    const group = element("div", undefined, { class: "opinions", role: "group", "aria-label": "What you know about this edge" });
    group.append(
      choice("Let the data decide", a, b, null),
      choice(data.pag ? "Neither is a cause of the other" : "Forbid this edge", a, b, "forbid"),
      choice(`Require ${nodes[a]} → ${nodes[b]}`, a, b, "require"),
      choice(`${edge.directed ? "Reverse" : "Require"}: ${nodes[b]} → ${nodes[a]}`, b, a, "require"),
    );
    return [element("h3", "What do you know about it?"), group];
  }

  function showEdge(edge) {
    const close = element("button", "×", { type: "button", class: "close", "aria-label": "Close" });
    close.addEventListener("click", () => Report.change({ edge: null }));
    const title = element("h2");
    title.append(button(edge.from), ` ${Report.marks.of(edge).sign} `, button(edge.to));
    const facts = element("ul");
    data.measures.forEach((name, i) => {
      if (edge.values[i] === null || edge.values[i] === undefined) return;
      const item = element("li", name);
      item.append(element("span", Report.number(edge.values[i])));
      facts.append(item);
    });
    const about = [edge.direction && `${data.pag ? "" : "Direction "}${edge.direction}.`, edge.state && edge.state !== "same" && `Compared with the reference: ${edge.state}.`].filter(Boolean).join(" ");
    panel.replaceChildren(close, title, element("p", about, { class: "hint" }), facts, ...opinionButtons(edge), ...again());
  }

  // All opinions so far, and the command that learns with them.
  function again() {
    const { edit } = Report;
    if (!edit.possible || !edit.opinions.size) return [];
    const list = element("ul");
    for (const { kind, from, to } of edit.opinions.values()) {
      const item = element("li", kind === "require" ? `${nodes[from]} → ${nodes[to]} is required` : `${data.pag ? "no cause and effect" : "no edge"} between ${nodes[from]} and ${nodes[to]}`);
      const drop = element("button", "×", { type: "button", class: "close", "aria-label": `Drop what was said about ${nodes[from]} and ${nodes[to]}` });
      drop.addEventListener("click", () => edit.set(from, to, null));
      item.append(drop);
      list.append(item);
    }
    const code = element("code", edit.command(), { id: "command" });
    const pre = element("pre", undefined, { tabindex: 0, "aria-label": "Command" });
    pre.append(code);
    const copy = element("button", "Copy the command", { type: "button", id: "copy" });
    copy.addEventListener("click", async () => {
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        document.execCommand("copy");
      }
      copy.textContent = "Copied";
    });
    const hints = [];
    if (edit.circular()) hints.push(element("p", "The required edges form a circle, which a network cannot have: change one of them.", { class: "note" }));
    if (data.again.includes("TABLE")) hints.push(element("p", "Put the name of the file with your table in place of TABLE.", { class: "hint" }));
    return [element("h3", "Learn again with what you know"), list, element("p", "Type on a command line:", { class: "hint" }), pre, ...hints, copy];
  }

  function edgeList(title, own) {
    if (!own.length) return [];
    const list = element("ul");
    for (const edge of own) {
      const item = element("li");
      const values = data.measures.map((name, i) => (edge.values[i] === null || edge.values[i] === undefined ? "" : `${name} ${Report.number(edge.values[i])}`));
      const open = element("button", Report.marks.of(edge).sign, { type: "button", class: "name sign", "aria-label": `Edge: ${Report.describe(edge)}` });
      open.addEventListener("click", () => Report.change({ edge: edge.number }));
      item.append(open, button(Report.other(edge, state.chosen)), element("span", [...values, edge.state === "same" ? "" : edge.state].filter(Boolean).join(", ")));
      list.append(item);
    }
    return [element("h3", `${title} (${own.length})`), list];
  }

  const degree = (node) => touching[node].filter((edge) => edge.inGraph).length;
  const hubs = [...nodes.keys()].filter(degree).sort((a, b) => degree(b) - degree(a) || a - b).slice(0, 12);

  function tags(title, members) {
    const list = element("ul", undefined, { class: "tags" });
    for (const node of members) {
      const item = element("li");
      item.append(button(node));
      list.append(item);
    }
    const head = members === hubs ? element("h2", title, { class: "list" }) : element("h3", `${title} (${members.length})`);
    return [head, members.length ? list : element("p", "None.", { class: "hint" })];
  }

  // To the neighbourhood of the variable, and back to all of them.
  function partButton() {
    if (!Report.interactive) return [];
    const near = state.mode === "near";
    const all = Report.overview === "groups" ? "Show all communities" : "Show the whole network";
    const made = element("button", near ? all : "Show its neighbourhood", { type: "button", id: "part" });
    made.addEventListener("click", () => Report.show(near ? Report.overview : "near"));
    const share = `The drawing shows ${Report.near(state.chosen, state.radius).size} of ${nodes.length} variables.`;
    return near && state.view === "network" ? [element("p", share, { class: "hint" }), made] : [made];
  }

  // What is drawn of a community, and the way back.
  function communityHelp(members) {
    const own = new Set(members);
    const out = Report.edges.filter((edge) => edge.inGraph && own.has(edge.from) !== own.has(edge.to)).length;
    const made = element("button", "Show all communities", { type: "button", id: "part" });
    made.addEventListener("click", () => Report.show("groups"));
    const text = `The drawing shows one community, ${members.length} of ${nodes.length} variables, without ${Report.counted(out, "edge")} to other communities. Select a variable and its neighbourhood to see all of its edges.`;
    return [element("p", text, { class: "hint" }), made];
  }

  // What the drawing shows, for readers who have selected nothing.
  function help() {
    if (state.view !== "network" || !Report.interactive) return [];
    if (state.mode === "groups" && state.community !== null) return communityHelp(groups.members[state.community]);
    if (state.mode === "groups") return [element("p", "Each box is a community: variables with more edges among each other than to the rest. Select a box to see its variables and edges. Lines between boxes stand for as many edges as they are labelled with, and have a head at each end that one of these edges points to.", { class: "hint" })];
    if (state.mode === "all" && !state.named) return [element("p", "So many variables at once are an overview. Point at a variable to see its edges, and select it to see its neighbourhood.", { class: "hint" })];
    return [];
  }

  function family(own, chosen) {
    return [
      ...edgeList("Parents", own.filter((e) => e.directed && e.to === chosen && e.state !== "missing")),
      ...edgeList("Children", own.filter((e) => e.directed && e.from === chosen && e.state !== "missing")),
      ...edgeList("Neighbours, direction not determined", own.filter((e) => !e.directed && e.state !== "missing")),
      ...edgeList("Only in the reference", own.filter((e) => e.state === "missing")),
      ...tags("Markov blanket", Report.blanket(chosen)),
    ];
  }

  // If there may be hidden causes, an edge says less than who is a parent of whom.
  function causes(own, chosen) {
    return [
      ...edgeList("Causes of it", own.filter((e) => e.mark === "determined" && e.to === chosen)),
      ...edgeList("Effects of it", own.filter((e) => e.mark === "determined" && e.from === chosen)),
      ...edgeList("Causes of it, or with a hidden common cause", own.filter((e) => e.mark === "possible" && e.to === chosen)),
      ...edgeList("Effects of it, or with a hidden common cause", own.filter((e) => e.mark === "possible" && e.from === chosen)),
      ...edgeList("With a hidden common cause", own.filter((e) => e.mark === "hidden")),
      ...edgeList("Causes, effects, or with a hidden common cause", own.filter((e) => e.mark === "unknown")),
    ];
  }

  function show() {
    const { chosen } = state;
    if (state.edge !== null) return showEdge(Report.edges[state.edge]);
    if (chosen === null) {
      panel.replaceChildren(hint, ...help(), ...tags("Variables with most edges", hubs), ...again());
      return undefined;
    }
    const own = touching[chosen].filter((edge) => edge.inGraph || edge.state === "missing" || data.threshold !== null);
    const close = element("button", "×", { type: "button", class: "close", "aria-label": "Close" });
    close.addEventListener("click", () => {
      Report.change({ chosen: null });
      document.querySelector("#search").focus();
    });
    const about = [data.kinds[nodes[chosen]], Report.counted(own.filter((e) => e.inGraph).length, "edge")].filter(Boolean).join(", ");
    const inner = [
      close,
      element("h2", nodes[chosen]),
      element("p", about, { class: "hint" }),
      ...partButton(),
      ...(data.pag ? causes(own, chosen) : family(own, chosen)),
    ];
    const details = document.querySelector(`details[data-panel="${chosen}"] > div`);
    if (details) inner.push(element("h3", "Parameters"), details.cloneNode(true));
    inner.push(...again());
    panel.replaceChildren(...inner);
    watchTables(panel);
    panel.scrollTop = 0;
    return undefined;
  }
  // Tables that are wider than their place can be scrolled with the keyboard.
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const watchTables = (root) => root.querySelectorAll(".scroll").forEach((table) => widths.observe(table));

  watchTables(document);
  show();
  Report.listen((what) => { if ("chosen" in what || "edge" in what || "mode" in what || "community" in what || "view" in what || "radius" in what || "edited" in what || "named" in what) show(); });
})();
