#include "counting/bitmaps.hpp"

#include <bit>

// Vectors count bits by an extension that belongs to no level of x86-64, so `target_clones` does not
// know it; here each variant is compiled by name and chosen when the library is loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(ISTHMUS_NO_CLONES)
#define ISTHMUS_BIT_VARIANTS
#endif

#if defined(__GNUC__)
#define ISTHMUS_INLINE [[gnu::always_inline]] inline
#else
#define ISTHMUS_INLINE inline
#endif

namespace isthmus {

namespace {

ISTHMUS_INLINE Word popcount(Word word) { return static_cast<Word>(std::popcount(word)); }

ISTHMUS_INLINE std::int64_t count_bits_of(const Word* map, std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) total += popcount(map[w]);
    return static_cast<std::int64_t>(total);
}

ISTHMUS_INLINE std::int64_t count_common_of(const Word* a, const Word* b, std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) total += popcount(a[w] & b[w]);
    return static_cast<std::int64_t>(total);
}

ISTHMUS_INLINE std::int64_t store_common_of(const Word* a, const Word* b, Word* out,
                                            std::size_t words) {
    Word total = 0;
    for (std::size_t w = 0; w < words; ++w) {
        const Word both = a[w] & b[w];
        out[w] = both;
        total += popcount(both);
    }
    return static_cast<std::int64_t>(total);
}

ISTHMUS_INLINE void count_grid_of(const Word* const* prefixes, std::size_t count,
                                  const Word* first, std::size_t levels, std::size_t words,
                                  std::int64_t* out) {
    std::size_t i = 0;
    // Four prefixes at a time share the loads of the level's words.
    for (; i + 4 <= count; i += 4) {
        const Word* const a = prefixes[i];
        const Word* const b = prefixes[i + 1];
        const Word* const c = prefixes[i + 2];
        const Word* const d = prefixes[i + 3];
        for (std::size_t level = 0; level < levels; ++level) {
            const Word* const map = first + level * words;
            Word in_a = 0;
            Word in_b = 0;
            Word in_c = 0;
            Word in_d = 0;
            for (std::size_t w = 0; w < words; ++w) {
                in_a += popcount(a[w] & map[w]);
                in_b += popcount(b[w] & map[w]);
                in_c += popcount(c[w] & map[w]);
                in_d += popcount(d[w] & map[w]);
            }
            out[i * levels + level] = static_cast<std::int64_t>(in_a);
            out[(i + 1) * levels + level] = static_cast<std::int64_t>(in_b);
            out[(i + 2) * levels + level] = static_cast<std::int64_t>(in_c);
            out[(i + 3) * levels + level] = static_cast<std::int64_t>(in_d);
        }
    }
    for (; i < count; ++i) {
        for (std::size_t level = 0; level < levels; ++level) {
            out[i * levels + level] = count_common_of(prefixes[i], first + level * words, words);
        }
    }
}

template <class Code>
ISTHMUS_INLINE void write_bitmap_of(const Code* codes, std::size_t rows, std::size_t level,
                                    Word* map, std::size_t words) {
    const auto wanted = static_cast<Code>(level);
    const std::size_t full = rows / 64;
    for (std::size_t w = 0; w < full; ++w) {
        Word bits = 0;
        for (std::size_t i = 0; i < 64; ++i) {
            bits |= static_cast<Word>(codes[64 * w + i] == wanted) << i;
        }
        map[w] = bits;
    }
    for (std::size_t w = full; w < words; ++w) map[w] = 0;
    for (std::size_t i = 64 * full; i < rows; ++i) {
        map[full] |= static_cast<Word>(codes[i] == wanted) << (i - 64 * full);
    }
}

struct Variant {
    decltype(&count_bits) count_bits_in;
    decltype(&count_common) count_common_in;
    decltype(&store_common) store_common_in;
    decltype(&count_grid) count_grid_in;
    void (*write_bytes)(const std::uint8_t*, std::size_t, std::size_t, Word*, std::size_t);
    void (*write_shorts)(const std::uint16_t*, std::size_t, std::size_t, Word*, std::size_t);
    double intersection_cost;
};

// NOLINTBEGIN(cppcoreguidelines-macro-usage): the target of a function is an attribute, and a
// template has one only.
#define ISTHMUS_VARIANT(NAME, TARGET, COST)                                                       \
    struct NAME {                                                                                 \
        TARGET static std::int64_t bits(const Word* a, std::size_t n) { return count_bits_of(a, n); } \
        TARGET static std::int64_t common(const Word* a, const Word* b, std::size_t n) {          \
            return count_common_of(a, b, n);                                                      \
        }                                                                                         \
        TARGET static std::int64_t store(const Word* a, const Word* b, Word* out, std::size_t n) { \
            return store_common_of(a, b, out, n);                                                 \
        }                                                                                         \
        TARGET static void grid(std::span<const Word* const> prefixes, const Word* first,         \
                                std::size_t levels, std::size_t n, std::int64_t* out) {           \
            count_grid_of(prefixes.data(), prefixes.size(), first, levels, n, out);               \
        }                                                                                         \
        TARGET static void bytes(const std::uint8_t* codes, std::size_t rows, std::size_t level,  \
                                 Word* map, std::size_t n) {                                      \
            write_bitmap_of(codes, rows, level, map, n);                                          \
        }                                                                                         \
        TARGET static void shorts(const std::uint16_t* codes, std::size_t rows, std::size_t level, \
                                  Word* map, std::size_t n) {                                     \
            write_bitmap_of(codes, rows, level, map, n);                                          \
        }                                                                                         \
        static constexpr Variant variant{&bits, &common, &store, &grid, &bytes, &shorts, COST};   \
    }
// NOLINTEND(cppcoreguidelines-macro-usage)

#if defined(ISTHMUS_BIT_VARIANTS)
// Costs in nanoseconds per row, measured by benchmarks/counting.py.
ISTHMUS_VARIANT(WithVectorCounts,
                __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi2,popcnt"))),
                0.0022);
ISTHMUS_VARIANT(WithAvx2, __attribute__((target("avx2,bmi2,popcnt"))), 0.006);
ISTHMUS_VARIANT(Baseline, , 0.015);

Variant choose_variant() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("bmi2")) {
        return WithVectorCounts::variant;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
        __builtin_cpu_supports("popcnt")) {
        return WithAvx2::variant;
    }
    return Baseline::variant;
}
#else
ISTHMUS_VARIANT(Baseline, , 0.006);

constexpr Variant choose_variant() { return Baseline::variant; }
#endif

const Variant variant = choose_variant();

}  // namespace

std::int64_t count_bits(const Word* map, std::size_t words) {
    return variant.count_bits_in(map, words);
}

std::int64_t count_common(const Word* a, const Word* b, std::size_t words) {
    return variant.count_common_in(a, b, words);
}

std::int64_t store_common(const Word* a, const Word* b, Word* out, std::size_t words) {
    return variant.store_common_in(a, b, out, words);
}

void count_grid(std::span<const Word* const> prefixes, const Word* first, std::size_t levels,
                std::size_t words, std::int64_t* out) {
    variant.count_grid_in(prefixes, first, levels, words, out);
}

void write_bitmap(std::span<const std::uint8_t> codes, std::size_t level, std::span<Word> map) {
    variant.write_bytes(codes.data(), codes.size(), level, map.data(), map.size());
}

void write_bitmap(std::span<const std::uint16_t> codes, std::size_t level, std::span<Word> map) {
    variant.write_shorts(codes.data(), codes.size(), level, map.data(), map.size());
}

double intersection_cost() { return variant.intersection_cost; }

}  // namespace isthmus
