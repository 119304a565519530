#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/exclusive.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"
#include "scoring/local_score.hpp"
#include "screened/family_tree.hpp"
#include "screened/gaussian_families.hpp"

namespace isthmus {

/// Best order score search where each variable has few candidates, its partners.
///
/// The place of a variable in the order matters to itself and its partners only, and only relative to
/// these. So a variable with k partners has k + 1 places to try, whatever the number of variables is,
/// and no square array of variables is ever needed.
class ScreenedOrder {
public:
    static constexpr std::size_t max_variables = std::size_t{1} << 24;

    ScreenedOrder(std::size_t variables, GaussianCriterion criterion);
    /// `names[v]` is the variable of the score that v stands for.
    ScreenedOrder(std::shared_ptr<const LocalScore> score, std::vector<Variable> names,
                  std::size_t max_parents);
    ScreenedOrder(const ScreenedOrder&) = delete;
    ScreenedOrder& operator=(const ScreenedOrder&) = delete;

    /// Gives a variable its partners (ascending). Partners must be mutual. A criterion needs their
    /// correlations, with the child's last. `settle` must follow when all are given.
    void set_partners(std::size_t variable, std::vector<std::uint32_t> partners,
                      std::vector<double> correlation, std::vector<std::uint8_t> allowed,
                      std::vector<FamilyTree::Local> required);
    /// Starts from an order, which must obey the required edges.
    void start(Variables order);
    /// Computes the families of variables whose partners changed, and queues what that affects.
    void settle(Variables changed);
    /// Moves variables until no move raises the score; returns whether that is so.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t size() const { return trees_.size(); }
    [[nodiscard]] double score() const { return total_; }
    [[nodiscard]] std::vector<Variable> parents(std::size_t variable) const;
    [[nodiscard]] std::vector<double> coefficients(std::size_t variable) const;
    [[nodiscard]] std::vector<Variable> order() const;
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void start_alone();
    [[nodiscard]] std::unique_ptr<const FamilyScores> scores_of(
        std::size_t variable, const std::vector<std::uint32_t>& partners,
        std::vector<double> correlation) const;
    [[nodiscard]] std::size_t position_of(std::size_t variable, std::size_t partner) const;
    void write_available(std::size_t variable, FamilyTree::Available& out) const;
    void take_family(std::size_t variable, const FamilyTree::Family& family);
    void renew(std::size_t variable);
    void improve(std::size_t variable);
    void move(std::size_t variable, std::size_t here, std::size_t place);
    void queue(std::size_t variable);
    void number_places();
    void sort_partners(std::size_t variable);

    GaussianCriterion criterion_;
    std::shared_ptr<const LocalScore> local_;  // null: the criterion scores
    std::vector<Variable> names_;
    std::vector<std::vector<std::uint32_t>> partners_;
    std::vector<std::vector<FamilyTree::Local>> required_;
    std::vector<FamilyTree> trees_;
    std::vector<std::vector<FamilyTree::Local>> parents_;
    std::vector<double> score_;
    std::vector<double> label_;  // the order is that of these
    std::deque<std::uint32_t> queue_;
    std::vector<std::uint8_t> queued_;
    double total_ = 0.0;
    // Working room of `improve`.
    std::vector<std::pair<double, std::uint32_t>> by_label_;
    std::vector<double> gain_;
    FamilyTree::Available available_;
    InUse in_use_;
};

}  // namespace isthmus
