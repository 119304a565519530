#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/exclusive.hpp"
#include "core/watch.hpp"
#include "core/zeroed_array.hpp"
#include "exact/component_problem.hpp"

namespace isthmus {

/// Dynamic programming over all subsets of the nodes: the plain reference of exact searches.
class SubsetDP {
public:
    explicit SubsetDP(ComponentProblem problem);

    /// Solves subsets until the watch ends the slice; returns whether all are solved.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t solved() const { return next_; }
    [[nodiscard]] bool done() const { return next_ == values_.size(); }
    /// The line of each node in the best graph; nothing before the end, or if there is no graph.
    [[nodiscard]] std::vector<std::int64_t> lines() const;
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void solve(Word subset);

    ComponentProblem problem_;
    ZeroedArray<double> values_;      // best score of each subset
    ZeroedArray<std::int8_t> sinks_;  // its last node; -1 if there is no graph
    Word next_ = 1;                   // all before are solved
    InUse in_use_;
};

}  // namespace isthmus
