"use strict";
// The panel beside the drawing: what is known about the selected variable.
(() => {
  const { nodes, data, state, touching } = Report;
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
    made.addEventListener("click", () => Report.change({ chosen: node }));
    return made;
  }

  function edgeList(title, own) {
    if (!own.length) return [];
    const list = element("ul");
    for (const edge of own) {
      const item = element("li");
      const values = data.measures.map((name, i) => (edge.values[i] === null || edge.values[i] === undefined ? "" : `${name} ${Report.number(edge.values[i])}`));
      item.append(button(Report.other(edge, state.chosen)), element("span", [...values, edge.state === "same" ? "" : edge.state].filter(Boolean).join(", ")));
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

  function focusButton() {
    if (!Report.interactive || state.mode === "near") return [];
    const made = element("button", "Show its neighbourhood", { type: "button", id: "focus" });
    made.addEventListener("click", () => Report.change({ mode: "near", view: "network" }));
    return [made];
  }

  function show() {
    const { chosen } = state;
    if (chosen === null) {
      const help = state.mode === "groups" ? [element("p", "Each box is a community: variables with more edges among each other than to the rest. Select a box to open or close it.", { class: "hint" })] : [];
      panel.replaceChildren(hint, ...help, ...tags("Variables with most edges", hubs));
      return;
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
      ...focusButton(),
      ...edgeList("Parents", own.filter((e) => e.directed && e.to === chosen && e.state !== "missing")),
      ...edgeList("Children", own.filter((e) => e.directed && e.from === chosen && e.state !== "missing")),
      ...edgeList("Neighbours, direction not determined", own.filter((e) => !e.directed && e.state !== "missing")),
      ...edgeList("Only in the reference", own.filter((e) => e.state === "missing")),
      ...tags("Markov blanket", Report.blanket(chosen)),
    ];
    const details = document.querySelector(`details[data-panel="${chosen}"] > div`);
    if (details) inner.push(element("h3", "Parameters"), details.cloneNode(true));
    panel.replaceChildren(...inner);
    watchTables(panel);
    panel.scrollTop = 0;
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
  Report.listen((what) => { if ("chosen" in what || "mode" in what) show(); });
})();
