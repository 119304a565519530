#pragma once

#include <cstdint>

namespace isthmus {

/// Spreads the bits of a number (the finaliser of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) {
    std::uint64_t z = value + 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

/// SplitMix64: the same numbers for a seed on every machine, unlike those of the standard library.
class SplitMix {
public:
    explicit SplitMix(std::uint64_t seed) : state_{seed} {}

    std::uint64_t next() {
        const std::uint64_t value = mix(state_);
        state_ += 0x9E3779B97F4A7C15;
        return value;
    }
    /// A number below `bound`, which is positive and small enough for the bias not to matter.
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }

private:
    std::uint64_t state_;
};

}  // namespace isthmus
