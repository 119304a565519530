#pragma once

#include <cstddef>
#include <cstdint>

#include "counting/bitmaps.hpp"

namespace isthmus {

/// The operations of counting/bitmaps.hpp, compiled for one kind of processor.
struct BitmapVariant {
    std::int64_t (*count_bits)(const Word* map, std::size_t words);
    std::int64_t (*count_common)(const Word* a, const Word* b, std::size_t words);
    std::int64_t (*store_common)(const Word* a, const Word* b, Word* out, std::size_t words);
    void (*count_grid)(const Word* const* prefixes, std::size_t count, const Word* first,
                       std::size_t levels, std::size_t words, std::int64_t* out);
    void (*write_bytes)(const std::uint8_t* codes, std::size_t rows, std::size_t level, Word* map,
                        std::size_t words);
    void (*write_shorts)(const std::uint16_t* codes, std::size_t rows, std::size_t level,
                         Word* map, std::size_t words);
    double intersection_cost;
};

/// Vectors of 512 bits that count their bits, and vectors of 256 bits; null where the compiler or the
/// processor does not have them.
[[nodiscard]] const BitmapVariant* avx512_variant();
[[nodiscard]] const BitmapVariant* avx2_variant();

/// Writes the bits of the rows after the last whole word, and zeros after them.
template <class Code>
void write_last_words(const Code* codes, std::size_t rows, Code level, Word* map,
                      std::size_t words) {
    const std::size_t full = rows / 64;
    for (std::size_t w = full; w < words; ++w) map[w] = 0;
    for (std::size_t i = 64 * full; i < rows; ++i) {
        map[full] |= static_cast<Word>(codes[i] == level) << (i - 64 * full);
    }
}

}  // namespace isthmus
