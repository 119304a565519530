#pragma once

#include <cstddef>
#include <limits>

namespace isthmus {

/// The product of two sizes, or the largest size there is if it does not fit.
///
/// Sizes of tables are compared with limits far below; a product that wrapped around would pass.
[[nodiscard]] constexpr std::size_t saturated_product(std::size_t a, std::size_t b) {
    if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b) {
        return std::numeric_limits<std::size_t>::max();
    }
    return a * b;
}

}  // namespace isthmus
