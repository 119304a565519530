#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

struct Regression {
    double share;                 // of the child's variance that the parents leave
    std::vector<double> weights;  // of the parents; zero for one that those before it determine
};

/// Regresses a child on parents by their second moments, rows of length `variables`.
///
/// A parent explains nothing more if those before it leave no more than `tolerance` of its
/// variance. Looks for signals, but does not pause.
[[nodiscard]] Regression regress(std::span<const double> moments, std::size_t variables,
                                 std::size_t child, Variables parents, double tolerance,
                                 Watch& watch);

}  // namespace isthmus
