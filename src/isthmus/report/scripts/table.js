"use strict";
// The table of edges: sort, filter, select.
(() => {
  const table = document.querySelector("#edge-table");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filter = document.querySelector("#filter");
  const listed = document.querySelector("#listed");

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const numbers = head.dataset.sort === "number";
      const next = head.ariaSort === (numbers ? "descending" : "ascending") ? (numbers ? "ascending" : "descending") : (numbers ? "descending" : "ascending");
      for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
      head.ariaSort = next;
      const sign = next === "ascending" ? 1 : -1;
      const key = (row) => (numbers ? Number(row.cells[column].dataset.value || "-Infinity") : row.cells[column].textContent);
      const compare = (a, b) => (numbers ? (a === b ? 0 : a - b) : a.localeCompare(b, undefined, { numeric: true }));
      body.append(...[...rows].sort((a, b) => sign * compare(key(a), key(b))));
    });
  });

  function apply() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    listed.textContent = shown === rows.length ? Report.counted(rows.length, "edge") : `${shown} of ${Report.counted(rows.length, "edge")}`;
  }
  filter.addEventListener("input", apply);
  apply();

  for (const row of rows) {
    const edge = Report.edges[Number(row.dataset.edge)];
    if (!edge.inGraph) continue;
    const sign = Object.assign(document.createElement("button"), { type: "button", className: "name sign", textContent: row.cells[1].textContent, ariaLabel: `Edge: ${Report.describe(edge)}` });
    row.cells[1].replaceChildren(sign);
  }
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button.name");
    if (!button) return;
    if (button.matches(".sign")) Report.change({ edge: Number(button.closest("tr").dataset.edge) });
    else Report.change({ chosen: Report.nodes.indexOf(button.textContent), edge: null });
    document.querySelector("#explorer").scrollIntoView();
  });
})();
