#include "mcmc/family_tables.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/checked.hpp"

namespace isthmus {

FamilyTables::FamilyTables(std::shared_ptr<const LocalScore> score, const Rules& rules,
                           const Matrix<std::uint8_t>& candidates, bool outside,
                           const FamilyTables* previous)
    : score_{std::move(score)} {
    const std::size_t d = rules.size();
    if (d == 0 || score_->size() != d || candidates.rows() != d || candidates.columns() != d) {
        throw std::invalid_argument{"score, rules and candidates must be of one size, not empty"};
    }
    if (previous != nullptr && (previous->score_ != score_ || !previous->done())) {
        throw std::invalid_argument{"the previous tables must be complete and of the same score"};
    }
    std::size_t total = 0;
    tables_.reserve(d);
    for (std::size_t v = 0; v < d; ++v) {
        const auto child = static_cast<Variable>(v);
        const auto forbidden = rules.forbidden(child);
        std::vector<Variable> inside;
        std::vector<Variable> others;
        for (std::size_t u = 0; u < d; ++u) {
            const auto parent = static_cast<Variable>(u);
            const bool required = rules.is_required(parent, child);
            if (u == v || (forbidden[u] != 0 && !required)) continue;
            if (required || candidates.row(u)[v] != 0) {
                inside.push_back(parent);
            } else if (outside) {
                others.push_back(parent);
            }
        }
        if (inside.size() > max_candidates) {
            throw std::invalid_argument{"a node has more than 20 candidate parents"};
        }
        total += saturated_product(std::size_t{1} << inside.size(), others.size() + 1);
        if (total > max_families) throw std::invalid_argument{"there are too many parent sets"};
        auto table = std::make_shared<FamilyTable>(child, std::move(inside), std::move(others),
                                                   rules.required(child), rules.max_parents());
        const bool same = previous != nullptr && table->same_families(*previous->tables_[v]);
        tables_.push_back(same ? previous->tables_[v] : std::move(table));
    }
}

bool FamilyTables::step(Watch& watch, std::size_t jobs) {
    std::vector<FamilyTable*> waiting;
    for (const auto& table : tables_) {
        if (!table->built()) waiting.push_back(table.get());
    }
    run_slice([&] {
        Pool{jobs}.run(waiting.size(), watch, [&](std::size_t i, Watch& own) {
            waiting[i]->build(*score_, own);
        });
    });
    return done();
}

std::size_t FamilyTables::built() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        tables_, [](const auto& table) { return table->built(); }));
}

std::size_t FamilyTables::families() const {
    std::size_t total = 0;
    for (const auto& table : tables_) total += table->families();
    return total;
}

double FamilyTables::best_score() const {
    double total = 0.0;
    for (const auto& table : tables_) total += table->best_score();
    return total;
}

}  // namespace isthmus
