#include "continuous/regression.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "continuous/vectors.hpp"

namespace isthmus {

Regression regress(std::span<const double> moments, std::size_t variables, std::size_t child,
                   Variables parents, double tolerance, Watch& watch) {
    const std::size_t k = parents.size();
    const auto moment = [&](std::size_t i, std::size_t j) { return moments[i * variables + j]; };
    Regression result{.share = 1.0, .weights = std::vector<double>(k)};
    const double total = moment(child, child);
    if (total <= 0.0) return result;
    // The upper factor with the right-hand side as its last column: one row at a time, so that
    // all loops run along rows.
    const std::size_t stride = k + 1;
    std::vector<double> upper(k * stride);
    for (std::size_t a = 0; a < k; ++a) {
        const auto i = static_cast<std::size_t>(parents[a]);
        double* const row = upper.data() + a * stride;
        // Below the diagonal the original reads moments[later, earlier].
        for (std::size_t b = a; b < k; ++b) {
            row[b] = moment(static_cast<std::size_t>(parents[b]), i);
        }
        row[k] = moment(i, child);
        subtract_rows(row + a, upper.data() + a, stride, a, stride - a);
        const double pivot =
            row[a] > tolerance * moment(i, i) ? std::sqrt(row[a])
                                              : std::numeric_limits<double>::infinity();
        for (std::size_t b = a + 1; b <= k; ++b) row[b] /= pivot;
        row[a] = pivot;
        result.share -= row[k] * row[k] / total;
        watch.poll_signals();
    }
    auto& weights = result.weights;
    for (std::size_t a = 0; a < k; ++a) weights[a] = upper[a * stride + k];
    for (std::size_t a = k; a-- > 0;) {
        const double* const row = upper.data() + a * stride;
        for (std::size_t m = a + 1; m < k; ++m) weights[a] -= row[m] * weights[m];
        weights[a] /= row[a];
    }
    result.share = std::max(result.share, tolerance);
    return result;
}

}  // namespace isthmus
