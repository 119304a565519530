#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exclusive.hpp"
#include "mcmc/tempered_chain.hpp"

namespace isthmus {

/// Several independent chains over the graphs of the same tables.
///
/// Each chain has its own random numbers, so results do not depend on time slices or threads.
class SamplingRun {
public:
    struct Options {
        Space space;
        std::size_t levels;  // chains of different heat that exchange states; 1 for no tempering
        std::size_t warmup;  // rounds before the first draw
        std::size_t thin;    // rounds per draw
        std::size_t draws;
    };

    /// One start and one seed per chain.
    SamplingRun(std::shared_ptr<const FamilyTables> tables,
                const std::vector<Chain::Labels>& starts,
                const std::vector<std::uint64_t>& seeds, Options options);

    /// Samples until the watch ends the slice; returns whether all draws are made.
    bool step(Watch& watch, std::size_t jobs);

    [[nodiscard]] std::size_t nodes() const { return tables_->size(); }
    [[nodiscard]] std::size_t chains() const { return chains_.size(); }
    [[nodiscard]] const TemperedChain& chain(std::size_t c) const { return *chains_.at(c); }
    /// Rounds made by all chains, and in total.
    [[nodiscard]] std::size_t rounds() const;
    [[nodiscard]] std::size_t total_rounds() const;
    [[nodiscard]] const FamilyTables& tables() const { return *tables_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    static constexpr std::size_t chunk = 16;

    std::shared_ptr<const FamilyTables> tables_;
    Options options_;
    std::vector<std::unique_ptr<TemperedChain>> chains_;
    std::size_t reached_ = 0;  // rounds that all chains have made
    InUse in_use_;
};

}  // namespace isthmus
