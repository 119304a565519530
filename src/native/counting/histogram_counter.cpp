#include <algorithm>
#include <memory>

#include "core/simd.hpp"
#include "counting/histograms.hpp"
#include "counting/run_counter.hpp"

namespace isthmus {

namespace {

// Rows in a block: codes of a few dozen columns stay in the second-level cache.
constexpr std::size_t block = 16384;

/// Appends a column as the last digit of a number to each row.
template <class Number, class Code>
inline void append(const Number* numbers, const Code* column, Number radix, Number* out,
                   std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) {
        out[i] = static_cast<Number>(numbers[i] * radix + column[i]);
    }
}

ISTHMUS_CLONES
void append_digit(const std::uint16_t* numbers, const std::uint8_t* column, std::uint16_t radix,
                  std::uint16_t* out, std::size_t rows) {
    append(numbers, column, radix, out, rows);
}

ISTHMUS_CLONES
void append_digit(const std::uint16_t* numbers, const std::uint16_t* column, std::uint16_t radix,
                  std::uint16_t* out, std::size_t rows) {
    append(numbers, column, radix, out, rows);
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

/// Numbers of the rows of a block by the levels of some variables. The next set keeps what it has
/// in common with the one before. Numbers that do not fit wrap around.
template <class Number, class Code>
class RowNumbers {
public:
    RowNumbers(const CodedColumns<Code>& data, std::size_t most)
        : data_{data}, numbers_((most + 1) * block) {}

    void start(std::size_t first, std::size_t rows) {
        first_ = first;
        rows_ = rows;
        numbered_.clear();
    }

    [[nodiscard]] const Number* of(Variables variables) {
        const auto differ = std::ranges::mismatch(variables, numbered_);
        numbered_.resize(static_cast<std::size_t>(differ.in2 - numbered_.begin()));
        while (numbered_.size() < variables.size()) {
            const Variable v = variables[numbered_.size()];
            append_digit(depth(), data_.column(v) + first_, static_cast<Number>(data_.levels(v)),
                         depth() + block, rows_);
            numbered_.push_back(v);
        }
        return depth();
    }

private:
    [[nodiscard]] Number* depth() { return numbers_.data() + numbered_.size() * block; }

    const CodedColumns<Code>& data_;
    std::vector<Number> numbers_;  // of the first none, one, two, ... variables
    std::vector<Variable> numbered_;
    std::size_t first_ = 0;
    std::size_t rows_ = 0;
};

}  // namespace

template <class Code>
void add_by_histograms(const CodedColumns<Code>& data, const VariableSets& sets,
                       const std::vector<std::uint8_t>& chosen, CountTables& tables,
                       Watch& watch) {
    const auto histogram = std::make_unique<InterleavedHistogram>();
    RowNumbers<std::uint16_t, Code> small{data, sets.size()};
    RowNumbers<std::uint32_t, Code> large{data, sets.size()};
    for (std::size_t start = 0; start < data.rows; start += block) {
        const std::size_t rows = std::min(block, data.rows - start);
        small.start(start, rows);
        large.start(start, rows);
        for (std::size_t q = 0; q < sets.count(); ++q) {
            if (chosen[q] == 0) continue;
            const auto table = tables.table(q);
            if (data.weights.empty() && table.size() <= InterleavedHistogram::most_cells) {
                const Variable last = sets.last(q);
                const std::uint16_t* const prefix = small.of(sets.set(q).first(sets.size() - 1));
                histogram->count({prefix, rows}, data.column(last) + start, data.levels(last),
                                 table);
            } else {
                const std::uint32_t* const cell = large.of(sets.set(q));
                for (std::size_t i = 0; i < rows; ++i) {
                    table[cell[i]] += data.weights.empty() ? 1 : data.weights[start + i];
                }
            }
            watch.poll_signals();
        }
    }
}

template void add_by_histograms(const CodedColumns<std::uint8_t>&, const VariableSets&,
                                const std::vector<std::uint8_t>&, CountTables&, Watch&);
template void add_by_histograms(const CodedColumns<std::uint16_t>&, const VariableSets&,
                                const std::vector<std::uint8_t>&, CountTables&, Watch&);

}  // namespace isthmus
