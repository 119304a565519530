#include "counting/bitmaps.hpp"

#include <bit>

#include "core/simd.hpp"
#include "counting/bitmap_variant.hpp"

namespace isthmus {

namespace {

// The variant for processors without the vectors of the others. Its clones use the instruction that
// counts the bits of one word, where there is one.

inline Word popcount(Word word) { return static_cast<Word>(std::popcount(word)); }

ISTHMUS_CLONES
std::int64_t count_bits_plain(const Word* map, std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) total += popcount(map[w]);
    return static_cast<std::int64_t>(total);
}

ISTHMUS_CLONES
std::int64_t count_common_plain(const Word* a, const Word* b, std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) total += popcount(a[w] & b[w]);
    return static_cast<std::int64_t>(total);
}

ISTHMUS_CLONES
std::int64_t store_common_plain(const Word* a, const Word* b, Word* out, std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) {
        const Word both = a[w] & b[w];
        out[w] = both;
        total += popcount(both);
    }
    return static_cast<std::int64_t>(total);
}

ISTHMUS_CLONES
void count_grid_plain(const Word* const* prefixes, std::size_t count, const Word* first,
                      std::size_t levels, std::size_t words, std::int64_t* out) {
    for (std::size_t i = 0; i < count; ++i) {
        const Word* const prefix = prefixes[i];
        for (std::size_t level = 0; level < levels; ++level) {
            const Word* const map = first + level * words;
            Word total = 0;
            for (std::size_t w = 0; w < words; ++w) total += popcount(prefix[w] & map[w]);
            out[i * levels + level] = static_cast<std::int64_t>(total);
        }
    }
}

template <class Code>
inline void write_whole_words(const Code* codes, std::size_t rows, Code level, Word* map) {
    for (std::size_t w = 0; w < rows / 64; ++w) {
        Word bits = 0;
        for (std::size_t i = 0; i < 64; ++i) {
            bits |= static_cast<Word>(codes[64 * w + i] == level) << i;
        }
        map[w] = bits;
    }
}

ISTHMUS_CLONES
void write_bytes_plain(const std::uint8_t* codes, std::size_t rows, std::size_t level, Word* map,
                       std::size_t words) {
    write_whole_words(codes, rows, static_cast<std::uint8_t>(level), map);
    write_last_words(codes, rows, static_cast<std::uint8_t>(level), map, words);
}

ISTHMUS_CLONES
void write_shorts_plain(const std::uint16_t* codes, std::size_t rows, std::size_t level, Word* map,
                        std::size_t words) {
    write_whole_words(codes, rows, static_cast<std::uint16_t>(level), map);
    write_last_words(codes, rows, static_cast<std::uint16_t>(level), map, words);
}

constexpr BitmapVariant plain{&count_bits_plain,   &count_common_plain, &store_common_plain,
                              &count_grid_plain,   &write_bytes_plain,  &write_shorts_plain,
                              0.006};

const BitmapVariant& variant() {
    static const BitmapVariant* const chosen = [] {
        for (const BitmapVariant* const found : {avx512_variant(), avx2_variant()}) {
            if (found != nullptr) return found;
        }
        return &plain;
    }();
    return *chosen;
}

}  // namespace

std::int64_t count_bits(const Word* map, std::size_t words) {
    return variant().count_bits(map, words);
}

std::int64_t count_common(const Word* a, const Word* b, std::size_t words) {
    return variant().count_common(a, b, words);
}

std::int64_t store_common(const Word* a, const Word* b, Word* out, std::size_t words) {
    return variant().store_common(a, b, out, words);
}

void count_grid(std::span<const Word* const> prefixes, const Word* first, std::size_t levels,
                std::size_t words, std::int64_t* out) {
    variant().count_grid(prefixes.data(), prefixes.size(), first, levels, words, out);
}

void write_bitmap(std::span<const std::uint8_t> codes, std::size_t level, std::span<Word> map) {
    variant().write_bytes(codes.data(), codes.size(), level, map.data(), map.size());
}

void write_bitmap(std::span<const std::uint16_t> codes, std::size_t level, std::span<Word> map) {
    variant().write_shorts(codes.data(), codes.size(), level, map.data(), map.size());
}

double intersection_cost() { return variant().intersection_cost; }

}  // namespace isthmus
