#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "greedy/mixed_graph.hpp"

namespace isthmus {

/// Kinds of operators on equivalence classes, in the order in which they are preferred.
enum class OperatorKind : std::uint8_t { deletion, turn, insertion };

/// The best operator of one kind for every target.
struct BestOperators {
    explicit BestOperators(std::size_t nodes)
        : gain(nodes, -std::numeric_limits<double>::infinity()),
          other(nodes, PathSearch::no_node),
          chosen{nodes, nodes} {}

    std::vector<double> gain;
    std::vector<std::size_t> other;  // the x of the operator
    BitMatrix chosen;                // its set
};

/// An equivalence class with what a search knows of it. Copied to save it and to go back.
struct ClassState {
    explicit ClassState(std::size_t nodes)
        : graph{nodes},
          best{BestOperators{nodes}, BestOperators{nodes}, BestOperators{nodes}},
          stale_deletions(nodes, 1),
          stale_moves(nodes, 1),
          blocked_deletions(nodes),
          blocked_moves(nodes) {}

    [[nodiscard]] BestOperators& operators(OperatorKind kind) {
        return best[static_cast<std::size_t>(kind)];
    }
    [[nodiscard]] const BestOperators& operators(OperatorKind kind) const {
        return best[static_cast<std::size_t>(kind)];
    }

    MixedGraph graph;  // the essential graph
    std::array<BestOperators, 3> best;
    // Targets whose best operators must be found again.
    std::vector<std::uint8_t> stale_deletions;
    std::vector<std::uint8_t> stale_moves;  // turns and insertions
    // Targets for which a better operator is not possible now, but may be after another change.
    std::vector<std::uint8_t> blocked_deletions;
    std::vector<std::uint8_t> blocked_moves;
    double total = -std::numeric_limits<double>::infinity();
    std::size_t steps = 0;
    std::size_t stamp = 0;                    // a number for the class itself
    std::uint64_t fingerprint = 0;            // of the essential graph
    std::size_t forced = PathSearch::no_node;  // target of a deletion to make whatever it costs
    // A pair that must not be joined by an insertion.
    std::size_t banned_one = PathSearch::no_node;
    std::size_t banned_other = PathSearch::no_node;
};

}  // namespace isthmus
