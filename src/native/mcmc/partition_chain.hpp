#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "mcmc/block_resampling.hpp"
#include "mcmc/chain.hpp"
#include "mcmc/edge_reversal.hpp"
#include "mcmc/partition.hpp"
#include "mcmc/relocation.hpp"

namespace isthmus {

/// Markov chain over ordered partitions (Kuipers and Moffa 2017), whose graphs follow the posterior.
class PartitionChain final : public Chain {
public:
    enum Move : std::size_t {
        relocate,
        swap_near,
        swap_any,
        split_or_merge,
        reverse_edge,
        resample_block
    };

    PartitionChain(std::shared_ptr<const FamilyTables> tables, const Labels& labels);

    [[nodiscard]] std::size_t moves() const override { return 6; }
    void move(std::size_t kind, Chance& chance) override;
    void round(Chance& chance) override;
    void draw(Graph& graph, Chance& chance) const override;
    void demands(ParentDemands& demands) const override;
    [[nodiscard]] double log_weight() const override { return now_.log_weight(); }
    [[nodiscard]] const Labels& labels() const override { return now_.labels(); }
    void set_labels(const Labels& labels) override;
    void set_heat(double heat) override { heat_ = heat; }

private:
    void relocate_node(Chance& chance);
    void swap_neighbours(Chance& chance);
    void swap_nodes(Chance& chance);
    void split(Chance& chance);
    void merge(Chance& chance);
    void reverse_edges(std::size_t count, Chance& chance);
    void resample(std::size_t size, Chance& chance);
    /// Goes to the partition in `proposal_`, if that is accepted.
    void propose(double log_ratio, Chance& chance);
    [[nodiscard]] std::vector<std::size_t> nodes_of(std::size_t element) const;

    std::shared_ptr<const FamilyTables> tables_;
    double heat_ = 1.0;
    Partition now_;
    Partition next_;
    Labels proposal_;
    Relocation relocation_;
    EdgeReversal reversal_;
    BlockResampling block_;
    Graph graph_;
};

}  // namespace isthmus
