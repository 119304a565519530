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

ISTHMUS_CLONES
void add_copies(const std::uint32_t* counts, std::size_t stride, std::int64_t* table,
                std::size_t cells) {
    for (std::size_t c = 0; c < cells; ++c) {
        // There are fewer rows than 32 bits count.
        const std::uint32_t* const here = counts + c;
        const std::uint32_t sum = (here[0] + here[stride]) + (here[2 * stride] + here[3 * stride]) +
                                  (here[4 * stride] + here[5 * stride]) +
                                  (here[6 * stride] + here[7 * stride]);
        table[c] += sum;
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
    std::uint32_t* const counts = cells_.data();
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
            ++counts[x & 0xFFFF];
            ++counts[stride + (x >> 16 & 0xFFFF)];
            ++counts[2 * stride + (x >> 32 & 0xFFFF)];
            ++counts[3 * stride + (x >> 48)];
            ++counts[4 * stride + (y & 0xFFFF)];
            ++counts[5 * stride + (y >> 16 & 0xFFFF)];
            ++counts[6 * stride + (y >> 32 & 0xFFFF)];
            ++counts[7 * stride + (y >> 48)];
        }
        for (; i < n; ++i) ++counts[index_[i]];
    }
    add_copies(counts, stride, table.data(), cells);
    for (std::size_t copy = 0; copy < copies; ++copy) std::fill_n(counts + copy * stride, cells, 0U);
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
