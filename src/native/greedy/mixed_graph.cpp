#include "greedy/mixed_graph.hpp"

namespace isthmus {

void PathSearch::reach(const MixedGraph& graph, const BitMatrix& onward, std::size_t start,
                       Word* frontier, const Word* barred, Word* found) {
    const std::size_t words = graph.words();
    std::size_t top = 0;
    for (std::size_t w = 0; w < words; ++w) {
        frontier[w] &= ~barred[w];
        found[w] = frontier[w];
        for_each_in_word(frontier[w], w, [&](std::size_t node) { stack_[top++] = node; });
    }
    // As if it had been seen, so that nothing goes there.
    if (start != no_node) put(found, start);
    while (top > 0) {
        const std::size_t node = stack_[--top];
        const Word* const on = onward.row(node);
        const Word* const across = graph.neighbours.row(node);
        for (std::size_t w = 0; w < words; ++w) {
            const Word fresh = (on[w] | across[w]) & ~(barred[w] | found[w]);
            found[w] |= fresh;
            for_each_in_word(fresh, w, [&](std::size_t next) { stack_[top++] = next; });
        }
    }
    if (start != no_node) drop(found, start);
}

bool PathSearch::connects(const MixedGraph& graph, const Word* within, Word* frontier,
                          const Word* target) {
    const std::size_t words = graph.words();
    std::size_t top = 0;
    for_each(frontier, words, [&](std::size_t node) { stack_[top++] = node; });
    while (top > 0) {
        const std::size_t node = stack_[--top];
        const Word* const across = graph.neighbours.row(node);
        for (std::size_t w = 0; w < words; ++w) {
            const Word fresh = across[w] & within[w] & ~frontier[w];
            if ((fresh & target[w]) != 0) return true;
            frontier[w] |= fresh;
            for_each_in_word(fresh, w, [&](std::size_t next) { stack_[top++] = next; });
        }
    }
    return false;
}

void CliqueList::list(const MixedGraph& graph, const Word* within) {
    const std::size_t words = graph.words();
    std::fill_n(cliques_.row(0), words, Word{0});
    std::copy_n(within, words, joining_.row(0));
    count_ = 1;
    for (std::size_t here = 0; here < count_; ++here) {
        const Word* const clique = cliques_.row(here);
        const Word* const joining = joining_.row(here);
        for (std::size_t w = 0; w < words; ++w) {
            for (Word rest = joining[w]; rest != 0;) {
                if (count_ == most) return;
                const auto node = (w << 6) + static_cast<std::size_t>(std::countr_zero(rest));
                rest &= rest - 1;
                const Word* const adjacent = graph.adjacent.row(node);
                std::copy_n(clique, words, cliques_.row(count_));
                cliques_.put(count_, node);
                // Only what comes later may join, so that no clique is listed twice.
                Word* const later = joining_.row(count_);
                std::fill_n(later, w, Word{0});
                later[w] = rest & adjacent[w];
                for (std::size_t v = w + 1; v < words; ++v) later[v] = joining[v] & adjacent[v];
                ++count_;
            }
        }
    }
}

}  // namespace isthmus
