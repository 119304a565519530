#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mcmc/chain.hpp"
#include "mcmc/edge_averages.hpp"

namespace isthmus {

/// What the states of a chain are.
enum class Space { orders, partitions };

[[nodiscard]] std::unique_ptr<Chain> make_chain(std::shared_ptr<const FamilyTables> tables,
                                                Space space, const Chain::Labels& labels);

/// A chain with the posterior as its target, helped by hotter ones with which it exchanges states
/// (parallel tempering). Heats adapt during the warm-up and are fixed afterwards.
class TemperedChain {
public:
    TemperedChain(std::shared_ptr<const FamilyTables> tables, Space space,
                  const Chain::Labels& start, std::uint64_t seed, std::size_t levels);

    /// Makes this number of rounds in total, with a draw after every `thin` of them once the warm-up
    /// is over; after a pause the same call goes on.
    void run(std::size_t rounds, std::size_t warmup, std::size_t thin, Watch& watch);

    [[nodiscard]] std::size_t rounds() const { return rounds_; }
    [[nodiscard]] std::size_t draws() const { return scores_.size(); }
    /// The parents of all draws, one after another, and the scores of the graphs.
    [[nodiscard]] const std::vector<Word>& graphs() const { return graphs_; }
    [[nodiscard]] const std::vector<double>& scores() const { return scores_; }
    /// Averages of the edge probabilities given the states since the warm-up.
    [[nodiscard]] const EdgeAverages& edges() const { return edges_; }
    [[nodiscard]] const std::vector<double>& heats() const { return heats_; }
    /// Share of exchanges between neighbours that were accepted after the warm-up.
    [[nodiscard]] std::vector<double> exchange_rates() const;

private:
    void exchange(bool adapt);
    void set_heats();

    double offset_;  // the best score, which the tables leave out
    RandomChance chance_;
    std::vector<std::unique_ptr<Chain>> levels_;  // from the target to the hottest
    std::vector<double> heats_;
    std::vector<double> gaps_;  // of the logarithms of the heats
    std::vector<double> accepted_;
    std::vector<double> tried_;
    std::size_t rounds_ = 0;
    EdgeAverages edges_;
    Graph graph_;
    std::vector<Word> graphs_;
    std::vector<double> scores_;
};

}  // namespace isthmus
