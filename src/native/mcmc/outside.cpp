#include "mcmc/outside.hpp"

#include <bit>

#include "core/simd.hpp"

namespace isthmus {

namespace {

/// Adds the products to the sets that R makes with T.
ISTHMUS_CLONES void push_block(double* to, const std::int32_t* to_exponents, const Word* offsets,
                         const double* products, const std::int32_t* exponents,
                         std::int64_t exponent, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Word set = offsets[i];
        to[set] += products[i] * wide::power(exponent + exponents[i] - to_exponents[set]);
    }
}

/// Reads what is known of the sets that R makes with T.
ISTHMUS_CLONES void pull_block(const double* from, const std::int32_t* from_exponents,
                         const Word* offsets, double* values, const std::int32_t* exponents,
                         std::int64_t exponent, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const Word set = offsets[i];
        values[i] = from[set] * wide::power(std::int64_t{exponents[i]} + from_exponents[set] - exponent);
    }
}

ISTHMUS_CLONES void scale(double* to, const double* from, double factor, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = factor * from[i];
}

ISTHMUS_CLONES void shift(std::int32_t* to, const std::int32_t* from, std::int32_t by,
                          std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] + by;
}

/// Sums over one node of R: values[i] += factor * values[i + count]. Returns the derivative of the
/// whole sum by the factor.
ISTHMUS_CLONES double fold_half(double* values, const double* products, double factor,
                           std::size_t count) {
    std::array<double, 8> part{};
    const double* const with = values + count;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (std::size_t j = 0; j < 8; ++j) {
            part[j] += products[i + j] * with[i + j];
            values[i + j] += factor * with[i + j];
        }
    }
    for (; i < count; ++i) {
        part[i & 7] += products[i] * with[i];
        values[i] += factor * with[i];
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

}  // namespace

void Outside::enter(const FamilyWeights& weights, Word inside) {
    inside_ = inside;
    nodes.clear();
    negated.clear();
    std::int32_t* const all = exponents.data();
    all[0] = 0;
    offsets[0] = 0;
    for (std::size_t u = 0; u < weights.size(); ++u) {
        if ((inside >> u & 1) != 0) continue;
        const std::size_t count = std::size_t{1} << nodes.size();
        shift(all + count, all, weights.exponent(u, inside), count);
        if (nodes.size() < low) {
            for (std::size_t i = 0; i < count; ++i) offsets[count + i] = offsets[i] | Word{1} << u;
        }
        nodes.push_back(u);
        negated.push_back(-weights.sum(u, inside));
    }
}

void Outside::multiply(double seed, std::size_t count) {
    double* const all = products.data();
    all[0] = seed;
    for (std::size_t k = 0; k < count; ++k) {
        const std::size_t half = std::size_t{1} << k;
        scale(all + half, all, negated[k], half);
    }
}

Word Outside::with(Word high) const {
    Word set = inside_;
    for (; high != 0; high &= high - 1) {
        set |= Word{1} << nodes[low + static_cast<std::size_t>(std::countr_zero(high))];
    }
    return set;
}

std::size_t Outside::push(std::size_t first, double* sets, const std::int32_t* set_exponents,
                          std::int64_t exponent) const {
    const Word base = with(first >> low);
    push_block(sets + base, set_exponents + base, offsets.data(), products.data() + first,
               exponents.data() + first, exponent, block());
    return block();
}

std::size_t Outside::pull(std::size_t first, const double* sets, const std::int32_t* set_exponents,
                          std::int64_t exponent) {
    const Word base = with(first >> low);
    pull_block(sets + base, set_exponents + base, offsets.data(), values.data() + first,
               exponents.data() + first, exponent, block());
    return block();
}

double Outside::fold(std::size_t k) {
    return fold_half(values.data(), products.data(), negated[k], std::size_t{1} << k);
}

}  // namespace isthmus
