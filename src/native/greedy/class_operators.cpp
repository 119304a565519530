#include "greedy/class_operators.hpp"

#include <algorithm>
#include <limits>

namespace isthmus {

namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

}  // namespace

ClassOperators::ClassOperators(const ClassRules& rules, ScoreRows& rows)
    : rules_{rules},
      rows_{rows},
      words_{(rules.size() + 63) / 64},
      paths_{rules.size()},
      deletion_cliques_{rules.size()},
      move_cliques_{rules.size()},
      age_(rules.size()),
      rest_(rules.size()),
      rest_found_(rules.size()),
      base_(words_),
      near_(words_),
      common_(words_),
      frontier_(words_),
      found_(words_),
      other_(words_),
      within_(words_),
      reached_(words_) {}

std::uint64_t ClassOperators::refusal(const ClassState& state, OperatorKind kind, std::size_t x,
                                      std::size_t y, const Word* chosen) const {
    const std::uint64_t here =
        (state.stamp * 4 + static_cast<std::uint64_t>(kind)) * 0x9E3779B97F4A7C15;
    return rows_.key(y, chosen) ^ mix(mix(x) ^ here);
}

void ClassOperators::refuse(const ClassState& state, OperatorKind kind, std::size_t y) {
    const BestOperators& best = state.operators(kind);
    refused_.insert(refusal(state, kind, best.other[y], y, best.chosen.row(y)));
}

bool ClassOperators::is_refused(const ClassState& state, OperatorKind kind, std::size_t x,
                                std::size_t y, const Word* chosen) const {
    return !refused_.empty() && refused_.contains(refusal(state, kind, x, y, chosen));
}

void ClassOperators::keep(ClassState& state, OperatorKind kind, std::size_t y, double gain,
                          std::size_t x, const Word* chosen) const {
    BestOperators& best = state.operators(kind);
    best.gain[y] = gain;
    best.other[y] = x;
    std::copy_n(chosen, words_, best.chosen.row(y));
}

double ClassOperators::deletion_gain(const ClassState& state, std::size_t x, std::size_t y,
                                     const Word* chosen, Watch& watch) {
    const Word* const parents = state.graph.parents.row(y);
    for (std::size_t w = 0; w < words_; ++w) base_[w] = parents[w] | chosen[w];
    put(base_.data(), x);
    const double full = rows_.score(y, base_.data(), watch);
    drop(base_.data(), x);
    return rows_.score(y, base_.data(), watch) - full;
}

void ClassOperators::renew_deletions(ClassState& state, std::size_t y, std::vector<Trial>* trials,
                                     Watch& watch) {
    const MixedGraph& graph = state.graph;
    const std::size_t most_trials = 8 * rules_.size() + 256;
    const std::size_t listed = trials == nullptr ? 0 : trials->size();
    double& best = state.operators(OperatorKind::deletion).gain[y];
    best = nothing;
    state.blocked_deletions[y] = 0;
    const auto try_all = [&](std::size_t x) {
        // Only one of the two equal ways to delete x - y counts.
        if (x > y && !graph.parents.has(y, x)) return;
        if (rules_.must(x, y) || rules_.must(y, x)) return;
        for (std::size_t w = 0; w < words_; ++w) {
            common_[w] = graph.neighbours.row(y)[w] & graph.adjacent.row(x)[w];
        }
        deletion_cliques_.list(graph, common_.data());
        for (std::size_t i = 0; i < deletion_cliques_.count(); ++i) {
            const Word* const chosen = deletion_cliques_.clique(i);
            const double gain = deletion_gain(state, x, y, chosen, watch);
            if (trials != nullptr && trials->size() < most_trials && gain == gain) {
                trials->push_back({x, y, gain, {chosen, chosen + words_}});
            }
            if (!(gain > best)) continue;
            if (is_refused(state, OperatorKind::deletion, x, y, chosen)) {
                state.blocked_deletions[y] = 1;
            } else {
                keep(state, OperatorKind::deletion, y, gain, x, chosen);
            }
        }
    };
    try {
        for (std::size_t w = 0; w < words_; ++w) {
            for_each_in_word(graph.parents.row(y)[w] | graph.neighbours.row(y)[w], w, try_all);
        }
    } catch (...) {
        // The target will be looked at from its beginning.
        if (trials != nullptr) trials->erase(trials->begin() + static_cast<std::ptrdiff_t>(listed), trials->end());
        throw;
    }
    state.stale_deletions[y] = 0;
}

