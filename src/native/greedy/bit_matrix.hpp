#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.hpp"

namespace isthmus {

using Word = std::uint64_t;

/// Sets of nodes as rows of bits.
class BitMatrix {
public:
    BitMatrix(std::size_t rows, std::size_t nodes)
        : words_{(nodes + 63) / 64}, bits_(rows * words_) {}

    [[nodiscard]] std::size_t words() const { return words_; }
    [[nodiscard]] Word* row(std::size_t index) { return bits_.data() + index * words_; }
    [[nodiscard]] const Word* row(std::size_t index) const { return bits_.data() + index * words_; }

    [[nodiscard]] bool has(std::size_t index, std::size_t node) const {
        return (row(index)[node >> 6] >> (node & 63) & 1) != 0;
    }
    void put(std::size_t index, std::size_t node) { row(index)[node >> 6] |= bit(node); }
    void drop(std::size_t index, std::size_t node) { row(index)[node >> 6] &= ~bit(node); }
    void clear() { std::ranges::fill(bits_, Word{0}); }

    [[nodiscard]] static constexpr Word bit(std::size_t node) { return Word{1} << (node & 63); }

private:
    std::size_t words_;
    std::vector<Word> bits_;
};

[[nodiscard]] inline bool has(const Word* set, std::size_t node) {
    return (set[node >> 6] >> (node & 63) & 1) != 0;
}
inline void put(Word* set, std::size_t node) { set[node >> 6] |= BitMatrix::bit(node); }
inline void drop(Word* set, std::size_t node) { set[node >> 6] &= ~BitMatrix::bit(node); }

/// Calls `visit` with each node of one word of a set, in ascending order.
template <class Visit>
inline void for_each_in_word(Word word, std::size_t index, Visit visit) {
    for (; word != 0; word &= word - 1) {
        visit((index << 6) + static_cast<std::size_t>(std::countr_zero(word)));
    }
}

/// Calls `visit` with each node of a set, in ascending order. The set must not change meanwhile.
template <class Visit>
inline void for_each(const Word* set, std::size_t words, Visit visit) {
    for (std::size_t w = 0; w < words; ++w) for_each_in_word(set[w], w, visit);
}

}  // namespace isthmus
