#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus {

/// Histograms filled in turn: with a single one, equal neighbours would each wait for the store of
/// the one before.
class InterleavedHistogram {
public:
    /// Tables of more cells than this are filled directly.
    static constexpr std::size_t most_cells = 8192;

    /// Adds to `table` how often each value of `prefix[i] * radix + column[i]` occurs. All of them
    /// are below the size of the table.
    void count(std::span<const std::uint16_t> prefix, const std::uint8_t* column,
               std::size_t radix, std::span<std::int64_t> table);
    void count(std::span<const std::uint16_t> prefix, const std::uint16_t* column,
               std::size_t radix, std::span<std::int64_t> table);

private:
    template <class Code>
    void count_codes(std::span<const std::uint16_t> prefix, const Code* column, std::size_t radix,
                     std::span<std::int64_t> table);

    static constexpr std::size_t copies = 8;
    static constexpr std::size_t chunk = 4096;
    // A constant distance, so that no register is needed for each histogram; not a power of two, so
    // that their cells do not compete for the same places in the cache.
    static constexpr std::size_t stride = most_cells + 80;

    std::array<std::uint16_t, chunk> index_{};
    std::array<std::uint32_t, copies * stride> cells_{};  // zero between calls
};

}  // namespace isthmus