bool ClassOperators::lacks(const ClassState& state, std::size_t x, std::size_t y,
                           const Word* chosen) const {
    // Some neighbour of y adjacent to x is not in the set chosen.
    const Word* const neighbours = state.graph.neighbours.row(y);
    const Word* const adjacent = state.graph.adjacent.row(x);
    for (std::size_t w = 0; w < words_; ++w) {
        if ((neighbours[w] & adjacent[w] & ~chosen[w]) != 0) return true;
    }
    return false;
}

bool ClassOperators::defies(const ClassState& state, std::size_t x, std::size_t y,
                            const Word* chosen) const {
    // A quick look: whether an insertion would compel x -> y although that is forbidden.
    if (!rules_.any() || !(rules_.never(x, y) || rules_.must(y, x))) return false;
    const Word* const parents = state.graph.parents.row(y);
    const Word* const adjacent = state.graph.adjacent.row(x);
    for (std::size_t w = 0; w < words_; ++w) {
        if (((parents[w] | chosen[w]) & ~adjacent[w]) != 0) return true;
    }
    return false;
}

bool ClassOperators::may_turn(const ClassState& state, std::size_t x, std::size_t y,
                              const Word* chosen) {
    const MixedGraph& graph = state.graph;
    const Word* const near_x = graph.neighbours.row(x);
    const Word* const near_y = graph.neighbours.row(y);
    if (graph.children.has(y, x)) {
        if (lacks(state, x, y, chosen)) return false;
        for (std::size_t w = 0; w < words_; ++w) {
            frontier_[w] = graph.children.row(y)[w] | near_y[w];
            other_[w] = chosen[w] | near_x[w];
        }
        drop(frontier_.data(), x);
        paths_.reach(graph, graph.children, y, frontier_.data(), other_.data(), found_.data());
        return !has(found_.data(), x);
    }
    // An undirected edge: the part of the set that x is apart from makes the turn compelled.
    bool compels = false;
    for (std::size_t w = 0; w < words_; ++w) {
        frontier_[w] = chosen[w] & ~near_x[w];
        within_[w] = near_y[w] & ~(chosen[w] & near_x[w]);
        other_[w] = near_y[w] & near_x[w] & ~chosen[w];
        compels = compels || frontier_[w] != 0;
    }
    return compels && !paths_.connects(graph, within_.data(), frontier_.data(), other_.data());
}

double ClassOperators::turn_rest(const ClassState& state, std::size_t x, std::size_t y,
                                 const Word* chosen, Watch& watch) {
    // What it brings to take y from the parents of x. It seldom depends on the set chosen, so it is
    // kept while the same target is looked at.
    const bool undirected = state.graph.neighbours.has(x, y);
    const Word* const neighbours = state.graph.neighbours.row(x);
    bool alone = true;
    for (std::size_t w = 0; w < words_; ++w) {
        near_[w] = undirected ? chosen[w] & neighbours[w] : 0;
        alone = alone && near_[w] == 0;
    }
    if (alone && rest_found_[x] == renewals_) return rest_[x];
    const double value = deletion_gain(state, y, x, near_.data(), watch);
    if (alone) {
        rest_found_[x] = renewals_;
        rest_[x] = value;
    }
    return value;
}

