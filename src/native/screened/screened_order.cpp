#include "screened/screened_order.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "screened/local_families.hpp"

namespace isthmus {

namespace {

// By how much a place in the order must be better than another: below lies rounding.
constexpr double least_gain = 1e-6;

void put_bit(FamilyTree::Available& set, std::size_t i) { set[i >> 6] |= std::uint64_t{1} << (i & 63); }
void drop_bit(FamilyTree::Available& set, std::size_t i) {
    set[i >> 6] &= ~(std::uint64_t{1} << (i & 63));
}

/// Refuses a number for which arrays would not fit into the memory of any machine.
std::size_t checked_number(std::size_t variables) {
    if (variables > ScreenedOrder::max_variables) {
        throw std::invalid_argument{"there are too many variables"};
    }
    return variables;
}

void check_permutation(Variables order, std::size_t size) {
    std::vector<std::uint8_t> seen(size);
    for (const Variable v : order) {
        if (v < 0 || index(v) >= size || seen[index(v)] != 0) break;
        seen[index(v)] = 1;
    }
    if (order.size() != size || std::ranges::find(seen, 0) != seen.end()) {
        throw std::invalid_argument{"the order must have each variable once"};
    }
}

}  // namespace

ScreenedOrder::ScreenedOrder(std::size_t variables, GaussianCriterion criterion)
    : criterion_{std::move(criterion)},
      partners_(checked_number(variables)),
      required_(variables),
      trees_(variables),
      parents_(variables),
      score_(variables),
      label_(variables),
      queued_(variables) {
    if (criterion_.constant.empty() || !(criterion_.factor > 0.0) || !(criterion_.tolerance > 0.0)) {
        throw std::invalid_argument{"the criterion needs constants, a factor and a tolerance"};
    }
    start_alone();
}

ScreenedOrder::ScreenedOrder(std::shared_ptr<const LocalScore> score, std::vector<Variable> names,
                             std::size_t max_parents)
    : criterion_{.constant = {}, .factor = 0.0, .tolerance = 0.0, .max_parents = max_parents},
      local_{std::move(score)},
      names_{std::move(names)},
      partners_(checked_number(names_.size())),
      required_(names_.size()),
      trees_(names_.size()),
      parents_(names_.size()),
      score_(names_.size()),
      label_(names_.size()),
      queued_(names_.size()) {
    check_permutation(names_, local_->size());
    start_alone();
}

void ScreenedOrder::start_alone() {
    std::iota(label_.begin(), label_.end(), 0.0);
    for (std::size_t v = 0; v < size(); ++v) trees_[v] = {scores_of(v, {}, {1.0}), {}, {}};
}

std::unique_ptr<const FamilyScores> ScreenedOrder::scores_of(
    std::size_t variable, const std::vector<std::uint32_t>& partners,
    std::vector<double> correlation) const {
    if (local_ == nullptr) {
        return std::make_unique<GaussianFamilies>(criterion_, std::move(correlation),
                                                  partners.size());
    }
    std::vector<Variable> candidates(partners.size());
    std::ranges::transform(partners, candidates.begin(),
                           [&](std::uint32_t u) { return names_[u]; });
    return std::make_unique<LocalFamilies>(*local_, names_[variable], std::move(candidates),
                                           criterion_.max_parents);
}

void ScreenedOrder::set_partners(std::size_t variable, std::vector<std::uint32_t> partners,
                                 std::vector<double> correlation, std::vector<std::uint8_t> allowed,
                                 std::vector<FamilyTree::Local> required) {
    if (variable >= size()) throw std::out_of_range{"there is no such variable"};
    if (partners.size() != allowed.size()) {
        throw std::invalid_argument{"partners and what is allowed differ in number"};
    }
    for (std::size_t i = 0; i < partners.size(); ++i) {
        if (partners[i] >= size() || partners[i] == variable ||
            (i > 0 && partners[i] <= partners[i - 1])) {
            throw std::invalid_argument{"partners must be other variables in ascending order"};
        }
    }
    trees_[variable] = {scores_of(variable, partners, std::move(correlation)), std::move(allowed),
                        required};
    partners_[variable] = std::move(partners);
    required_[variable] = std::move(required);
}

std::size_t ScreenedOrder::position_of(std::size_t variable, std::size_t partner) const {
    const auto& own = partners_[variable];
    const auto found = std::ranges::lower_bound(own, partner);
    if (found == own.end() || *found != partner) throw std::logic_error{"partners are not mutual"};
    return static_cast<std::size_t>(found - own.begin());
}

void ScreenedOrder::write_available(std::size_t variable, FamilyTree::Available& out) const {
    const auto& own = partners_[variable];
    out.assign((own.size() + 63) / 64, 0);
    const double label = label_[variable];
    for (std::size_t i = 0; i < own.size(); ++i) {
        if (label_[own[i]] < label) put_bit(out, i);
    }
}

void ScreenedOrder::take_family(std::size_t variable, const FamilyTree::Family& family) {
    total_ += family.score - score_[variable];
    score_[variable] = family.score;
    parents_[variable].assign(family.parents.begin(), family.parents.end());
}

void ScreenedOrder::renew(std::size_t variable) {
    write_available(variable, available_);
    take_family(variable, trees_[variable].find(available_));
}

void ScreenedOrder::start(Variables order) {
    check_permutation(order, size());
    for (std::size_t i = 0; i < order.size(); ++i) label_[index(order[i])] = static_cast<double>(i);
    total_ = 0.0;
    std::ranges::fill(score_, 0.0);
    for (const Variable v : order) renew(index(v));
    queue_.clear();
    std::ranges::fill(queued_, std::uint8_t{0});
    for (const Variable v : order) queue(index(v));
}

void ScreenedOrder::settle(Variables changed) {
    for (const Variable v : changed) {
        if (v < 0 || index(v) >= size()) throw std::out_of_range{"there is no such variable"};
    }
    number_places();
    for (const Variable v : changed) renew(index(v));
    for (const Variable v : changed) {
        queue(index(v));
        for (const std::uint32_t u : partners_[index(v)]) queue(u);
    }
}

/// Numbers the places of the order. New partners may have had the same label.
void ScreenedOrder::number_places() {
    const std::vector<Variable> sorted = order();
    for (std::size_t i = 0; i < sorted.size(); ++i) label_[index(sorted[i])] = static_cast<double>(i);
}

void ScreenedOrder::queue(std::size_t variable) {
    if (queued_[variable] != 0) return;
    queued_[variable] = 1;
    queue_.push_back(static_cast<std::uint32_t>(variable));
}

bool ScreenedOrder::step(Watch& watch) {
    return run_slice([&] {
        while (!queue_.empty()) {
            const std::size_t v = queue_.front();
            queue_.pop_front();
            queued_[v] = 0;
            improve(v);
            watch.poll();
        }
    });
}

void ScreenedOrder::sort_partners(std::size_t variable) {
    by_label_.clear();
    const auto& own = partners_[variable];
    for (std::size_t i = 0; i < own.size(); ++i) {
        by_label_.emplace_back(label_[own[i]], static_cast<std::uint32_t>(i));
    }
    std::ranges::sort(by_label_);
}

/// Finds the best place of a variable among its partners, and moves it there if that is better.
void ScreenedOrder::improve(std::size_t variable) {
    const auto& own = partners_[variable];
    const std::size_t k = own.size();
    if (k == 0) return;
    sort_partners(variable);
    const auto here = static_cast<std::size_t>(
        std::ranges::lower_bound(by_label_, std::pair{label_[variable], std::uint32_t{0}}) -
        by_label_.begin());
    // Places that required edges leave.
    std::size_t lowest = 0;
    std::size_t highest = k;
    for (std::size_t j = 0; j < k; ++j) {
        const std::uint32_t u = own[by_label_[j].second];
        if (std::ranges::find(required_[variable], by_label_[j].second) != required_[variable].end()) {
            lowest = j + 1;
        }
        if (!required_[u].empty() && highest == k) {
            const auto at = static_cast<FamilyTree::Local>(position_of(u, variable));
            if (std::ranges::find(required_[u], at) != required_[u].end()) highest = j;
        }
    }
    // gain_[s]: of the variable itself at place s; then what partners gain is added.
    gain_.assign(k + 1, 0.0);
    available_.assign((k + 63) / 64, 0);
    for (std::size_t s = 0; s <= k; ++s) {
        if (s > 0) put_bit(available_, by_label_[s - 1].second);
        if (s < lowest || s > highest) continue;
        gain_[s] = trees_[variable].find(available_).score - score_[variable];
    }
    double sum = 0.0;
    const auto flip = [&](std::size_t j, bool with) {
        const std::uint32_t u = own[by_label_[j].second];
        const std::size_t at = position_of(u, variable);
        if (!trees_[u].allows(at)) return 0.0;
        write_available(u, available_);
        if (with) {
            put_bit(available_, at);
        } else {
            drop_bit(available_, at);
        }
        return trees_[u].find(available_).score - score_[u];
    };
    for (std::size_t s = here; s-- > lowest;) gain_[s] += sum += flip(s, true);
    sum = 0.0;
    for (std::size_t s = here + 1; s <= highest; ++s) gain_[s] += sum += flip(s - 1, false);
    std::size_t best = here;
    for (std::size_t s = lowest; s <= highest; ++s) {
        if (gain_[s] > gain_[best] + least_gain) best = s;
    }
    if (best == here) return;
    move(variable, here, best);
}

/// Moves a variable to another place among its partners, which `by_label_` must list.
void ScreenedOrder::move(std::size_t variable, std::size_t here, std::size_t place) {
    const auto& own = partners_[variable];
    const std::size_t k = own.size();
    const double low = place > 0 ? by_label_[place - 1].first : by_label_[0].first - 2.0;
    const double high = place < k ? by_label_[place].first : by_label_[k - 1].first + 2.0;
    label_[variable] = 0.5 * (low + high);
    if (!(low < label_[variable] && label_[variable] < high)) {
        // No number is between these two: give all places new ones, and this variable a number
        // between two of them.
        label_[variable] = place > 0 ? low : high;
        number_places();
        const std::uint32_t beside = own[by_label_[place > 0 ? place - 1 : place].second];
        label_[variable] = label_[beside] + (place > 0 ? 0.25 : -0.25);
    }
    renew(variable);
    const std::size_t first = std::min(here, place);
    const std::size_t last = std::max(here, place);
    for (std::size_t j = first; j < last; ++j) {
        const std::uint32_t u = own[by_label_[j].second];
        const std::vector<FamilyTree::Local> old = parents_[u];
        renew(u);
        if (old == parents_[u]) continue;
        queue(u);
        for (const std::uint32_t w : partners_[u]) queue(w);
    }
    for (const std::uint32_t w : own) queue(w);
}

std::vector<Variable> ScreenedOrder::parents(std::size_t variable) const {
    std::vector<Variable> found;
    for (const FamilyTree::Local p : parents_[variable]) found.push_back(partners_[variable][p]);
    return found;
}

std::vector<double> ScreenedOrder::coefficients(std::size_t variable) const {
    return trees_[variable].coefficients(parents_[variable]);
}

std::vector<Variable> ScreenedOrder::order() const {
    std::vector<Variable> sorted(size());
    std::iota(sorted.begin(), sorted.end(), Variable{0});
    std::ranges::sort(sorted, {}, [this](Variable v) { return std::pair{label_[index(v)], v}; });
    return sorted;
}

}  // namespace isthmus
