#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.hpp"

namespace isthmus {

/// All random choices of a move. Moves never ask for anything else, so that a test can go through
/// every choice in turn and sum up the probabilities of where a move leads.
class Chance {
public:
    Chance() = default;
    virtual ~Chance() = default;
    Chance(const Chance&) = delete;
    Chance& operator=(const Chance&) = delete;

    /// A number below `bound`, which is positive.
    virtual std::size_t below(std::size_t bound) = 0;
    /// True with probability exp(log_ratio), or always if that is above 1.
    virtual bool accept(double log_ratio) = 0;
    /// A position, with probability proportional to its weight; one at least is positive.
    virtual std::size_t pick(std::span<const double> weights) = 0;
    /// The same by the logarithms of the weights, which are overwritten.
    std::size_t choose(std::span<double> log_weights);
};

/// Choices at random.
class RandomChance final : public Chance {
public:
    explicit RandomChance(std::uint64_t seed) : random_{seed} {}

    std::size_t below(std::size_t bound) override;
    bool accept(double log_ratio) override;
    std::size_t pick(std::span<const double> weights) override;

private:
    double fraction();

    SplitMix random_;
};

/// Every sequence of choices in turn, each with its probability.
class EveryChance final : public Chance {
public:
    std::size_t below(std::size_t bound) override;
    bool accept(double log_ratio) override;
    std::size_t pick(std::span<const double> weights) override;

    /// The probability of the choices since the last `next`.
    [[nodiscard]] double probability() const;
    /// Goes on to the next sequence; returns whether there is one.
    bool next();

private:
    struct Branch {
        std::vector<double> probabilities;
        std::size_t taken;
    };

    std::size_t take(std::vector<double> probabilities);

    std::vector<Branch> path_;
    std::size_t depth_ = 0;
};

}  // namespace isthmus
