#include "mcmc/block_resampling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "mcmc/weights.hpp"

namespace isthmus {

namespace {

/// Added to the probabilities of edges, so that any nodes may form a block.
constexpr double least_affinity = 0.02;
/// Shares below this are rounding errors of differences, and left out.
constexpr double least_share = 1e-13;

}  // namespace

BlockResampling::BlockResampling(const FamilyTables& tables)
    : tables_{tables},
      affinity_{tables.size(), tables.size()},
      near_(tables.size()),
      children_{tables.size(), words_for(tables.size())},
      descendants_{largest, words_for(tables.size())},
      allowed_{std::size_t{1} << largest, words_for(tables.size())},
      wanted_(words_for(tables.size())) {
    const std::size_t d = tables.size();
    std::vector<Word> others(words_for(d));
    std::vector<double> row(d);
    for (std::size_t v = 0; v < d; ++v) {
        for (std::size_t u = 0; u < d; ++u) {
            affinity_.row(v)[u] += least_affinity;
            add(others, static_cast<Variable>(u));
        }
        flip(others, static_cast<Variable>(v));
        tables[v].edge_probabilities(others, {}, row);
        for (std::size_t u = 0; u < d; ++u) {
            affinity_.row(v)[u] += row[u];
            affinity_.row(u)[v] += row[u];
        }
    }
}

void BlockResampling::resample(Matrix<Word>& parents, std::size_t size, Chance& chance) {
    choose_nodes(std::min({size, tables_.size(), largest}), chance);
    find_allowed(parents);
    weigh();
    add_up();
    draw(parents, chance);
}

void BlockResampling::choose_nodes(std::size_t size, Chance& chance) {
    nodes_.assign(1, chance.below(tables_.size()));
    std::ranges::fill(near_, 0.0);
    while (nodes_.size() < size) {
        const auto row = affinity_.row(nodes_.back());
        for (std::size_t u = 0; u < near_.size(); ++u) near_[u] += row[u];
        for (const std::size_t v : nodes_) near_[v] = 0.0;
        nodes_.push_back(chance.pick(near_));
    }
    subsets_ = std::size_t{1} << nodes_.size();
}

void BlockResampling::find_allowed(const Matrix<Word>& parents) {
    for (std::size_t v = 0; v < children_.rows(); ++v) std::ranges::fill(children_.row(v), 0);
    for (std::size_t v = 0; v < parents.rows(); ++v) {
        if (std::ranges::find(nodes_, v) != nodes_.end()) continue;
        for_each(parents.row(v), [&](Variable u) {
            add(children_.row(static_cast<std::size_t>(u)), static_cast<Variable>(v));
        });
    }
    std::vector<std::size_t> waiting;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const auto found = descendants_.row(i);
        std::ranges::fill(found, 0);
        add(found, static_cast<Variable>(nodes_[i]));
        waiting.assign(1, nodes_[i]);
        while (!waiting.empty()) {
            const auto children = children_.row(waiting.back());
            waiting.pop_back();
            for (std::size_t w = 0; w < found.size(); ++w) {
                Word fresh = children[w] & ~found[w];
                found[w] |= fresh;
                for (; fresh != 0; fresh &= fresh - 1) {
                    waiting.push_back(64 * w + static_cast<std::size_t>(std::countr_zero(fresh)));
                }
            }
        }
    }
    // All nodes but the descendants of those that are not placed yet.
    const Subset all = static_cast<Subset>(subsets_ - 1);
    std::ranges::fill(allowed_.row(all), 0);
    for (std::size_t v = 0; v < tables_.size(); ++v) add(allowed_.row(all), static_cast<Variable>(v));
    for (Subset missing = 1; missing < subsets_; ++missing) {
        const auto i = static_cast<std::size_t>(std::countr_zero(missing));
        const auto from = allowed_.row(all & ~(missing & (missing - 1)));
        const auto to = allowed_.row(all & ~missing);
        const auto blocked = descendants_.row(i);
        for (std::size_t w = 0; w < to.size(); ++w) to[w] = from[w] & ~blocked[w];
    }
}

