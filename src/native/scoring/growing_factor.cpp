#include "scoring/growing_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus {

void GrowingFactor::extend_to(const Correlations& correlation, Variables columns,
                              double tolerance, Watch& watch) {
    const auto common = std::ranges::mismatch(columns, columns_).in1 - columns.begin();
    columns_.resize(static_cast<std::size_t>(common));
    pivots_.resize(columns_.size());
    rows_.resize(columns_.size());
    while (columns_.size() < columns.size()) {
        const std::size_t i = columns_.size();
        if (values_.size() == i) values_.emplace_back();
        if (values_[i].size() < i + 1) values_[i].resize(i + 1);
        double* const own = values_[i].data();
        const auto row = correlation.row(static_cast<std::size_t>(columns[i]));
        double pivot = 1.0;
        for (std::size_t j = 0; j < i; ++j) {
            const double* const other = rows_[j];
            double s = row[static_cast<std::size_t>(columns[j])];
            for (std::size_t t = 0; t < j; ++t) s -= own[t] * other[t];
            own[j] = s / other[j];
            pivot -= own[j] * own[j];
        }
        // A column that the earlier ones determine explains nothing: its diagonal is infinite.
        const bool determined = pivot <= tolerance;
        own[i] = determined ? std::numeric_limits<double>::infinity() : std::sqrt(pivot);
        columns_.push_back(columns[i]);
        pivots_.push_back(determined ? tolerance : pivot);
        rows_.push_back(own);
        watch.poll();
    }
}

}  // namespace isthmus
