#include "counting/bitmap_variant.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(ISTHMUS_NO_CLONES)

#include <immintrin.h>

#define ISTHMUS_AVX2 __attribute__((target("avx2")))

namespace isthmus {

namespace {

constexpr std::size_t lanes = 4;  // words of a vector

ISTHMUS_AVX2 inline __m256i load(const void* words) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(words));
}

/// Number of bits of each word, looked up for each half of each byte.
ISTHMUS_AVX2 inline __m256i bits_of(__m256i vector) {
    const __m256i counts = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                                            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_and_si256(vector, half);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(vector, 4), half);
    const __m256i bytes =
        _mm256_add_epi8(_mm256_shuffle_epi8(counts, low), _mm256_shuffle_epi8(counts, high));
    return _mm256_sad_epu8(bytes, _mm256_setzero_si256());
}

/// Adds two vectors to `sum`, bit by bit, and returns the carries.
ISTHMUS_AVX2 inline __m256i add_bits(__m256i& sum, __m256i a, __m256i b) {
    const __m256i odd = _mm256_xor_si256(sum, a);
    const __m256i carry = _mm256_or_si256(_mm256_and_si256(sum, a), _mm256_and_si256(odd, b));
    sum = _mm256_xor_si256(odd, b);
    return carry;
}

/// The vector of an intersection that is `number` vectors ahead.
template <bool store>
ISTHMUS_AVX2 inline __m256i common(const Word* a, const Word* b, Word* out, std::size_t number) {
    const std::size_t word = number * lanes;
    const __m256i both = _mm256_and_si256(load(a + word), load(b + word));
    if constexpr (store) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + word), both);
    return both;
}

/// Counts the bits of an intersection. Carry-save adders (Harley and Seal) turn eight vectors into
/// one whose bits count eight each, so that only this one is looked up.
template <bool store>
ISTHMUS_AVX2 std::int64_t count_intersection(const Word* a, const Word* b, Word* out,
                                             std::size_t words) {
    __m256i ones = _mm256_setzero_si256();
    __m256i twos = ones;
    __m256i fours = ones;
    __m256i total = ones;
    std::size_t w = 0;
    for (; w + 8 * lanes <= words; w += 8 * lanes) {
        __m256i quarters[4];
        for (std::size_t i = 0; i < 4; ++i) {
            quarters[i] = add_bits(ones, common<store>(a + w, b + w, out + w, 2 * i),
                                   common<store>(a + w, b + w, out + w, 2 * i + 1));
        }
        const __m256i half = add_bits(twos, quarters[0], quarters[1]);
        const __m256i other = add_bits(twos, quarters[2], quarters[3]);
        total = _mm256_add_epi64(total, bits_of(add_bits(fours, half, other)));
    }
    total = _mm256_add_epi64(_mm256_slli_epi64(total, 1), bits_of(fours));
    total = _mm256_add_epi64(_mm256_slli_epi64(total, 1), bits_of(twos));
    total = _mm256_add_epi64(_mm256_slli_epi64(total, 1), bits_of(ones));
    for (; w < words; w += lanes) {
        total = _mm256_add_epi64(total, bits_of(common<store>(a + w, b + w, out + w, 0)));
    }
    const __m128i pair =
        _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
    return _mm_cvtsi128_si64(_mm_add_epi64(pair, _mm_unpackhi_epi64(pair, pair)));
}

std::int64_t count_bits_256(const Word* map, std::size_t words) {
    return count_intersection<false>(map, map, nullptr, words);
}

std::int64_t count_common_256(const Word* a, const Word* b, std::size_t words) {
    return count_intersection<false>(a, b, nullptr, words);
}

void count_grid_256(const Word* const* prefixes, std::size_t count, const Word* first,
                    std::size_t levels, std::size_t words, std::int64_t* out) {
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t level = 0; level < levels; ++level) {
            *out++ = count_common_256(prefixes[i], first + level * words, words);
        }
    }
}

ISTHMUS_AVX2 inline Word equal_bytes(const std::uint8_t* codes, __m256i wanted) {
    const __m256i equal = _mm256_cmpeq_epi8(load(codes), wanted);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(equal));
}

ISTHMUS_AVX2 void write_bytes_256(const std::uint8_t* codes, std::size_t rows, std::size_t level,
                                  Word* map, std::size_t words) {
    const __m256i wanted = _mm256_set1_epi8(static_cast<char>(level));
    for (std::size_t w = 0; w < rows / 64; ++w) {
        const std::uint8_t* const here = codes + 64 * w;
        map[w] = equal_bytes(here, wanted) | equal_bytes(here + 32, wanted) << 32;
    }
    write_last_words(codes, rows, static_cast<std::uint8_t>(level), map, words);
}

ISTHMUS_AVX2 inline Word equal_shorts(const std::uint16_t* codes, __m256i wanted) {
    const __m256i equal = _mm256_packs_epi16(_mm256_cmpeq_epi16(load(codes), wanted),
                                             _mm256_cmpeq_epi16(load(codes + 16), wanted));
    // Packing goes by halves of vectors; the quarters are put in order.
    const __m256i ordered = _mm256_permute4x64_epi64(equal, 0b11011000);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(ordered));
}

ISTHMUS_AVX2 void write_shorts_256(const std::uint16_t* codes, std::size_t rows, std::size_t level,
                                   Word* map, std::size_t words) {
    const __m256i wanted = _mm256_set1_epi16(static_cast<short>(level));
    for (std::size_t w = 0; w < rows / 64; ++w) {
        const std::uint16_t* const here = codes + 64 * w;
        map[w] = equal_shorts(here, wanted) | equal_shorts(here + 32, wanted) << 32;
    }
    write_last_words(codes, rows, static_cast<std::uint16_t>(level), map, words);
}

constexpr BitmapVariant variant{&count_bits_256, &count_common_256, &count_intersection<true>,
                                &count_grid_256, &write_bytes_256,  &write_shorts_256,
                                0.005};

}  // namespace

const BitmapVariant* avx2_variant() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") ? &variant : nullptr;
}

}  // namespace isthmus

#else

namespace isthmus {

const BitmapVariant* avx2_variant() { return nullptr; }

}  // namespace isthmus

#endif
