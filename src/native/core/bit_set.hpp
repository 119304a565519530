#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.hpp"

// Sets of variables as bits: variable v is bit v % 64 of word v / 64. The layout is that of NumPy
// arrays of score tables, so sets cross the border as they are.

namespace isthmus {

using Word = std::uint64_t;

/// Words of a set of variables; one at least, so that every set has an address.
[[nodiscard]] constexpr std::size_t words_for(std::size_t variables) {
    return variables == 0 ? 1 : (variables + 63) / 64;
}

[[nodiscard]] inline bool has(std::span<const Word> set, Variable v) {
    return (set[static_cast<std::size_t>(v) / 64] >> (v & 63) & 1) != 0;
}

inline void flip(std::span<Word> set, Variable v) {
    set[static_cast<std::size_t>(v) / 64] ^= Word{1} << (v & 63);
}

inline void add(std::span<Word> set, Variable v) {
    set[static_cast<std::size_t>(v) / 64] |= Word{1} << (v & 63);
}

[[nodiscard]] inline bool disjoint(std::span<const Word> a, std::span<const Word> b) {
    for (std::size_t w = 0; w < a.size(); ++w) {
        if ((a[w] & b[w]) != 0) return false;
    }
    return true;
}

[[nodiscard]] inline bool is_subset(std::span<const Word> a, std::span<const Word> b) {
    for (std::size_t w = 0; w < a.size(); ++w) {
        if ((a[w] & ~b[w]) != 0) return false;
    }
    return true;
}

[[nodiscard]] inline std::size_t count(std::span<const Word> set) {
    std::size_t total = 0;
    for (const Word word : set) total += static_cast<std::size_t>(std::popcount(word));
    return total;
}

/// A word whose bits are a subset if the sets are: quick to compare, and the set itself if that has
/// one word only.
[[nodiscard]] inline Word fold(std::span<const Word> set) {
    Word folded = 0;
    for (std::size_t w = 0; w < set.size(); ++w) {
        folded |= std::rotl(set[w], static_cast<int>(7 * w % 64));
    }
    return folded;
}

/// Calls `visit(v)` for each member, ascending.
template <class Visit>
void for_each(std::span<const Word> set, Visit&& visit) {
    for (std::size_t w = 0; w < set.size(); ++w) {
        for (Word left = set[w]; left != 0; left &= left - 1) {
            visit(static_cast<Variable>(64 * w) + std::countr_zero(left));
        }
    }
}

}  // namespace isthmus
