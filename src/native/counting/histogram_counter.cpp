#include <algorithm>
#include <memory>

#include "core/simd.hpp"
#include "counting/histograms.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Rows in a block: codes of a few dozen columns stay in the second-level cache.
constexpr std::size_t block = 16384;

// Two functions append a column as the last digit of a number to each row: in place, and to another
// array. One for both would not know that its arrays are apart, and would not use vectors.

template <class Code>
inline void append_in_place(std::uint32_t* numbers, const Code* column, std::uint32_t radix,
                            std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) numbers[i] = numbers[i] * radix + column[i];
}

template <class Code>
inline void append(const std::uint32_t* numbers, const Code* column, std::uint32_t radix,
                   std::uint32_t* out, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) out[i] = numbers[i] * radix + column[i];
}

ISTHMUS_CLONES
void append_digit(std::uint32_t* numbers, const std::uint8_t* column, std::uint32_t radix,
                  std::size_t rows) {
    append_in_place(numbers, column, radix, rows);
}

ISTHMUS_CLONES
void append_digit(std::uint32_t* numbers, const std::uint16_t* column, std::uint32_t radix,
                  std::size_t rows) {
    append_in_place(numbers, column, radix, rows);
}

ISTHMUS_CLONES
void append_digit(const std::uint32_t* numbers, const std::uint8_t* column, std::uint32_t radix,
                  std::uint32_t* out, std::size_t rows) {
    append(numbers, column, radix, out, rows);
}

ISTHMUS_CLONES
void append_digit(const std::uint32_t* numbers, const std::uint16_t* column, std::uint32_t radix,
                  std::uint32_t* out, std::size_t rows) {
    append(numbers, column, radix, out, rows);
}

ISTHMUS_CLONES
void shorten(const std::uint32_t* numbers, std::uint16_t* out, std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) out[i] = static_cast<std::uint16_t>(numbers[i]);
}

}  // namespace

template <class Code>
void add_by_histograms(const CodedColumns<Code>& data, const VariableSets& sets,
                       const std::vector<std::uint8_t>& chosen, CountTables& tables,
                       Watch& watch) {
    const std::vector<std::size_t> runs = sets.runs();
    const auto histogram = std::make_unique<InterleavedHistogram>();
    std::vector<std::uint32_t> prefix(block);
    std::vector<std::uint32_t> keys(block);
    std::vector<std::uint16_t> shorts(block);
    for (std::size_t start = 0; start < data.rows; start += block) {
        const std::size_t rows = std::min(block, data.rows - start);
        for (std::size_t run = 0; run + 1 < runs.size(); ++run) {
            bool numbered = false;
            for (std::size_t q = runs[run]; q < runs[run + 1]; ++q) {
                if (chosen[q] == 0) continue;
                if (!numbered) {
                    std::fill_n(prefix.data(), rows, 0U);
                    for (const Variable v : sets.set(q).first(sets.size() - 1)) {
                        append_digit(prefix.data(), data.column(v) + start,
                                     static_cast<std::uint32_t>(data.levels(v)), rows);
                    }
                    shorten(prefix.data(), shorts.data(), rows);
                    numbered = true;
                }
                const Variable v = sets.last(q);
                const std::size_t radix = data.levels(v);
                const Code* const column = data.column(v) + start;
                const auto table = tables.table(q);
                if (data.weights.empty() && table.size() <= InterleavedHistogram::most_cells) {
                    histogram->count({shorts.data(), rows}, column, radix, table);
                    watch.poll_signals();
                    continue;
                }
                append_digit(prefix.data(), column, static_cast<std::uint32_t>(radix), keys.data(),
                             rows);
                std::int64_t* const cells = table.data();
                if (data.weights.empty()) {
                    for (std::size_t i = 0; i < rows; ++i) ++cells[keys[i]];
                } else {
                    const std::int64_t* const weights = data.weights.data() + start;
                    for (std::size_t i = 0; i < rows; ++i) cells[keys[i]] += weights[i];
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
