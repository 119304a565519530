#pragma once

#include <algorithm>
#include <cmath>

namespace isthmus {

/// The logarithm of exp(a) + exp(b).
[[nodiscard]] inline double log_add(double a, double b) {
    const double top = std::max(a, b);
    const double gap = std::min(a, b) - top;
    // Also when both are minus infinity, where the gap is not a number.
    return gap > -40.0 ? top + std::log1p(std::exp(gap)) : top;
}

}  // namespace isthmus
