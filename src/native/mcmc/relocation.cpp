#include "mcmc/relocation.hpp"

#include <algorithm>
#include <limits>

namespace isthmus {

Relocation::Relocation(const FamilyTables& tables)
    : tables_{tables},
      members_{tables.size() + 1, words_for(tables.size())},
      before_{tables.size() + 1, words_for(tables.size())},
      nodes_(tables.size() + 1),
      with_(words_for(tables.size())),
      without_(with_),
      adjacent_(with_),
      alone_(with_),
      weights_(tables.size() + 1) {}

void Relocation::propose(const Partition& partition, std::size_t node, double heat, Chance& chance,
                         Partition::Labels& labels) {
    remove(partition, node);
    for (std::size_t e = 0; e < count_; ++e) weights_[e] = weigh(e, node);
    weigh_places(node);
    for (double& place : places_) place *= heat;
    const std::size_t place = chance.choose(places_);
    labels = rest_;
    if (place < count_) {
        labels[node] = static_cast<std::uint32_t>(place);
        return;
    }
    const auto element = static_cast<std::uint32_t>(place - count_);
    for (std::uint32_t& label : labels) label += label >= element ? 1 : 0;
    labels[node] = element;
}

void Relocation::remove(const Partition& partition, std::size_t node) {
    rest_ = partition.labels();
    const std::uint32_t own = rest_[node];
    const bool vanishes = partition.size(own) == 1;
    count_ = partition.elements() - (vanishes ? 1 : 0);
    if (vanishes) {
        for (std::uint32_t& label : rest_) label -= label > own ? 1 : 0;
    }
    for (std::size_t e = 0; e < count_; ++e) {
        std::ranges::copy(partition.element(e + (vanishes && e >= own ? 1 : 0)),
                          members_.row(e).begin());
        if (!vanishes && e == own) flip(members_.row(e), static_cast<Variable>(node));
        nodes_[e].clear();
        for (std::size_t w = 0; w < with_.size(); ++w) {
            before_.row(e + 1)[w] = before_.row(e)[w] | members_.row(e)[w];
        }
    }
    for (std::size_t v = 0; v < rest_.size(); ++v) {
        if (v != node) nodes_[rest_[v]].push_back(v);
    }
    // It has no label of its own now; any one does.
    if (vanishes) rest_[node] = 0;
}

Relocation::ElementWeights Relocation::weigh(std::size_t element, std::size_t node) {
    const auto moved = static_cast<Variable>(node);
    const auto before = before_.row(element);
    std::ranges::copy(before, with_.begin());
    add(with_, moved);
    std::ranges::fill(alone_, 0);
    add(alone_, moved);
    ElementWeights sums{0.0, 0.0, 0.0, 0.0};
    if (element == 0) {
        for (const std::size_t x : nodes_[0]) {
            sums.absent += tables_[x].total(before);
            sums.alone += tables_[x].restricted(with_, alone_);
        }
        return sums;
    }
    const auto last = members_.row(element - 1);
    const auto deep = before_.row(element - 1);
    std::ranges::copy(deep, without_.begin());
    add(without_, moved);
    std::ranges::copy(last, adjacent_.begin());
    add(adjacent_, moved);
    for (const std::size_t x : nodes_[element]) {
        const FamilyTable& table = tables_[x];
        const WeightSum all = table.sum(with_);
        const WeightSum others = table.sum(before);
        const WeightSum early = table.sum(deep);
        sums.absent += table.difference(others, early, before, last);
        sums.joined += table.difference(all, early, with_, adjacent_);
        sums.alone += table.difference(all, others, with_, alone_);
        sums.deep += table.difference(all, table.sum(without_), with_, last);
    }
    return sums;
}

void Relocation::weigh_places(std::size_t node) {
    places_.assign(2 * count_ + 1, 0.0);
    // Elements before the node's place do not see it, elements further behind do.
    double early = 0.0;
    for (std::size_t e = 0; e <= count_; ++e) {
        const double own = e == 0 ? tables_[node].total(before_.row(0))
                                  : tables_[node].restricted(before_.row(e), members_.row(e - 1));
        places_[count_ + e] += early + own;
        if (e == count_) break;
        early += weights_[e].absent;
        places_[e] += early + own;
    }
    double late = 0.0;
    for (std::size_t e = count_; e-- > 0;) {
        // `late` is the weight of the elements behind e.
        places_[count_ + e] += weights_[e].alone + late;
        if (e > 0) places_[e - 1] += weights_[e].joined + late;
        late += weights_[e].deep;
    }
}

}  // namespace isthmus
