#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace isthmus {

/// 64 rows of a bitmap: bit i is set if row i has the level of the bitmap.
using Word = std::uint64_t;

/// Bitmaps are padded with zeros to whole vectors of this many words.
inline constexpr std::size_t word_lanes = 8;

/// Words of a bitmap of `rows` rows; at least one vector.
[[nodiscard]] constexpr std::size_t bitmap_words(std::size_t rows) {
    const std::size_t words = rows == 0 ? 1 : (rows + 63) / 64;
    return (words + word_lanes - 1) / word_lanes * word_lanes;
}

/// Number of bits set.
[[nodiscard]] std::int64_t count_bits(const Word* map, std::size_t words);

/// Number of bits set in both bitmaps.
[[nodiscard]] std::int64_t count_common(const Word* a, const Word* b, std::size_t words);

/// Writes the intersection of two bitmaps to `out` and returns how many bits it has.
std::int64_t store_common(const Word* a, const Word* b, Word* out, std::size_t words);

/// Counts the bits that each of `prefixes` has in common with each of `levels` adjacent bitmaps.
///
/// The count of prefix i and level c goes to `out[i * levels + c]`.
void count_grid(std::span<const Word* const> prefixes, const Word* first, std::size_t levels,
                std::size_t words, std::int64_t* out);

/// Writes the bitmap of one level of a column; bits beyond its rows become zero.
void write_bitmap(std::span<const std::uint8_t> codes, std::size_t level, std::span<Word> map);
void write_bitmap(std::span<const std::uint16_t> codes, std::size_t level, std::span<Word> map);

/// Nanoseconds per row of one intersection with count, on this machine's widest vectors.
[[nodiscard]] double intersection_cost();

}  // namespace isthmus
