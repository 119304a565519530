#include "mcmc/order_chain.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace isthmus {

OrderChain::OrderChain(std::shared_ptr<const FamilyTables> tables, const Labels& labels)
    : tables_{std::move(tables)},
      order_(labels.size()),
      weights_(labels.size()),
      before_(words_for(labels.size())) {
    set_labels(labels);
}

void OrderChain::set_labels(const Labels& labels) {
    labels_ = labels;
    for (std::size_t v = 0; v < labels.size(); ++v) order_[labels[v]] = v;
    refresh(0, order_.size());
}

void OrderChain::refresh(std::size_t first, std::size_t last) {
    std::ranges::fill(before_, 0);
    for (std::size_t i = 0; i < last; ++i) {
        const std::size_t v = order_[i];
        labels_[v] = static_cast<std::uint32_t>(i);
        if (i >= first) weights_[v] = (*tables_)[v].total(before_);
        add(before_, static_cast<Variable>(v));
    }
    total_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

void OrderChain::move(std::size_t kind, Chance& chance) {
    const std::size_t d = order_.size();
    if (d < 2) return;
    if (kind == relocate) return relocate_node(chance);
    if (kind == swap_near) {
        const std::size_t place = chance.below(d - 1);
        return swap_places(place, place + 1, chance);
    }
    const std::size_t a = chance.below(d);
    const std::size_t b = chance.below(d);
    if (a != b) swap_places(std::min(a, b), std::max(a, b), chance);
}

void OrderChain::round(Chance& chance) {
    move(relocate, chance);
    for (int i = 0; i < 4; ++i) move(swap_near, chance);
    move(swap_any, chance);
    move(relocate, chance);
}

void OrderChain::swap_places(std::size_t first, std::size_t second, Chance& chance) {
    std::swap(order_[first], order_[second]);
    std::ranges::fill(before_, 0);
    for (std::size_t i = 0; i < first; ++i) add(before_, static_cast<Variable>(order_[i]));
    double gain = 0.0;
    fresh_.clear();
    for (std::size_t i = first; i <= second; ++i) {
        const std::size_t v = order_[i];
        fresh_.push_back((*tables_)[v].total(before_));
        gain += fresh_.back() - weights_[v];
        add(before_, static_cast<Variable>(v));
    }
    if (!chance.accept(heat_ * gain)) {
        std::swap(order_[first], order_[second]);
        return;
    }
    for (std::size_t i = first; i <= second; ++i) {
        weights_[order_[i]] = fresh_[i - first];
        labels_[order_[i]] = static_cast<std::uint32_t>(i);
    }
    total_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
}

void OrderChain::relocate_node(Chance& chance) {
    const std::size_t d = order_.size();
    const std::size_t node = chance.below(d);
    const auto moved = static_cast<Variable>(node);
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(labels_[node]));
    // Place i: the node stands before the i-th of the others, which sees it from then on.
    early_.assign(d, 0.0);
    late_.assign(d, 0.0);
    own_.resize(d);
    std::ranges::fill(before_, 0);
    for (std::size_t i = 0; i < d; ++i) {
        own_[i] = (*tables_)[node].total(before_);
        if (i + 1 == d) break;
        const FamilyTable& table = (*tables_)[order_[i]];
        early_[i + 1] = early_[i] + table.total(before_);
        add(before_, moved);
        late_[i] = table.total(before_);
        flip(before_, moved);
        add(before_, static_cast<Variable>(order_[i]));
    }
    for (std::size_t i = d - 1; i-- > 0;) late_[i] += late_[i + 1];
    for (std::size_t i = 0; i < d; ++i) own_[i] = heat_ * (own_[i] + early_[i] + late_[i]);
    const std::size_t place = chance.choose(own_);
    const auto old = static_cast<std::size_t>(labels_[node]);
    order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(place), node);
    if (place != old) refresh(std::min(place, old), std::max(place, old) + 1);
}

void OrderChain::draw(Graph& graph, Chance& chance) const {
    std::vector<Word> before(before_.size());
    graph.score = 0.0;
    for (const std::size_t v : order_) {
        const auto family = (*tables_)[v].draw(before, {}, chance);
        (*tables_)[v].parents(family, graph.parents.row(v));
        graph.score += family.score;
        add(before, static_cast<Variable>(v));
    }
}

void OrderChain::demands(ParentDemands& demands) const {
    std::vector<Word> before(before_.size());
    for (const std::size_t v : order_) {
        std::ranges::copy(before, demands.allowed.row(v).begin());
        std::ranges::fill(demands.wanted.row(v), 0);
        add(before, static_cast<Variable>(v));
    }
}

}  // namespace isthmus
