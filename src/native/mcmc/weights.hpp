#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus {

/// The logarithm of no weight at all.
inline constexpr double none = -std::numeric_limits<double>::infinity();
/// Smaller mantissas may have lost digits, or everything.
inline constexpr double least_mantissa = 1e-280;
/// A difference below this share of its terms has lost too many digits. What is such a share of the
/// weight of one state is at most such a share of the whole distribution: another state, where the
/// node has no parent that must be there, has all of that weight. So the digits that differences
/// above this share have lost change no probability by more than rounding does.
inline constexpr double cancelled = 1e-11;

/// The logarithm of exp(a) + exp(b).
[[nodiscard]] inline double log_add(double a, double b) {
    const double top = std::max(a, b);
    const double gap = std::min(a, b) - top;
    // Also when both are minus infinity, where the gap is not a number.
    return gap > -40.0 ? top + std::log1p(std::exp(gap)) : top;
}

}  // namespace isthmus
