#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "mcmc/chain.hpp"

namespace isthmus {

/// Markov chain over orders of the nodes (Friedman and Koller 2003). A graph counts once for each
/// order that it agrees with, so graphs with many orders get too much weight.
class OrderChain final : public Chain {
public:
    enum Move : std::size_t { relocate, swap_near, swap_any };

    OrderChain(std::shared_ptr<const FamilyTables> tables, const Labels& labels);

    [[nodiscard]] std::size_t moves() const override { return 3; }
    void move(std::size_t kind, Chance& chance) override;
    void round(Chance& chance) override;
    void draw(Graph& graph, Chance& chance) const override;
    void demands(ParentDemands& demands) const override;
    [[nodiscard]] double log_weight() const override { return total_; }
    [[nodiscard]] const Labels& labels() const override { return labels_; }
    void set_labels(const Labels& labels) override;
    void set_heat(double heat) override { heat_ = heat; }

private:
    void relocate_node(Chance& chance);
    /// Exchanges the nodes at two places, the first of which comes first.
    void swap_places(std::size_t first, std::size_t second, Chance& chance);
    /// Follows a new order.
    void refresh(std::size_t first, std::size_t last);

    std::shared_ptr<const FamilyTables> tables_;
    double heat_ = 1.0;
    Labels labels_;
    std::vector<std::size_t> order_;
    std::vector<double> weights_;  // by node
    double total_ = 0.0;
    std::vector<Word> before_;
    std::vector<double> early_;
    std::vector<double> late_;
    std::vector<double> own_;
    std::vector<double> fresh_;
};

}  // namespace isthmus
