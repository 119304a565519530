#pragma once

#include <cmath>

namespace isthmus {

/// A number with twice the digits: the sum of two doubles, of which `low` is the rounding of `high`.
///
/// Only sums and products that the compiler may put into vectors, without fused multiply-add, so that
/// the bits are the same on every machine.
struct Doubled {
    double high = 0.0;
    double low = 0.0;
};

/// The sum of a number and a much smaller one.
[[nodiscard]] inline Doubled renormalised(double high, double low) {
    const double sum = high + low;
    return {sum, low - (sum - high)};
}

/// Subtracts `a * b`. The parts of the result need `renormalised` when all has been subtracted.
inline void subtract_product(Doubled& from, Doubled a, Doubled b) {
    // Halves of the digits of each factor have exact products (Dekker).
    constexpr double splitter = 134217729.0;  // 2^27 + 1
    const double wide_a = splitter * a.high;
    const double upper_a = wide_a - (wide_a - a.high);
    const double lower_a = a.high - upper_a;
    const double wide_b = splitter * b.high;
    const double upper_b = wide_b - (wide_b - b.high);
    const double lower_b = b.high - upper_b;
    const double product = a.high * b.high;
    const double rest = ((upper_a * upper_b - product) + upper_a * lower_b + lower_a * upper_b) +
                        lower_a * lower_b + (a.high * b.low + a.low * b.high);
    const double difference = from.high - product;
    const double taken = difference - from.high;
    from.low += ((from.high - (difference - taken)) - (product + taken)) - rest;
    from.high = difference;
}

[[nodiscard]] inline Doubled product(Doubled a, Doubled b) {
    Doubled negative;
    subtract_product(negative, a, b);
    return renormalised(-negative.high, -negative.low);
}

/// `1 / a`, by a step of Newton's method.
[[nodiscard]] inline Doubled inverse(Doubled a) {
    const double first = 1.0 / a.high;
    Doubled rest{1.0, 0.0};
    subtract_product(rest, a, {first, 0.0});
    return renormalised(first, first * (rest.high + rest.low));
}

/// The root of a positive number, by a step of Newton's method.
[[nodiscard]] inline Doubled square_root(Doubled a) {
    const double first = std::sqrt(a.high);
    Doubled rest = a;
    subtract_product(rest, {first, 0.0}, {first, 0.0});
    return renormalised(first, (rest.high + rest.low) / (2.0 * first));
}

}  // namespace isthmus
