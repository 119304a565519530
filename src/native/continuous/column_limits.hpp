#pragma once

#include <cstddef>
#include <limits>

namespace isthmus {

/// Limits of the solvers of one column.
inline constexpr int most_steps = 1000;
inline constexpr int most_halvings = 60;
/// Number of weights that may leave zero together.
inline constexpr int most_newcomers = 8;
inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

}  // namespace isthmus
