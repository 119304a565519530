#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "core/bit_set.hpp"

namespace isthmus {

template <class T, int Dimensions>
using Given = nb::ndarray<nb::numpy, T, nb::ndim<Dimensions>, nb::c_contig>;

/// Gives a vector to NumPy without a copy.
template <int Dimensions, class T>
Given<T, Dimensions> give(std::vector<T> values, std::initializer_list<std::size_t> shape) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* const data = kept->data();
    const nb::capsule owner{kept.get(), [](void* vector) noexcept {
                                std::default_delete<std::vector<T>>{}(
                                    static_cast<std::vector<T>*>(vector));
                            }};
    kept.release();
    return {data, shape, owner};
}

template <class T>
Given<T, 1> give(std::vector<T> values) {
    const std::size_t size = values.size();
    return give<1>(std::move(values), {size});
}

/// Keeps the arrays of a table alive. Freed with the table, whose last owner is a Python object, so
/// the GIL is held then.
struct TableArrays {
    Array<Word, 2> sets;
    Array<double, 1> scores;
};

}  // namespace isthmus
