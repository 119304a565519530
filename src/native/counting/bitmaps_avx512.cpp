#include "counting/bitmap_variant.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(ISTHMUS_NO_CLONES)

#include <immintrin.h>

// Vectors count bits by an extension that belongs to no level of x86-64, so `target_clones` does not
// know it. Functions with this attribute run only where the processor has it.
#define ISTHMUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vpopcntdq")))

// GCC 12 takes values that its own header leaves undefined on purpose for mistakes (bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace isthmus {

namespace {

ISTHMUS_AVX512 inline __m512i load(const Word* words) {
    return _mm512_loadu_si512(static_cast<const void*>(words));
}

ISTHMUS_AVX512 inline __m512i count_in(__m512i sums, __m512i bits) {
    return _mm512_add_epi64(sums, _mm512_popcnt_epi64(bits));
}

ISTHMUS_AVX512 std::int64_t count_bits_512(const Word* map, std::size_t words) {
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t w = 0; w < words; w += word_lanes) sums = count_in(sums, load(map + w));
    return _mm512_reduce_add_epi64(sums);
}

ISTHMUS_AVX512 std::int64_t count_common_512(const Word* a, const Word* b, std::size_t words) {
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t w = 0; w < words; w += word_lanes) {
        sums = count_in(sums, _mm512_and_si512(load(a + w), load(b + w)));
    }
    return _mm512_reduce_add_epi64(sums);
}

ISTHMUS_AVX512 std::int64_t store_common_512(const Word* a, const Word* b, Word* out,
                                             std::size_t words) {
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t w = 0; w < words; w += word_lanes) {
        const __m512i both = _mm512_and_si512(load(a + w), load(b + w));
        _mm512_storeu_si512(static_cast<void*>(out + w), both);
        sums = count_in(sums, both);
    }
    return _mm512_reduce_add_epi64(sums);
}

/// Adds up each of four vectors.
ISTHMUS_AVX512 inline __m256i add_up(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab = _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    const __m512i cd = _mm512_add_epi64(_mm512_unpacklo_epi64(c, d), _mm512_unpackhi_epi64(c, d));
    // Pairs of a and b, and of c and d, in four lanes each; fold the upper lanes onto the lower.
    const __m256i ab_half =
        _mm256_add_epi64(_mm512_castsi512_si256(ab), _mm512_extracti64x4_epi64(ab, 1));
    const __m256i cd_half =
        _mm256_add_epi64(_mm512_castsi512_si256(cd), _mm512_extracti64x4_epi64(cd, 1));
    return _mm256_add_epi64(_mm256_permute2x128_si256(ab_half, cd_half, 0x20),
                            _mm256_permute2x128_si256(ab_half, cd_half, 0x31));
}

/// Intersects one bitmap with four others.
ISTHMUS_AVX512 inline __m256i count_four(const Word* one, const Word* a, const Word* b,
                                         const Word* c, const Word* d, std::size_t words) {
    __m512i in_a = _mm512_setzero_si512();
    __m512i in_b = in_a;
    __m512i in_c = in_a;
    __m512i in_d = in_a;
    for (std::size_t w = 0; w < words; w += word_lanes) {
        const __m512i bits = load(one + w);
        in_a = count_in(in_a, _mm512_and_si512(bits, load(a + w)));
        in_b = count_in(in_b, _mm512_and_si512(bits, load(b + w)));
        in_c = count_in(in_c, _mm512_and_si512(bits, load(c + w)));
        in_d = count_in(in_d, _mm512_and_si512(bits, load(d + w)));
    }
    return add_up(in_a, in_b, in_c, in_d);
}

ISTHMUS_AVX512 void count_grid_512(const Word* const* prefixes, std::size_t count,
                                   const Word* first, std::size_t levels, std::size_t words,
                                   std::int64_t* out) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        std::int64_t* const cells = out + i * levels;
        for (std::size_t level = 0; level < levels; ++level) {
            alignas(32) std::int64_t counts[4];
            _mm256_store_si256(
                reinterpret_cast<__m256i*>(counts),
                count_four(first + level * words, prefixes[i], prefixes[i + 1], prefixes[i + 2],
                           prefixes[i + 3], words));
            for (std::size_t p = 0; p < 4; ++p) cells[p * levels + level] = counts[p];
        }
    }
    for (; i < count; ++i) {
        std::int64_t* const cells = out + i * levels;
        std::size_t level = 0;
        for (; level + 4 <= levels; level += 4) {
            const Word* const map = first + level * words;
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(cells + level),
                                count_four(prefixes[i], map, map + words, map + 2 * words,
                                           map + 3 * words, words));
        }
        for (; level < levels; ++level) {
            cells[level] = count_common_512(prefixes[i], first + level * words, words);
        }
    }
}

ISTHMUS_AVX512 void write_bytes_512(const std::uint8_t* codes, std::size_t rows, std::size_t level,
                                    Word* map, std::size_t words) {
    const __m512i wanted = _mm512_set1_epi8(static_cast<char>(level));
    for (std::size_t w = 0; w < rows / 64; ++w) {
        const void* const here = codes + 64 * w;
        map[w] = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(here), wanted);
    }
    write_last_words(codes, rows, static_cast<std::uint8_t>(level), map, words);
}

ISTHMUS_AVX512 void write_shorts_512(const std::uint16_t* codes, std::size_t rows,
                                     std::size_t level, Word* map, std::size_t words) {
    const __m512i wanted = _mm512_set1_epi16(static_cast<short>(level));
    for (std::size_t w = 0; w < rows / 64; ++w) {
        const void* const low = codes + 64 * w;
        const void* const high = codes + 64 * w + 32;
        map[w] = Word{_mm512_cmpeq_epi16_mask(_mm512_loadu_si512(low), wanted)} |
                 Word{_mm512_cmpeq_epi16_mask(_mm512_loadu_si512(high), wanted)} << 32;
    }
    write_last_words(codes, rows, static_cast<std::uint16_t>(level), map, words);
}

constexpr BitmapVariant variant{&count_bits_512, &count_common_512, &store_common_512,
                                &count_grid_512, &write_bytes_512,  &write_shorts_512,
                                0.0022};

}  // namespace

const BitmapVariant* avx512_variant() {
    __builtin_cpu_init();
    const bool has_all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512vpopcntdq");
    return has_all ? &variant : nullptr;
}

}  // namespace isthmus

#else

namespace isthmus {

const BitmapVariant* avx512_variant() { return nullptr; }

}  // namespace isthmus

#endif
