#include "counting/checks.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/checked.hpp"
#include "core/simd.hpp"

namespace isthmus {

namespace {

// Each table takes a few dozen bytes besides its cells.
constexpr std::size_t most_tables = std::size_t{1} << 27;

template <class Code>
inline Code largest(const Code* codes, std::size_t rows) {
    Code top = 0;
    for (std::size_t i = 0; i < rows; ++i) top = std::max(top, codes[i]);
    return top;
}

ISTHMUS_CLONES
std::size_t largest_code(const std::uint8_t* codes, std::size_t rows) {
    return largest(codes, rows);
}

ISTHMUS_CLONES
std::size_t largest_code(const std::uint16_t* codes, std::size_t rows) {
    return largest(codes, rows);
}

std::size_t sum_saturated(std::size_t a, std::size_t b) {
    return a > std::numeric_limits<std::size_t>::max() - b
               ? std::numeric_limits<std::size_t>::max()
               : a + b;
}

void check_cells(std::size_t largest_table, std::size_t together) {
    if (largest_table > most_cells || together > most_cells_together) {
        throw std::invalid_argument{
            "The tables asked for are too large: at most " + std::to_string(most_cells) +
            " cells in one table and " + std::to_string(most_cells_together) +
            " together can be counted. Ask for fewer variables at a time, or merge rare levels."};
    }
}

}  // namespace

void check_cardinalities(std::span<const std::int64_t> cardinalities, std::size_t variables) {
    constexpr std::int64_t most = 65536;
    if (cardinalities.size() != variables ||
        std::ranges::any_of(cardinalities, [](std::int64_t r) { return r < 1 || r > most; })) {
        throw std::invalid_argument{std::to_string(variables) +
                                    " cardinalities of 1 to 65536 are needed, one per variable."};
    }
}

void check_weights(std::span<const std::int64_t> weights, std::size_t rows) {
    if (weights.size() != rows) {
        throw std::invalid_argument{std::to_string(weights.size()) + " weights were given for " +
                                    std::to_string(rows) + " rows; give one weight per row."};
    }
    std::int64_t total = 0;
    for (const std::int64_t weight : weights) {
        if (weight < 0 || weight > std::numeric_limits<std::int64_t>::max() - total) {
            throw std::invalid_argument{
                "Weights must be at least 0, and their sum must be below 2**63."};
        }
        total += weight;
    }
}

template <class Code>
void check_codes(const CodedColumns<Code>& data, Variable variable) {
    if (data.rows == 0) return;
    const std::size_t top = largest_code(data.column(variable), data.rows);
    const std::size_t levels = data.levels(variable);
    if (top >= levels) {
        throw std::invalid_argument{"Variable " + std::to_string(variable) + " has code " +
                                    std::to_string(top) + " but " + std::to_string(levels) +
                                    " levels, which allow codes 0 to " +
                                    std::to_string(levels - 1) + "."};
    }
}

template <class Code>
void check_sets(const CodedColumns<Code>& data, const VariableSets& sets) {
    const auto variables = static_cast<Variable>(data.variables());
    std::vector<std::uint8_t> used(data.variables());
    for (const Variable v : sets.members()) {
        if (v < 0 || v >= variables) {
            throw std::invalid_argument{"Variable " + std::to_string(v) +
                                        " was asked for; there are 0 to " +
                                        std::to_string(variables - 1) + "."};
        }
        used[static_cast<std::size_t>(v)] = 1;
    }
    std::size_t most = 0;
    std::size_t together = 0;
    for (std::size_t q = 0; q < sets.count(); ++q) {
        std::size_t cells = 1;
        for (const Variable v : sets.set(q)) cells = saturated_product(cells, data.levels(v));
        most = std::max(most, cells);
        together = sum_saturated(together, cells);
    }
    check_cells(most, together);
    for (std::size_t v = 0; v < used.size(); ++v) {
        if (used[v] != 0) check_codes(data, static_cast<Variable>(v));
    }
}

void check_set_size(std::size_t variables, std::size_t size) {
    if (size < 1 || size > variables) {
        throw std::invalid_argument{"Sets of " + std::to_string(size) + " variables were asked of " +
                                    std::to_string(variables) + ": ask for 1 to " +
                                    std::to_string(variables) + "."};
    }
    // Every partial product is a binomial coefficient itself.
    std::size_t sets = 1;
    for (std::size_t k = 1; k <= std::min(size, variables - size); ++k) {
        sets = saturated_product(sets, variables - k + 1) / k;
        if (sets > most_tables) check_cells(0, std::numeric_limits<std::size_t>::max());
    }
}

template void check_codes(const CodedColumns<std::uint8_t>&, Variable);
template void check_codes(const CodedColumns<std::uint16_t>&, Variable);
template void check_sets(const CodedColumns<std::uint8_t>&, const VariableSets&);
template void check_sets(const CodedColumns<std::uint16_t>&, const VariableSets&);

}  // namespace isthmus
