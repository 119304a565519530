"use strict";
// The third view: say what was observed, and see what follows for all other variables.
(() => {
  const { nodes, state, touching } = Report;
  const root = document.querySelector("#whatif");
  const cards = root.querySelector("#cards");
  const status = root.querySelector("#observed");
  const evidence = new Map();
  let network = null;
  let before = null;
  let shown = [];

  const make = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const button = (text, attributes, click) => {
    const made = make("button", text, { type: "button", ...attributes });
    made.addEventListener("click", click);
    return made;
  };
  // A mean with as many digits as its spread is worth.
  const spread = (mean, width) => {
    const digits = Math.max(0, Math.min(12, 2 - Math.floor(Math.log10(width || Math.abs(mean) || 1))));
    return [mean, width].map((value) => (Math.abs(value) < 1e9 ? value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1") : Report.number(value))).join(" ± ");
  };
  const percent = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

  function observe(node, value) {
    const kept = new Map(evidence);
    if (value === null || evidence.get(node) === value) evidence.delete(node);
    else evidence.set(node, value);
    if (update()) return;
    evidence.clear();
    for (const [key, own] of kept) evidence.set(key, own);
    update();
    status.append(make("strong", ` ${nodes[node]} cannot have this value together with what was observed before.`));
  }

  // A category: a bar for each level. Clicking one says that it was observed.
  function levelCard(node, card) {
    const rows = network.levels[node].map((level, i) => {
      const row = button(undefined, { class: "level", "aria-pressed": "false" }, () => observe(node, i));
      row.append(make("span", level, { class: "label" }), make("span", undefined, { class: "bar" }), make("span", "", { class: "value" }));
      row.children[1].append(make("i"), make("b"));
      card.append(row);
      return row;
    });
    return (now, first) => {
      rows.forEach((row, i) => {
        row.ariaPressed = String(evidence.get(node) === i);
        row.children[1].children[0].style.width = `${100 * now[i]}%`;
        row.children[1].children[1].style.left = `${100 * first[i]}%`;
        const text = percent(now[i]);
        if (row.children[2].textContent !== text) row.children[2].textContent = text;
      });
      return now.reduce((sum, share, i) => sum + Math.abs(share - first[i]) / 2, 0);
    };
  }

  // A number: its mean, with the range of about 95 % of the cases. Moving the slider says which value was observed.
  function numberCard(node, card) {
    const { mean, deviation } = before[node];
    const [low, high] = [mean - 3.5 * deviation, mean + 3.5 * deviation];
    const at = (value) => Math.max(0, Math.min(100, (100 * (value - low)) / (high - low || 1)));
    const strip = make("span", undefined, { class: "bar" });
    strip.append(make("i"), make("b"), make("em"));
    const text = make("p", "", { class: "value" });
    const slider = make("input", undefined, { type: "range", min: low, max: high, step: (high - low) / 200 || 1, value: mean, "aria-label": `Observed value of ${nodes[node]}` });
    const field = make("input", undefined, { type: "number", step: "any", placeholder: "value", "aria-label": `Observed value of ${nodes[node]}, as a number` });
    slider.addEventListener("input", () => { evidence.delete(node); observe(node, Number(slider.value)); });
    field.addEventListener("change", () => { evidence.delete(node); observe(node, field.value === "" ? null : Number(field.value)); });
    const line = make("span", undefined, { class: "inputs" });
    line.append(slider, field);
    card.append(strip, text, line);
    return (now, first) => {
      const value = evidence.get(node);
      const seen = value !== undefined;
      if (!seen) slider.value = now.mean;
      else slider.value = value;
      if (document.activeElement !== field) field.value = seen ? Number(value.toPrecision(6)) : "";
      const [left, right] = [at(now.mean - 1.96 * now.deviation), at(now.mean + 1.96 * now.deviation)];
      Object.assign(strip.children[0].style, { left: `${left}%`, width: `${right - left}%` });
      strip.children[1].style.left = `${at(first.mean)}%`;
      strip.children[2].style.left = `${at(now.mean)}%`;
      text.textContent = seen ? `observed: ${Report.number(value)}` : spread(now.mean, 1.96 * now.deviation);
      return Math.abs(now.mean - first.mean) / (first.deviation || 1);
    };
  }

  function build() {
    shown = nodes.map((name, node) => {
      const card = make("article", undefined, { class: "card", "data-node": node });
      const head = make("h3");
      head.append(button(name, { class: "name" }, () => Report.change({ chosen: node, edge: null })));
      card.append(head);
      const show = (network.type === "discrete" ? levelCard : numberCard)(node, card);
      return { node, card, show };
    });
    cards.replaceChildren(...shown.map(({ card }) => card));
  }

  function update() {
    const { marginals, probability } = network.query(evidence);
    if (!marginals) return false;
    for (const own of shown) {
      own.change = own.show(marginals[own.node], before[own.node]);
      own.card.classList.toggle("seen", evidence.has(own.node));
    }
    status.replaceChildren();
    if (!evidence.size) {
      status.append(network.type === "discrete" ? "Click a level to say that it was observed." : "Move a slider to say which value was observed.");
    } else {
      status.append("Observed: ");
      for (const [node, value] of evidence) {
        const text = `${nodes[node]} = ${network.type === "discrete" ? network.levels[node][value] : Report.number(value)} ×`;
        status.append(button(text, { class: "chip", "aria-label": `Forget ${text}` }, () => observe(node, null)));
      }
      status.append(button("Forget all", {}, () => { evidence.clear(); update(); sort(); }));
      if (probability !== undefined) status.append(` Such cases are ${percent(probability)} of all.`);
    }
    return true;
  }

  // Cards stay where they are while bars move; another order is a choice of its own.
  function sort() {
    const changed = root.querySelector("#order").value === "change";
    const order = changed ? [...shown].sort((a, b) => Number(evidence.has(b.node)) - Number(evidence.has(a.node)) || b.change - a.change) : shown;
    cards.replaceChildren(...order.map(({ card }) => card));
  }
  root.querySelector("#order").addEventListener("change", sort);

  // How to ask where the page cannot answer.
  function refuse(reason) {
    const target = Report.hub ?? 0;
    const given = touching[target].length ? Report.other(touching[target][0], target) : target;
    root.querySelector("#asked").hidden = true;
    const parts = [make("p", reason)];
    if (Report.data.exports.json) {
      const { quoted } = Report.edit;
      parts.push(make("p", "The program that made this report answers such questions. Save the network with Download, JSON, and type on a command line:"));
      const pre = make("pre");
      pre.append(make("code", `isthmus query ${quoted(`${Report.fileName}.json`)} --target ${quoted(nodes[target])} --given ${quoted(`${nodes[given]}=VALUE`)}`));
      parts.push(pre, make("p", "with the variable you ask for after --target, and what was observed after --given, which may be repeated."));
    } else parts.push(make("p", "Ask whoever made this report: they have the data or the network."));
    cards.replaceChildren(...parts);
  }

  function open() {
    if (network || !nodes.length) return;
    network = Report.inference.prepare();
    if (typeof network === "string") { refuse(network); return; }
    before = network.query(new Map()).marginals;
    root.querySelector("#spread").hidden = network.type === "discrete";
    build();
    update();
  }

  Report.listen((what) => {
    root.hidden = state.view !== "whatif";
    if (root.hidden) return;
    if ("view" in what) open();
    if ("chosen" in what && state.chosen !== null) cards.querySelector(`[data-node="${state.chosen}"]`)?.scrollIntoView({ block: "nearest" });
    for (const { node, card } of shown) card.classList.toggle("chosen", node === state.chosen);
  });
  Report.whatIf = { observe: (node, value) => { open(); observe(node, value); }, answers: () => network.query(evidence) };
})();
