#include "greedy/essential_graph.hpp"

#include <algorithm>

namespace isthmus {

EssentialGraphs::EssentialGraphs(const ClassRules& rules)
    : rules_{rules},
      size_{rules.size()},
      left_{size_},
      work_{size_},
      fresh_{size_},
      dag_{size_, size_},
      compelled_{size_, size_},
      order_(size_),
      place_(size_),
      stack_(size_),
      state_(size_) {}

EssentialGraphs::Outcome EssentialGraphs::make(const MixedGraph& graph) {
    if (!extend(graph)) return Outcome::broken;
    label();
    write_essential();
    if (!rules_.any()) return Outcome::made;
    if (!lay_down(fresh_) || !extend(work_)) return Outcome::refused;
    label();
    for (std::size_t y = 0; y < size_; ++y) {
        if (!std::equal(compelled_.row(y), compelled_.row(y) + compelled_.words(),
                        fresh_.parents.row(y))) {
            return Outcome::refused;
        }
    }
    return Outcome::made;
}

bool EssentialGraphs::find_member(const MixedGraph& essential) {
    return lay_down(essential) && extend(work_);
}

bool EssentialGraphs::is_sink(std::size_t node) const {
    const std::size_t words = left_.words();
    const Word* const children = left_.children.row(node);
    for (std::size_t w = 0; w < words; ++w) {
        if (children[w] != 0) return false;
    }
    // Its neighbours are adjacent to all that is adjacent to it.
    const Word* const own = left_.adjacent.row(node);
    const Word* const neighbours = left_.neighbours.row(node);
    for (std::size_t w = 0; w < words; ++w) {
        for (Word rest = neighbours[w]; rest != 0; rest &= rest - 1) {
            const auto y = (w << 6) + static_cast<std::size_t>(std::countr_zero(rest));
            const Word* const other = left_.adjacent.row(y);
            for (std::size_t v = 0; v < words; ++v) {
                Word apart = own[v] & ~other[v];
                if (y >> 6 == v) apart &= ~BitMatrix::bit(y);
                if (apart != 0) return false;
            }
        }
    }
    return true;
}

bool EssentialGraphs::extend(const MixedGraph& graph) {
    // Sinks are taken away one by one (Dor and Tarsi, 1992).
    left_ = graph;
    const std::size_t words = graph.words();
    for (std::size_t x = 0; x < size_; ++x) stack_[x] = size_ - 1 - x;
    std::ranges::fill(state_, State::waiting);
    std::size_t top = size_;
    std::size_t remaining = size_;
    while (top > 0) {
        const std::size_t x = stack_[--top];
        state_[x] = State::seen;
        if (!is_sink(x)) continue;
        order_[--remaining] = x;
        state_[x] = State::removed;
        for (std::size_t w = 0; w < words; ++w) {
            dag_.row(x)[w] = graph.parents.row(x)[w] | left_.neighbours.row(x)[w];
            for_each_in_word(left_.adjacent.row(x)[w], w, [&](std::size_t y) {
                left_.adjacent.drop(y, x);
                left_.children.drop(y, x);
                left_.neighbours.drop(y, x);
                // Only those next to x can have become free.
                if (state_[y] == State::seen) {
                    state_[y] = State::waiting;
                    stack_[top++] = y;
                }
            });
        }
    }
    return remaining == 0;
}

void EssentialGraphs::label() {
    // Chickering's labelling (1995): of the parents of a node, the last in the order settles which
    // of them are compelled.
    const std::size_t words = dag_.words();
    for (std::size_t j = 0; j < size_; ++j) place_[order_[j]] = j;
    for (const std::size_t y : order_) {
        const Word* const own = dag_.row(y);
        Word* const result = compelled_.row(y);
        std::size_t last = PathSearch::no_node;
        for_each(own, words, [&](std::size_t x) {
            if (last == PathSearch::no_node || place_[x] > place_[last]) last = x;
        });
        if (last == PathSearch::no_node) {
            std::fill_n(result, words, Word{0});
            continue;
        }
        bool all = false;
        for (std::size_t w = 0; w < words; ++w) {
            Word apart = own[w] & ~dag_.row(last)[w];
            if (last >> 6 == w) apart &= ~BitMatrix::bit(last);
            all = all || apart != 0 || (compelled_.row(last)[w] & ~own[w]) != 0;
        }
        std::copy_n(all ? own : compelled_.row(last), words, result);
    }
}

void EssentialGraphs::write_essential() {
    fresh_.parents = compelled_;
    fresh_.children.clear();
    fresh_.neighbours.clear();
    fresh_.adjacent.clear();
    const std::size_t words = dag_.words();
    for (std::size_t y = 0; y < size_; ++y) {
        for (std::size_t w = 0; w < words; ++w) {
            const Word compelled = compelled_.row(y)[w];
            const Word all = dag_.row(y)[w];
            fresh_.neighbours.row(y)[w] |= all & ~compelled;
            fresh_.adjacent.row(y)[w] |= all;
            for_each_in_word(all, w, [&](std::size_t x) {
                fresh_.adjacent.put(x, y);
                ((compelled & BitMatrix::bit(x)) == 0 ? fresh_.neighbours : fresh_.children)
                    .put(x, y);
            });
        }
    }
}

bool EssentialGraphs::lay_down(const MixedGraph& essential) {
    for (const auto& [a, b] : rules_.required()) {
        if (!essential.adjacent.has(a, b)) return false;
    }
    work_ = essential;
    if (!rules_.any()) return true;
    const std::size_t words = essential.words();
    bool possible = true;
    for (std::size_t a = 0; a < size_; ++a) {
        for_each(essential.adjacent.row(a), words, [&](std::size_t b) {
            if (!rules_.must(a, b) && !rules_.never(b, a)) return;
            // The other direction is barred: this one must be possible, and not barred too.
            if (essential.parents.has(a, b) || rules_.never(a, b)) {
                possible = false;
            } else {
                work_.orient(a, b);
            }
        });
    }
    return possible;
}

}  // namespace isthmus
