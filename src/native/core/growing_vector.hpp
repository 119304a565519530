#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace isthmus {

/// A vector that never moves its items: each block is twice as large as the one before it.
///
/// Growing costs one allocation whose pages are not touched, so there is no pause however many
/// items there are. An index finds its block from its highest bit.
template <class T>
class GrowingVector {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);

public:
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }

    [[nodiscard]] T& operator[](std::size_t index) {
        const std::size_t shifted = index + first_size;
        const auto high = static_cast<unsigned>(std::bit_width(shifted)) - 1;
        return blocks_[high - first_bits][shifted ^ (std::size_t{1} << high)];
    }
    [[nodiscard]] const T& operator[](std::size_t index) const {
        return const_cast<GrowingVector&>(*this)[index];
    }

    void push_back(const T& value) {
        const std::size_t shifted = size_ + first_size;
        const auto high = static_cast<unsigned>(std::bit_width(shifted)) - 1;
        auto& block = blocks_[high - first_bits];
        if (!block) block = std::make_unique_for_overwrite<T[]>(std::size_t{1} << high);
        block[shifted ^ (std::size_t{1} << high)] = value;
        ++size_;
    }
    void pop_back() { --size_; }

private:
    static constexpr unsigned first_bits = 6;
    static constexpr std::size_t first_size = std::size_t{1} << first_bits;

    std::array<std::unique_ptr<T[]>, 48 - first_bits> blocks_;
    std::size_t size_ = 0;
};

}  // namespace isthmus
