#pragma once

#include <cstddef>
#include <vector>

#include "mcmc/chain.hpp"

namespace isthmus {

/// Averages the probabilities of all edges given the states of a chain (Rao-Blackwell): without the
/// noise of drawing a graph from each state.
class EdgeAverages {
public:
    explicit EdgeAverages(const FamilyTables& tables);

    /// Counts the current state of a chain. Nodes with the same possible parents as in the state
    /// before are not computed again.
    void add(const Chain& chain);
    [[nodiscard]] std::size_t states() const { return states_; }
    /// The averages, one row per child; not a number before the first state.
    [[nodiscard]] std::vector<double> means() const;

private:
    const FamilyTables& tables_;
    ParentDemands now_;
    ParentDemands next_;
    Matrix<double> current_;           // probabilities given the current state
    Matrix<double> sums_;              // of all states before it
    std::vector<std::size_t> repeats_;  // how often each row of the current state counts
    std::size_t states_ = 0;
};

}  // namespace isthmus