void ClassOperators::renew_moves(ClassState& state, std::size_t y, Watch& watch) {
    if (renewal_.target != y || renewal_.stamp != state.stamp) {
        ++renewals_;
        state.operators(OperatorKind::turn).gain[y] = nothing;
        state.operators(OperatorKind::insertion).gain[y] = nothing;
        move_cliques_.list(state.graph, state.graph.neighbours.row(y));
        renewal_ = {.target = y, .stamp = state.stamp, .next = 0, .blocked = false};
    }
    while (renewal_.next < move_cliques_.count()) {
        look_at_clique(state, y, move_cliques_.clique(renewal_.next), watch);
        if (++renewal_.next % 16 == 0) watch.poll();
    }
    age_[y] = state.stamp;
    state.blocked_moves[y] = renewal_.blocked ? 1 : 0;
    state.stale_moves[y] = 0;
    renewal_.target = PathSearch::no_node;
}

void ClassOperators::look_at_clique(ClassState& state, std::size_t y, const Word* chosen,
                                    Watch& watch) {
    const MixedGraph& graph = state.graph;
    const double& best_turn = state.operators(OperatorKind::turn).gain[y];
    const double& best_insertion = state.operators(OperatorKind::insertion).gain[y];
    for (std::size_t w = 0; w < words_; ++w) base_[w] = graph.parents.row(y)[w] | chosen[w];
    bool looked = false;
    for (const auto& [x, gain] : rows_.row(y, base_.data(), watch)) {
        if (graph.adjacent.has(y, x)) {
            if (gain <= best_turn) continue;
            const double with_rest = gain + turn_rest(state, x, y, chosen, watch);
            if (!(with_rest > std::max(best_turn, tolerance_))) continue;
            if (may_turn(state, x, y, chosen) &&
                !is_refused(state, OperatorKind::turn, x, y, chosen)) {
                keep(state, OperatorKind::turn, y, with_rest, x, chosen);
            } else {
                renewal_.blocked = true;
            }
            continue;
        }
        const bool banned = (state.banned_one == x && state.banned_other == y) ||
                            (state.banned_one == y && state.banned_other == x);
        if (gain <= best_insertion || lacks(state, x, y, chosen) || banned ||
            defies(state, x, y, chosen)) {
            continue;
        }
        if (!looked) {
            for (std::size_t w = 0; w < words_; ++w) {
                frontier_[w] = graph.children.row(y)[w] | graph.neighbours.row(y)[w];
            }
            paths_.reach(graph, graph.children, y, frontier_.data(), chosen, reached_.data());
            looked = true;
        }
        if (has(reached_.data(), x) || is_refused(state, OperatorKind::insertion, x, y, chosen)) {
            renewal_.blocked = true;
        } else {
            keep(state, OperatorKind::insertion, y, gain, x, chosen);
        }
    }
}

void ClassOperators::write_change(const ClassState& state, OperatorKind kind, std::size_t y,
                                  MixedGraph& out) {
    const MixedGraph& graph = state.graph;
    const BestOperators& best = state.operators(kind);
    const std::size_t x = best.other[y];
    const Word* const chosen = best.chosen.row(y);
    const std::size_t words = graph.words();
    out = graph;
    for_each(chosen, words, [&](std::size_t s) { out.orient(s, y); });
    if (kind == OperatorKind::turn && graph.children.has(y, x)) {
        for_each(graph.neighbours.row(x), words, [&](std::size_t s) {
            if (!has(chosen, s)) out.orient(x, s);
        });
    }
    if (kind == OperatorKind::deletion) {
        for_each(graph.neighbours.row(y), words, [&](std::size_t s) {
            if (has(chosen, s) || s == x || !graph.adjacent.has(x, s)) return;
            out.orient(y, s);
            if (graph.neighbours.has(x, s)) out.orient(x, s);
        });
    }
    out.orient(x, y);
    if (kind == OperatorKind::deletion) {
        out.parents.drop(y, x);
        out.children.drop(x, y);
        out.adjacent.drop(y, x);
        out.adjacent.drop(x, y);
    } else {
        out.adjacent.put(y, x);
        out.adjacent.put(x, y);
    }
}

}  // namespace isthmus
