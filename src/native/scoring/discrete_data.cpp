#include "scoring/discrete_data.hpp"

#include <numeric>
#include <utility>

namespace isthmus {

DiscreteData::DiscreteData(Matrix<std::uint16_t> codes, std::size_t rows,
                           std::vector<std::int64_t> weights,
                           std::vector<std::int64_t> cardinalities, bool with_bitmaps)
    : codes_{std::move(codes)},
      rows_{rows},
      weights_{std::move(weights)},
      cardinalities_{std::move(cardinalities)},
      total_{weights_.empty() ? static_cast<std::int64_t>(rows)
                              : std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0})},
      constant_(rows),
      words_{bitmap_words(rows)},
      first_(cardinalities_.size(), none) {
    if (with_bitmaps && weights_.empty()) make_bitmaps();
}

void DiscreteData::make_bitmaps() {
    std::size_t count = 0;
    for (std::size_t v = 0; v < variables(); ++v) {
        const std::size_t levels_here = levels(static_cast<Variable>(v));
        if (levels_here > most_levels) continue;
        first_[v] = count;
        count += levels_here;
    }
    maps_ = ZeroedArray<Word>{count * words_};
    totals_.resize(count);
    for (std::size_t v = 0; v < variables(); ++v) {
        if (first_[v] == none) continue;
        const std::span<const std::uint16_t> codes{column(static_cast<Variable>(v)), rows_};
        for (std::size_t level = 0; level < levels(static_cast<Variable>(v)); ++level) {
            const auto map = maps_.span().subspan((first_[v] + level) * words_, words_);
            write_bitmap(codes, level, map);
            totals_[first_[v] + level] = count_bits(map.data(), words_);
        }
    }
}

}  // namespace isthmus
