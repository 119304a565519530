"use strict";
// Exact answers from a network with parameters: a junction tree if it is discrete, a closed form if it is Gaussian.
Report.inference = (() => {
  const MOST = 1e6; // cells of all tables of a junction tree; more take longer than a click should

  // Nodes in an order that keeps tables small: the next is the one that joins the fewest pairs, or has the smallest table.
  function eliminated(near, cards, cost) {
    const left = new Set(near.keys());
    const links = near.map((own) => new Set(own));
    const costs = links.map((own, v) => cost(v, own, links, cards));
    const cliques = [];
    while (left.size) {
      let best = -1;
      for (const v of left) if (best < 0 || costs[v] < costs[best]) best = v;
      const own = [...links[best]];
      cliques.push([best, ...own]);
      const changed = new Set(own);
      for (const a of own) {
        links[a].delete(best);
        for (const b of own) if (a !== b) links[a].add(b);
        for (const b of links[a]) changed.add(b);
      }
      left.delete(best);
      for (const v of changed) costs[v] = cost(v, links[v], links, cards);
    }
    return cliques;
  }

  function fill(v, own, links) {
    let missing = 0;
    for (const a of own) for (const b of own) if (a < b && !links[a].has(b)) missing += 1;
    return missing;
  }

  const cells = (clique, cards) => clique.reduce((product, v) => product * cards[v], 1);
  const weight = (v, own, links, cards) => cells([v, ...own], cards);

  // Cliques that are part of no other one.
  function maximal(cliques) {
    const kept = [];
    for (const clique of [...cliques].sort((a, b) => b.length - a.length)) {
      if (!kept.some((other) => clique.every((v) => other.has(v)))) kept.push(new Set(clique));
    }
    return kept.map((clique) => [...clique].sort((a, b) => a - b));
  }

  // Positions in the table over `part` of all cells of the table over `whole`; the last variable changes fastest.
  function places(whole, part, cards) {
    const strides = new Map();
    let stride = 1;
    for (const v of [...part].reverse()) {
      strides.set(v, stride);
      stride *= cards[v];
    }
    let found = new Int32Array(1);
    for (const v of whole) {
      const step = strides.get(v) ?? 0;
      const next = new Int32Array(found.length * cards[v]);
      for (let i = 0, k = 0; i < found.length; i += 1) for (let level = 0; level < cards[v]; level += 1, k += 1) next[k] = found[i] + level * step;
      found = next;
    }
    return found;
  }

  function summed(table, place, size) {
    const sums = new Float64Array(size);
    if (place) for (let i = 0; i < table.length; i += 1) sums[place[i]] += table[i];
    else for (let i = 0; i < table.length; i += 1) sums[0] += table[i];
    return sums;
  }

  function multiply(table, place, factors) {
    for (let i = 0; i < table.length; i += 1) table[i] *= factors[place[i]];
  }

  // Cliques as a tree, each with the one it hangs on and what both have in common: largest intersections first.
  function tree(cliques, cards) {
    const best = cliques.map(() => ({ size: -1, parent: -1 }));
    const left = new Set(cliques.keys());
    const order = [];
    let next = 0;
    while (left.size) {
      left.delete(next);
      const members = new Set(cliques[next]);
      order.push({ clique: next, parent: best[next].parent });
      let following = -1;
      for (const c of left) {
        const common = cliques[c].reduce((sum, v) => sum + (members.has(v) ? 1 : 0), 0);
        if (common > best[c].size) best[c] = { size: common, parent: next };
        if (following < 0 || best[c].size > best[following].size) following = c;
      }
      next = following;
    }
    return order.map(({ clique, parent }) => {
      if (parent < 0) return { clique, parent };
      const shared = cliques[clique].filter((v) => cliques[parent].includes(v));
      return { clique, parent, size: cells(shared, cards), down: places(cliques[clique], shared, cards), up: places(cliques[parent], shared, cards) };
    });
  }

  // Rows of probabilities that add up to one exactly: files have rounded ones.
  function normalised(values, card) {
    return values.map((value, i) => {
      const start = i - (i % card);
      let sum = 0;
      for (let k = start; k < start + card; k += 1) sum += values[k];
      return value / sum;
    });
  }

  function discrete({ nodes, edges, levels, tables }) {
    const index = new Map(nodes.map((name, i) => [name, i]));
    const cards = nodes.map((name) => levels[name].length);
    const parents = nodes.map(() => []);
    for (const [from, to] of edges) parents[index.get(to)].push(index.get(from));
    for (const own of parents) own.sort((a, b) => a - b); // as the axes of tables
    const near = nodes.map(() => new Set());
    parents.forEach((own, v) => {
      const family = [...own, v];
      for (const a of family) for (const b of family) if (a !== b) near[a].add(b);
    });
    const total = (cliques) => cliques.reduce((sum, clique) => sum + cells(clique, cards), 0);
    const tries = [fill, weight].map((cost) => maximal(eliminated(near, cards, cost)));
    const cliques = total(tries[0]) <= total(tries[1]) ? tries[0] : tries[1];
    if (total(cliques) > MOST) return null;
    const base = cliques.map((clique) => new Float64Array(cells(clique, cards)).fill(1));
    const smallest = (family) => {
      const fitting = [...cliques.keys()].filter((c) => family.every((v) => cliques[c].includes(v)));
      return fitting.reduce((a, b) => (base[b].length < base[a].length ? b : a));
    };
    parents.forEach((own, v) => {
      const at = smallest([...own, v]);
      const values = normalised(tables[nodes[v]].flat(Infinity), cards[v]);
      const place = places(cliques[at], [...own, v], cards);
      for (let i = 0; i < place.length; i += 1) base[at][i] *= values[place[i]];
    });
    const links = tree(cliques, cards);
    const homes = nodes.map((_, v) => { const home = smallest([v]); return { home, place: places(cliques[home], [v], cards) }; });

    // Probabilities of all levels given what was observed (node -> level), and the probability of that.
    function query(evidence) {
      const tablesNow = base.map((table) => table.slice());
      for (const [v, level] of evidence) {
        const { home, place } = homes[v];
        const table = tablesNow[home];
        for (let i = 0; i < place.length; i += 1) if (place[i] !== level) table[i] = 0;
      }
      let logarithm = 0;
      const messages = new Map();
      for (const { clique, parent, size, down, up } of [...links].reverse()) {
        const message = parent < 0 ? summed(tablesNow[clique], null, 1) : summed(tablesNow[clique], down, size);
        const sum = message.reduce((x, y) => x + y, 0);
        if (sum === 0) return { probability: 0, marginals: null };
        logarithm += Math.log(sum);
        if (parent < 0) continue;
        for (let i = 0; i < size; i += 1) message[i] /= sum;
        messages.set(clique, message);
        multiply(tablesNow[parent], up, message);
      }
      for (const { clique, parent, size, down, up } of links) {
        if (parent < 0) continue;
        const above = summed(tablesNow[parent], up, size);
        const sent = messages.get(clique);
        const total = above.reduce((x, y) => x + y, 0);
        for (let i = 0; i < size; i += 1) above[i] = sent[i] ? above[i] / sent[i] / total : 0;
        multiply(tablesNow[clique], down, above);
      }
      const marginals = homes.map(({ home, place }, v) => {
        const own = Array.from(summed(tablesNow[home], place, cards[v]));
        const sum = own.reduce((x, y) => x + y, 0);
        return own.map((value) => value / sum);
      });
      return { probability: Math.exp(logarithm), marginals };
    }

    return { type: "discrete", levels: nodes.map((name) => levels[name].map(String)), query };
  }

  function gaussian({ nodes, edges, intercepts, coefficients, variances }) {
    const index = new Map(nodes.map((name, i) => [name, i]));
    const own = nodes.map((name) => Object.entries(coefficients[name]).map(([parent, value]) => [index.get(parent), value]));
    const noise = nodes.map((name) => variances[name]);
    const waiting = own.map((parents) => parents.length);
    const children = nodes.map(() => []);
    for (const [from, to] of edges) children[index.get(from)].push(index.get(to));
    const order = [...nodes.keys()].filter((v) => !waiting[v]);
    for (let i = 0; i < order.length; i += 1) for (const child of children[order[i]]) if (!(waiting[child] -= 1)) order.push(child);
    const forward = (start) => {
      for (const v of order) for (const [parent, value] of own[v]) start[v] += value * start[parent];
      return start;
    };
    // The total effect of the noise of each node on one of them.
    function effects(node) {
      const found = new Float64Array(nodes.length);
      found[node] = 1;
      for (let i = order.indexOf(node); i >= 0; i -= 1) for (const [parent, value] of own[order[i]]) found[parent] += value * found[order[i]];
      return found;
    }
    const means = forward(Float64Array.from(nodes, (name) => intercepts[name]));
    const spread = Float64Array.from(nodes, (_, v) => effects(v).reduce((sum, effect, u) => sum + effect * effect * noise[u], 0));

    // Means and standard deviations given what was observed (node -> number), one observation after the other.
    function query(evidence) {
      const [mean, variance] = [means.slice(), spread.slice()];
      const seen = [];
      for (const [e, value] of evidence) {
        const column = forward(effects(e).map((effect, u) => effect * noise[u]));
        for (const other of seen) for (let v = 0, share = other[e]; v < column.length; v += 1) column[v] -= share * other[v];
        const rest = column[e];
        const surprise = value - mean[e];
        if (rest <= 1e-12 * spread[e]) { // the observations before determine it
          if (Math.abs(surprise) > 1e-6 * Math.sqrt(spread[e])) return { marginals: null };
          continue;
        }
        const scale = Math.sqrt(rest);
        for (let v = 0; v < column.length; v += 1) {
          column[v] /= scale;
          mean[v] += (column[v] * surprise) / scale;
          variance[v] = Math.max(0, variance[v] - column[v] * column[v]);
        }
        [mean[e], variance[e]] = [value, 0];
        seen.push(column);
      }
      return { marginals: nodes.map((_, v) => ({ mean: mean[v], deviation: Math.sqrt(variance[v]) })) };
    }

    return { type: "gaussian", query };
  }

  // A network that can be asked, or the reason why there is none.
  function prepare() {
    const { json } = Report.data.exports;
    if (!json) return "The network is too large to be part of this page.";
    const network = JSON.parse(json);
    if (network.type === "gaussian") return gaussian(network);
    if (network.type === "discrete") return discrete(network) ?? "So many variables of this network depend on each other at once that exact answers take too long for a page.";
    return "This network has categories and numbers, for which a page cannot compute exact answers.";
  }

  return { prepare, discrete, gaussian };
})();
