#pragma once

#include <cstddef>
#include <vector>

#include "core/watch.hpp"

namespace isthmus {

/// A directed graph: the successors of each node, ascending.
using Successors = std::vector<std::vector<std::size_t>>;

/// The strongly connected parts of a graph, each ascending; of two parts the one that can be reached
/// from the other comes first. Pearce's algorithm, in the order of SciPy's.
[[nodiscard]] std::vector<std::vector<std::size_t>> strong_parts(const Successors& graph,
                                                                 Watch& watch);

}  // namespace isthmus
