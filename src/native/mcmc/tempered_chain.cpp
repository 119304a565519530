#include "mcmc/tempered_chain.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "mcmc/order_chain.hpp"
#include "mcmc/partition_chain.hpp"

namespace isthmus {

namespace {

/// Share of exchanges that the heats are adapted to.
constexpr double aim = 0.3;
constexpr double first_gap = 0.25;

void check_labels(const Chain::Labels& labels, std::size_t nodes, Space space) {
    std::vector<std::uint8_t> seen(nodes);
    std::size_t elements = 0;
    for (const std::uint32_t label : labels) {
        if (label >= nodes) throw std::invalid_argument{"a label is out of range"};
        elements += std::exchange(seen[label], 1) == 0 ? 1 : 0;
    }
    const bool dense = std::ranges::none_of(
        std::span{seen}.first(elements), [](std::uint8_t used) { return used == 0; });
    if (labels.size() != nodes || !dense) {
        throw std::invalid_argument{"labels must be numbers from 0 on, one for each node"};
    }
    if (space == Space::orders && elements != nodes) {
        throw std::invalid_argument{"an order has one node at each place"};
    }
}

}  // namespace

std::unique_ptr<Chain> make_chain(std::shared_ptr<const FamilyTables> tables, Space space,
                                  const Chain::Labels& labels) {
    check_labels(labels, tables->size(), space);
    std::unique_ptr<Chain> chain;
    if (space == Space::orders) {
        chain = std::make_unique<OrderChain>(std::move(tables), labels);
    } else {
        chain = std::make_unique<PartitionChain>(std::move(tables), labels);
    }
    if (!std::isfinite(chain->log_weight())) {
        throw std::invalid_argument{"no graph with these labels is allowed"};
    }
    return chain;
}

TemperedChain::TemperedChain(std::shared_ptr<const FamilyTables> tables, Space space,
                             const Chain::Labels& start, std::uint64_t seed, std::size_t levels)
    : offset_{tables->best_score()},
      chance_{seed},
      heats_(levels, 1.0),
      gaps_(levels - 1, first_gap),
      accepted_(levels - 1),
      tried_(levels - 1),
      edges_{*tables},
      graph_{.parents = {tables->size(), words_for(tables->size())}, .score = 0.0} {
    for (std::size_t i = 0; i < levels; ++i) levels_.push_back(make_chain(tables, space, start));
    set_heats();
}

void TemperedChain::run(std::size_t rounds, std::size_t warmup, std::size_t thin, Watch& watch) {
    while (rounds_ < rounds) {
        for (const auto& level : levels_) {
            level->round(chance_);
            watch.poll_signals();
        }
        exchange(rounds_ < warmup);
        ++rounds_;
        if (rounds_ > warmup) edges_.add(*levels_[0]);
        if (rounds_ > warmup && (rounds_ - warmup) % thin == 0) {
            levels_[0]->draw(graph_, chance_);
            for (std::size_t v = 0; v < graph_.parents.rows(); ++v) {
                const auto row = graph_.parents.row(v);
                graphs_.insert(graphs_.end(), row.begin(), row.end());
            }
            scores_.push_back(offset_ + graph_.score);
        }
        watch.poll();
    }
}

void TemperedChain::exchange(bool adapt) {
    for (std::size_t i = rounds_ % 2; i + 1 < levels_.size(); i += 2) {
        const double log_ratio = (heats_[i] - heats_[i + 1]) *
                                 (levels_[i + 1]->log_weight() - levels_[i]->log_weight());
        const bool accepted = chance_.accept(log_ratio);
        if (accepted) std::swap(levels_[i], levels_[i + 1]);
        if (adapt) {
            const double speed = 1.0 / std::sqrt(1.0 + static_cast<double>(rounds_) / 20.0);
            const double rate = std::min(1.0, std::exp(log_ratio));
            gaps_[i] = std::clamp(gaps_[i] * std::exp(speed * (rate - aim)), 1e-4, 2.0);
        } else {
            tried_[i] += 1.0;
            accepted_[i] += accepted ? 1.0 : 0.0;
        }
    }
    if (levels_.size() > 1) set_heats();
}

void TemperedChain::set_heats() {
    double log_heat = 0.0;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
        heats_[i] = i == 0 ? 1.0 : std::exp(log_heat -= gaps_[i - 1]);
        levels_[i]->set_heat(heats_[i]);
    }
}

std::vector<double> TemperedChain::exchange_rates() const {
    std::vector<double> rates;
    for (std::size_t i = 0; i < tried_.size(); ++i) {
        rates.push_back(accepted_[i] / std::max(1.0, tried_[i]));
    }
    return rates;
}

}  // namespace isthmus
