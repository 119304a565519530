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
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

namespace nb = nanobind;
using namespace nb::literals;

template <class T, int Dimensions>
using Array = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using NewArray = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

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

/// Gives a vector to NumPy without a copy.
inline NewArray to_array(std::vector<double> values) {
    auto kept = std::make_unique<std::vector<double>>(std::move(values));
    const nb::capsule owner{kept.get(), [](void* vector) noexcept {
                                std::default_delete<std::vector<double>>{}(
                                    static_cast<std::vector<double>*>(vector));
                            }};
    auto* const data = kept.release()->data();
    return {data, {static_cast<std::vector<double>*>(owner.data())->size()}, owner};
}

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

}  // namespace isthmus
