#include "mcmc/edge_reversal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus {

EdgeReversal::EdgeReversal(const FamilyTables& tables)
    : tables_{tables},
      parents_{tables.size(), words_for(tables.size())},
      proposal_{parents_},
      orphaned_{parents_},
      allowed_(words_for(tables.size())),
      single_(allowed_) {}

void EdgeReversal::start(const Matrix<Word>& parents) {
    parents_ = parents;
    changed_ = false;
}

bool EdgeReversal::propose(Chance& chance) {
    edges_.clear();
    std::size_t kept = 0;
    for (std::size_t v = 0; v < parents_.rows(); ++v) {
        for_each(parents_.row(v), [&](Variable u) {
            edges_.emplace_back(static_cast<std::size_t>(u), v);
        });
    }
    if (edges_.empty()) return false;
    const auto [i, j] = edges_[chance.below(edges_.size())];
    orphaned_ = parents_;
    std::ranges::fill(orphaned_.row(i), 0);
    std::ranges::fill(orphaned_.row(j), 0);
    proposal_ = orphaned_;

    // There: parents of i, j among them, and then any parents of j.
    find_allowed(orphaned_, i, allowed_);
    std::ranges::fill(single_, 0);
    add(single_, static_cast<Variable>(j));
    log_ratio_ = tables_[i].restricted(allowed_, single_);
    if (log_ratio_ == -std::numeric_limits<double>::infinity()) return false;
    tables_[i].parents(tables_[i].draw(allowed_, single_, chance), proposal_.row(i));
    find_allowed(proposal_, j, allowed_);
    const double second = tables_[j].total(allowed_);
    if (second == -std::numeric_limits<double>::infinity()) return false;
    log_ratio_ += second;
    tables_[j].parents(tables_[j].draw(allowed_, {}, chance), proposal_.row(j));

    // Back: parents of j, i among them, and then any parents of i.
    find_allowed(orphaned_, j, allowed_);
    std::ranges::fill(single_, 0);
    add(single_, static_cast<Variable>(i));
    log_ratio_ -= tables_[j].restricted(allowed_, single_);
    std::ranges::copy(parents_.row(j), orphaned_.row(j).begin());
    find_allowed(orphaned_, i, allowed_);
    log_ratio_ -= tables_[i].total(allowed_);

    for (std::size_t v = 0; v < proposal_.rows(); ++v) kept += count(proposal_.row(v));
    log_ratio_ += std::log(static_cast<double>(edges_.size()) / static_cast<double>(kept));
    return true;
}

void EdgeReversal::commit() {
    std::swap(parents_, proposal_);
    changed_ = true;
}

void EdgeReversal::find_allowed(const Matrix<Word>& graph, std::size_t node,
                                std::vector<Word>& allowed) {
    const std::size_t d = graph.rows();
    for (std::size_t w = 0; w < allowed.size(); ++w) {
        const std::size_t left = d - std::min(d, 64 * w);
        allowed[w] = left >= 64 ? ~Word{0} : (Word{1} << left) - 1;
    }
    // Removes the node and its descendants.
    flip(allowed, static_cast<Variable>(node));
    waiting_.assign(1, node);
    while (!waiting_.empty()) {
        const auto parent = static_cast<Variable>(waiting_.back());
        waiting_.pop_back();
        for (std::size_t v = 0; v < d; ++v) {
            if (!has(graph.row(v), parent) || !has(allowed, static_cast<Variable>(v))) continue;
            flip(allowed, static_cast<Variable>(v));
            waiting_.push_back(v);
        }
    }
}

}  // namespace isthmus
