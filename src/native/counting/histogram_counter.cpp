#include <algorithm>
#include <memory>

#include "counting/histograms.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Rows in a block: codes of a few dozen columns stay in the second-level cache.
constexpr std::size_t block = 16384;

/// Numbers the combinations of levels of all variables of a run but the last, row by row.
template <class Code>
void number_prefixes(const CodedColumns<Code>& data, Variables shared, std::size_t start,
                     std::span<std::uint32_t> prefix) {
    std::ranges::fill(prefix, 0U);
    for (const Variable v : shared) {
        const auto radix = static_cast<std::uint32_t>(data.levels(v));
        const Code* const column = data.column(v) + start;
        for (std::size_t i = 0; i < prefix.size(); ++i) prefix[i] = prefix[i] * radix + column[i];
    }
}

}  // namespace

template <class Code>
void add_by_histograms(const CodedColumns<Code>& data, const VariableSets& sets,
                       const std::vector<std::uint8_t>& chosen, CountTables& tables,
                       Watch& watch) {
    const std::vector<std::size_t> runs = sets.runs();
    const auto histogram = std::make_unique<InterleavedHistogram>();
    std::vector<std::uint32_t> prefixes(block);
    std::vector<std::uint16_t> shorts(block);
    for (std::size_t start = 0; start < data.rows; start += block) {
        const std::size_t rows = std::min(block, data.rows - start);
        const std::span<std::uint32_t> prefix{prefixes.data(), rows};
        for (std::size_t run = 0; run + 1 < runs.size(); ++run) {
            bool numbered = false;
            for (std::size_t q = runs[run]; q < runs[run + 1]; ++q) {
                if (chosen[q] == 0) continue;
                if (!numbered) {
                    number_prefixes(data, sets.set(q).first(sets.size() - 1), start, prefix);
                    std::ranges::transform(prefix, shorts.begin(), [](std::uint32_t number) {
                        return static_cast<std::uint16_t>(number);
                    });
                    numbered = true;
                }
                const Variable v = sets.last(q);
                const std::size_t radix = data.levels(v);
                const Code* const column = data.column(v) + start;
                const auto table = tables.table(q);
                if (!data.weights.empty()) {
                    for (std::size_t i = 0; i < rows; ++i) {
                        table[prefix[i] * radix + column[i]] += data.weights[start + i];
                    }
                } else if (table.size() <= InterleavedHistogram::most_cells) {
                    histogram->count({shorts.data(), rows}, column, radix, table);
                } else {
                    for (std::size_t i = 0; i < rows; ++i) ++table[prefix[i] * radix + column[i]];
                }
                watch.poll_signals();
            }
        }
    }
}

template void add_by_histograms(const CodedColumns<std::uint8_t>&, const VariableSets&,
                                const std::vector<std::uint8_t>&, CountTables&, Watch&);
template void add_by_histograms(const CodedColumns<std::uint16_t>&, const VariableSets&,
                                const std::vector<std::uint8_t>&, CountTables&, Watch&);

}  // namespace isthmus
