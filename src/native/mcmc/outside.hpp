#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/zeroed_array.hpp"
#include "mcmc/family_weights.hpp"

namespace isthmus {

/// The nodes outside of a set T, and for each subset R of them what the inner loops need.
class Outside {
public:
    static constexpr std::size_t low = 6;  // positions of R that share one offset

    explicit Outside(std::size_t size)
        : products{std::size_t{1} << size},
          exponents{std::size_t{1} << size},
          values{std::size_t{1} << size} {}

    /// Fills the list of nodes, their negated sums over T, and the exponents of all products.
    void enter(const FamilyWeights& weights, Word inside);
    /// Fills the products of the negated sums over the first `count` nodes, times `seed`.
    void multiply(double seed, std::size_t count);
    /// Adds products `first` and following to the sets that R makes with T; returns how many.
    std::size_t push(std::size_t first, double* sets, const std::int32_t* set_exponents,
                     std::int64_t exponent) const;
    /// Reads the values of the sets that R makes with T, from `first` on; returns how many.
    std::size_t pull(std::size_t first, const double* sets, const std::int32_t* set_exponents,
                     std::int64_t exponent);
    /// Sums the values over whether node k, the last left, is in R. Returns the derivative of the
    /// whole sum by its factor.
    double fold(std::size_t k);

    std::vector<std::size_t> nodes;
    std::vector<double> negated;
    std::array<Word, std::size_t{1} << low> offsets{};  // of R among the first nodes
    ZeroedArray<double> products;
    ZeroedArray<std::int32_t> exponents;
    ZeroedArray<double> values;

private:
    /// Number of subsets R that share one offset.
    [[nodiscard]] std::size_t block() const {
        return std::size_t{1} << std::min(nodes.size(), low);
    }
    /// T with R, where the first `low` nodes are left out of R.
    [[nodiscard]] Word with(Word high) const;

    Word inside_ = 0;
};

}  // namespace isthmus
