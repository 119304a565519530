#include "counting/histograms.hpp"

#include <algorithm>
#include <cstring>

#include "core/simd.hpp"

namespace isthmus {

namespace {

ISTHMUS_CLONES
void join_bytes(const std::uint16_t* high, const std::uint8_t* low, std::uint16_t radix,
                std::uint16_t* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<std::uint16_t>(high[i] * radix + low[i]);
    }
}

ISTHMUS_CLONES
void join_shorts(const std::uint16_t* high, const std::uint16_t* low, std::uint16_t radix,
                 std::uint16_t* out, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<std::uint16_t>(high[i] * radix + low[i]);
    }
}

void join(const std::uint16_t* high, const std::uint8_t* low, std::uint16_t radix,
          std::uint16_t* out, std::size_t n) {
    join_bytes(high, low, radix, out, n);
}

void join(const std::uint16_t* high, const std::uint16_t* low, std::uint16_t radix,
          std::uint16_t* out, std::size_t n) {
    join_shorts(high, low, radix, out, n);
}

}  // namespace

template <class Code>
void InterleavedHistogram::count_codes(std::span<const std::uint16_t> prefix, const Code* column,
                                       std::size_t radix, std::span<std::int64_t> table) {
    const std::size_t cells = table.size();
    std::array<std::uint32_t*, copies> part{};
    for (std::size_t c = 0; c < copies; ++c) part[c] = cells_.data() + c * cells;
    for (std::size_t begin = 0; begin < prefix.size(); begin += chunk) {
        const std::size_t n = std::min(chunk, prefix.size() - begin);
        join(prefix.data() + begin, column + begin, static_cast<std::uint16_t>(radix),
             index_.data(), n);
        std::size_t i = 0;
        for (; i + 8 <= n; i += 8) {
            // Eight 16-bit codes by two loads.
            std::uint64_t x;
            std::uint64_t y;
            std::memcpy(&x, index_.data() + i, sizeof x);
            std::memcpy(&y, index_.data() + i + 4, sizeof y);
            ++part[0][x & 0xFFFF];
            ++part[1][x >> 16 & 0xFFFF];
            ++part[2][x >> 32 & 0xFFFF];
            ++part[3][x >> 48];
            ++part[4][y & 0xFFFF];
            ++part[5][y >> 16 & 0xFFFF];
            ++part[6][y >> 32 & 0xFFFF];
            ++part[7][y >> 48];
        }
        for (; i < n; ++i) ++part[0][index_[i]];
    }
    for (const std::uint32_t* const counts : part) {
        for (std::size_t c = 0; c < cells; ++c) table[c] += counts[c];
    }
    std::fill_n(cells_.begin(), copies * cells, 0U);
}

void InterleavedHistogram::count(std::span<const std::uint16_t> prefix, const std::uint8_t* column,
                                 std::size_t radix, std::span<std::int64_t> table) {
    count_codes(prefix, column, radix, table);
}

void InterleavedHistogram::count(std::span<const std::uint16_t> prefix,
                                 const std::uint16_t* column, std::size_t radix,
                                 std::span<std::int64_t> table) {
    count_codes(prefix, column, radix, table);
}

}  // namespace isthmus
