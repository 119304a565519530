#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace isthmus {

/// An array of fixed size that starts as zeros, at a multiple of 64 bytes.
///
/// The operating system hands out zeroed pages only when they are touched, so a large array of which
/// little is used costs little. A vector would write to all of it.
template <class T>
class ZeroedArray {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    ZeroedArray() = default;
    explicit ZeroedArray(std::size_t size) : size_{size} {
        if (size > (std::numeric_limits<std::size_t>::max() - alignment) / sizeof(T)) {
            throw std::bad_alloc{};
        }
        memory_.reset(std::calloc(1, size * sizeof(T) + alignment));
        if (memory_ == nullptr) throw std::bad_alloc{};
        void* start = memory_.get();
        std::size_t space = size * sizeof(T) + alignment;
        data_ = static_cast<T*>(std::align(alignment, size * sizeof(T), start, space));
    }

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] T* data() { return data_; }
    [[nodiscard]] const T* data() const { return data_; }
    [[nodiscard]] std::span<T> span() { return {data_, size_}; }
    [[nodiscard]] std::span<const T> span() const { return {data_, size_}; }

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    static constexpr std::size_t alignment = 64;

    std::unique_ptr<void, Free> memory_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace isthmus
