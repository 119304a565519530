#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "core/zeroed_array.hpp"
#include "orders/rules.hpp"
#include "scoring/local_score.hpp"

namespace isthmus {

/// Powers of 2 to the 8: the unit of the exponents that keep sums of weights in range.
///
/// Weights of parent sets span thousands of orders of magnitude. A sum is kept as a mantissa and an
/// exponent, so that nothing is lost and no logarithm is taken in the inner loops.
namespace wide {

inline constexpr std::int32_t zero = -80'000'000;  // exponent of 0; twenty-five of them add up
inline constexpr std::int64_t bits = 8;

/// 2^(8 k); 0 if that is below the range of a double.
[[nodiscard]] inline double power(std::int64_t k) {
    const std::int64_t field = std::clamp<std::int64_t>(bits * k + 1023, 0, 2046);
    return std::bit_cast<double>(static_cast<std::uint64_t>(field) << 52);
}

}  // namespace wide

/// The weight of every parent set of each node, and its sums over all subsets of a set.
///
/// Built in time slices. Node v has an entry for each subset of the others, at the position that
/// `place` gives.
class FamilyWeights {
public:
    static constexpr std::size_t most = 25;

    /// The score must outlive this object.
    FamilyWeights(std::shared_ptr<const LocalScore> score, const Rules& rules);

    /// Goes on until the watch ends the slice; returns whether all is there.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const std::shared_ptr<const LocalScore>& score() const { return score_; }
    [[nodiscard]] bool done() const { return child_ == size_; }
    /// Share of the work that is done.
    [[nodiscard]] double progress() const;

    /// Position of a set without v among the entries of v.
    [[nodiscard]] static std::size_t place(std::size_t v, Word set) {
        const Word below = (Word{1} << v) - 1;
        return static_cast<std::size_t>((set & below) | (set >> 1 & ~below));
    }
    /// Sum of the weights of all subsets of `set`: a mantissa from 1 to 256, or 0.
    [[nodiscard]] double sum(std::size_t v, Word set) const {
        return sums_[v].data()[place(v, set)];
    }
    /// Its exponent, in units of 8 bits.
    [[nodiscard]] std::int32_t exponent(std::size_t v, Word set) const {
        return exponents_[v].data()[place(v, set)];
    }
    /// Logarithm of the weight of a parent set.
    [[nodiscard]] double log_weight(std::size_t v, Word parents) const {
        return logs_[v].data()[place(v, parents)];
    }
    /// Logarithm of the sum of the weights of all subsets of `set`.
    [[nodiscard]] double log_sum(std::size_t v, Word set) const;
    /// Logarithm of the largest weight of v, by which all its sums are divided.
    [[nodiscard]] double largest(std::size_t v) const { return largest_[v]; }

private:
    enum class Stage { begin, score, convert, add_up, normalise };

    void enter(Stage stage);
    void begin_child();
    void score_child(Watch& watch);
    void convert(Watch& watch);
    void add_up(Watch& watch);
    void normalise(Watch& watch);

    std::shared_ptr<const LocalScore> score_;
    Rules rules_;
    std::size_t size_;
    std::vector<ZeroedArray<double>> logs_;
    std::vector<ZeroedArray<double>> sums_;
    std::vector<ZeroedArray<std::int32_t>> exponents_;
    std::vector<double> largest_;

    // The child under way.
    std::size_t child_ = 0;
    Stage stage_ = Stage::begin;
    Word base_ = 0;                   // the next subset of the optional parents to extend
    std::size_t bit_ = 0;             // the next bit to add over
    std::size_t entry_ = 0;           // the next entry of the stage
    std::size_t room_ = 0;            // how many optional parents a set may have
    std::vector<Variable> optional_;  // parents that are neither required nor forbidden
    Word required_ = 0;
    std::vector<Variable> parents_;
    std::vector<double> values_;
};

}  // namespace isthmus