void BlockResampling::weigh() {
    logs_.assign(nodes_.size() * subsets_, none);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const FamilyTable& table = tables_[nodes_[i]];
        for (Subset placed = 0; placed < subsets_; ++placed) {
            if ((placed >> i & 1) == 0) logs_[at(i, placed)] = table.total(allowed_.row(placed));
        }
    }
    values_.resize(logs_.size());
    inverses_.resize(logs_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const double top = logs_[at(i, static_cast<Subset>(subsets_ - 1) & ~(Subset{1} << i))];
        for (Subset placed = 0; placed < subsets_; ++placed) {
            values_[at(i, placed)] = std::exp(logs_[at(i, placed)] - top);
            inverses_[at(i, placed)] = 1.0 / values_[at(i, placed)];
        }
    }
    best_.assign(subsets_, none);
    best_[0] = 0.0;
    for (Subset placed = 1; placed < subsets_; ++placed) {
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const Subset before = placed & ~(Subset{1} << i);
            if (before == placed) continue;
            best_[placed] = std::max(best_[placed], best_[before] + logs_[at(i, before)]);
        }
    }
}

double BlockResampling::share(std::size_t node, Subset placed, Subset last) const {
    if (placed == 0) return 1.0;
    double rest = 1.0 - values_[at(node, placed & ~last)] * inverses_[at(node, placed)];
    if (values_[at(node, placed)] < least_mantissa) {  // below the range, where digits are lost
        const double all = logs_[at(node, placed)];
        rest = all == none ? 0.0 : -std::expm1(logs_[at(node, placed & ~last)] - all);
    }
    return rest > least_share ? rest : 0.0;
}

void BlockResampling::add_up() {
    sums_.assign(subsets_ * subsets_, 0.0);
    sums_[0] = 1.0;
    for (Subset placed = 0; placed + 1 < subsets_; ++placed) {
        if (best_[placed] == none) continue;
        layers_.assign(1, 0);
        exponents_.assign(1, best_[placed]);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if ((placed >> i & 1) != 0) continue;
            const std::size_t count = layers_.size();
            for (std::size_t k = 0; k < count; ++k) {
                layers_.push_back(layers_[k] | Subset{1} << i);
                exponents_.push_back(exponents_[k] + logs_[at(i, placed)]);
            }
        }
        reached_.assign(layers_.size(), 0.0);
        for (Subset last = placed;; last = (last - 1) & placed) {
            const double weight = sums_[at(placed, last)];
            if (weight > 0.0) extend(placed, last, weight);
            if (last == 0) break;
        }
        for (std::size_t k = 1; k < layers_.size(); ++k) {
            if (reached_[k] == 0.0) continue;
            const Subset next = placed | layers_[k];
            sums_[at(next, layers_[k])] = reached_[k] * std::exp(exponents_[k] - best_[next]);
        }
    }
}

void BlockResampling::extend(Subset placed, Subset last, double weight) {
    products_.resize(layers_.size());
    products_[0] = weight;
    std::size_t count = 1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if ((placed >> i & 1) != 0) continue;
        const double own = share(i, placed, last);
        for (std::size_t k = 0; k < count; ++k) products_[count + k] = own * products_[k];
        count *= 2;
    }
    for (std::size_t k = 0; k < count; ++k) reached_[k] += products_[k];
}

void BlockResampling::draw(Matrix<Word>& parents, Chance& chance) {
    auto placed = static_cast<Subset>(subsets_ - 1);
    Subset layer = 0;  // the next one to draw parents for; none at first
    while (placed != 0 || layer != 0) {
        // The last layer of those that are placed, given the layer that follows.
        options_.clear();
        option_layers_.clear();
        for (Subset last = placed;; last = (last - 1) & placed) {
            double weight = sums_[at(placed, last)];
            for (Subset left = layer; left != 0 && weight > 0.0; left &= left - 1) {
                weight *= share(static_cast<std::size_t>(std::countr_zero(left)), placed, last);
            }
            options_.push_back(weight);
            option_layers_.push_back(last);
            if (last == 0) break;
        }
        const Subset last = option_layers_[chance.pick(options_)];
        const auto allowed = allowed_.row(placed);
        const auto early = allowed_.row(placed & ~last);
        for (std::size_t w = 0; w < wanted_.size(); ++w) wanted_[w] = allowed[w] & ~early[w];
        for (Subset left = layer; left != 0; left &= left - 1) {
            const std::size_t v = nodes_[static_cast<std::size_t>(std::countr_zero(left))];
            const auto wanted = placed == 0 ? std::span<const Word>{} : std::span<const Word>{wanted_};
            tables_[v].parents(tables_[v].draw(allowed, wanted, chance), parents.row(v));
        }
        layer = last;
        placed &= ~last;
    }
}

}  // namespace isthmus
