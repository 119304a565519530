#include "scoring/doubled_factor.hpp"

#include <algorithm>

#include "core/simd.hpp"

namespace isthmus {

bool DoubledFactor::factor(const Correlations& correlation, Variables columns, double least) {
    const std::size_t size = columns.size();
    const std::size_t groups = (size + width - 1) / width;
    columns_.assign(columns.begin(), columns.end());
    lower_.resize(size * size);
    rounded_.resize(size * size);
    blocks_.resize(groups * size);
    inverses_.clear();
    pivots_.clear();
    rows_.clear();
    for (std::size_t j = 0; j < size; ++j) {
        const auto row = correlation.row(index(columns[j]));
        const std::span factors{lower_.data() + j * size, j};
        // Rows before this one, in its group, come along and are not used.
        for (std::size_t g = j / width; g < groups; ++g) {
            Lanes& own = blocks_[g * size + j];
            own.low.fill(0.0);
            for (std::size_t lane = 0; lane < width; ++lane) {
                const std::size_t i = g * width + lane;
                own.high[lane] = i == j ? 1.0 : i < size ? row[index(columns[i])] : 0.0;
            }
            subtract(factors, blocks_.data() + g * size, own);
        }
        const Lanes& first = blocks_[j / width * size + j];
        const Doubled pivot = renormalised(first.high[j % width], first.low[j % width]);
        if (!(pivot.high > least)) return false;
        const Doubled root = square_root(pivot);
        pivots_.push_back(pivot.high);
        inverses_.push_back(inverse(root));
        for (std::size_t g = j / width; g < groups; ++g) scale(inverses_[j], blocks_[g * size + j]);
        for (std::size_t i = j; i < size; ++i) {
            const Lanes& own = blocks_[i / width * size + j];
            const Doubled value = i == j ? root : Doubled{own.high[i % width], own.low[i % width]};
            lower_[i * size + j] = value;
            rounded_[i * size + j] = value.high;
        }
        rows_.push_back(rounded_.data() + j * size);
    }
    return true;
}

/// Subtracts the products of one row's factors and those of the rows in the lanes.
ISTHMUS_CLONES
void DoubledFactor::subtract(std::span<const Doubled> factors, const Lanes* earlier, Lanes& own) {
    // A local copy stays in registers over the loop over t.
    Lanes sum = own;
    for (std::size_t t = 0; t < factors.size(); ++t) {
        const Doubled factor = factors[t];
        for (std::size_t j = 0; j < width; ++j) {
            Doubled s{sum.high[j], sum.low[j]};
            subtract_product(s, factor, {earlier[t].high[j], earlier[t].low[j]});
            sum.high[j] = s.high;
            sum.low[j] = s.low;
        }
    }
    own = sum;
}

ISTHMUS_CLONES
void DoubledFactor::scale(Doubled factor, Lanes& own) {
    for (std::size_t j = 0; j < width; ++j) {
        const Doubled z = product(renormalised(own.high[j], own.low[j]), factor);
        own.high[j] = z.high;
        own.low[j] = z.low;
    }
}

void DoubledFactor::try_columns(const Correlations& correlation, Variables tried,
                                std::span<Left> out) {
    const std::size_t size = columns_.size();
    solved_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
        const auto row = correlation.row(index(columns_[i]));
        Lanes& own = solved_[i];
        own.low.fill(0.0);
        for (std::size_t j = 0; j < width; ++j) {
            // Lanes that are not needed repeat the first column.
            own.high[j] = row[index(tried[j < tried.size() ? j : 0])];
        }
        subtract({lower_.data() + i * size, i}, solved_.data(), own);
        scale(inverses_[i], own);
    }
    for (std::size_t j = 0; j < tried.size(); ++j) {
        Doubled left{1.0, 0.0};
        Doubled before = left;
        for (std::size_t i = 0; i < size; ++i) {
            const Doubled z{solved_[i].high[j], solved_[i].low[j]};
            if (i + 1 == size) before = left;
            subtract_product(left, z, z);
        }
        out[j].own = left.high + left.low;
        out[j].before_last = before.high + before.low;
        // The product of the two pivots at the end is the same in either order.
        out[j].last = pivots_.back() * out[j].own / out[j].before_last;
    }
}

}  // namespace isthmus
