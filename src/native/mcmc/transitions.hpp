#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "mcmc/tempered_chain.hpp"

namespace isthmus {

/// Probability of each state after one move of a kind, by going through all random choices. This is
/// how tests prove that a move has the right target; for a few nodes only.
[[nodiscard]] std::map<Chain::Labels, double> transitions(
    const std::shared_ptr<const FamilyTables>& tables, Space space, const Chain::Labels& labels,
    std::size_t move, double heat, Watch& watch);

/// Probability of each graph that a state draws.
[[nodiscard]] std::map<std::vector<Word>, double> graph_probabilities(
    const std::shared_ptr<const FamilyTables>& tables, Space space, const Chain::Labels& labels,
    Watch& watch);

/// Probability of each edge given a state, one row per child.
[[nodiscard]] std::vector<double> edge_probabilities(
    const std::shared_ptr<const FamilyTables>& tables, Space space, const Chain::Labels& labels);

}  // namespace isthmus
