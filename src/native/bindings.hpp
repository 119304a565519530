#pragma once

// What every family's bindings need: arrays from and to NumPy, time slices, Ctrl-C.
// Bindings check and convert what Python gives, release the GIL and call the core.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/bit_set.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"
#include "core/zeroed_array.hpp"

namespace isthmus {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int Dimensions>
using Array = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T, int Dimensions>
using Given = nb::ndarray<nb::numpy, T, nb::ndim<Dimensions>, nb::c_contig>;

template <class T>
std::vector<T> to_vector(const Array<T, 1>& array) {
    return {array.data(), array.data() + array.size()};
}

inline Matrix<double> to_matrix(const Array<double, 2>& array) {
    return {array.shape(1), {array.data(), array.data() + array.size()}};
}

inline Matrix<std::uint8_t> to_flags(const Array<bool, 2>& array) {
    return {array.shape(1), {array.data(), array.data() + array.size()}};
}

inline Variables to_variables(const Array<Variable, 1>& array) { return {array.data(), array.size()}; }

/// Gives an array to NumPy without a copy. The owner has the values at `data()`.
template <int Dimensions, class Owner>
auto give(Owner owner, std::initializer_list<std::size_t> shape) {
    auto kept = std::make_unique<Owner>(std::move(owner));
    auto* const data = kept->data();
    using T = std::remove_pointer_t<decltype(kept->data())>;
    const nb::capsule capsule{kept.get(), [](void* held) noexcept {
                                  std::default_delete<Owner>{}(static_cast<Owner*>(held));
                              }};
    kept.release();  // NOLINT(bugprone-unused-return-value): the capsule owns it
    return Given<T, Dimensions>{data, shape, capsule};
}

/// The same with one dimension.
template <class Owner>
auto give(Owner owner) {
    const std::size_t size = owner.size();
    return give<1>(std::move(owner), {size});
}

/// Keeps the arrays of a table alive. Freed with the table, whose last owner is a Python object, so
/// the GIL is held then.
struct TableArrays {
    Array<Word, 2> sets;
    Array<double, 1> scores;
};

/// Raises what a signal handler raises, KeyboardInterrupt above all. Called without the GIL.
inline void check_signals() {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error{};
}

inline Watch watch_for(double seconds) {
    // An hour is as good as forever, and does not overflow the clock. A NaN becomes 0.
    const double slice = seconds > 0.0 ? std::min(seconds, 3600.0) : 0.0;
    return {std::chrono::duration_cast<Watch::Clock::duration>(
                std::chrono::duration<double>{slice}),
            &check_signals};
}

void bind_counting(nb::module_& m);
void bind_scoring(nb::module_& m);
void bind_discrete_scores(nb::module_& m);
void bind_xges(nb::module_& m);
void bind_orders(nb::module_& m);
void bind_continuous(nb::module_& m);
void bind_exact(nb::module_& m);
void bind_exact_posterior(nb::module_& m);
void bind_hill_climb(nb::module_& m);
void bind_table_orders(nb::module_& m);
void bind_mcmc(nb::module_& m);
void bind_screened(nb::module_& m);

}  // namespace isthmus
