#pragma once

#include <math.h>  // NOLINT(modernize-deprecated-headers): lgamma_r is not in <cmath>

namespace isthmus {

/// Logarithm of the gamma function of a positive number.
///
/// `lgamma` also writes the sign to a global variable, which threads would share.
[[nodiscard]] inline double log_gamma(double x) {
#if defined(__unix__) || defined(__APPLE__)
    int sign = 0;
    return ::lgamma_r(x, &sign);
#else
    return ::lgamma(x);
#endif
}

}  // namespace isthmus
