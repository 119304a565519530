#include "scoring/discrete_score.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "scoring/discrete_family.hpp"

namespace isthmus {

namespace {

// Words of bitmaps read between two looks at the clock: some ten microseconds.
constexpr std::size_t work_between_polls = std::size_t{1} << 16;

double checked_parameter(DiscreteForm form, double parameter) {
    if (form == DiscreteForm::likelihood && !std::isfinite(parameter)) {
        throw std::invalid_argument{"The penalty per free parameter must be a finite number."};
    }
    if (form == DiscreteForm::bdeu && !(std::isfinite(parameter) && parameter > 0.0)) {
        throw std::invalid_argument{
            "The equivalent sample size must be a finite number greater than 0."};
    }
    if (form == DiscreteForm::k2 && !(std::isfinite(parameter) && parameter > 0.0)) {
        throw std::invalid_argument{"The pseudo-count must be a finite number greater than 0."};
    }
    return parameter;
}

}  // namespace

DiscreteScore::DiscreteScore(DiscreteData data, DiscreteForm form, double parameter)
    : data_{std::move(data)},
      values_{form, checked_parameter(form, parameter), data_.total()},
      rooms_{data_} {
    // Numbers of rows have 32 bits, and with the levels of two variables 64.
    if (data_.rows() >= std::size_t{1} << 30) {
        throw std::invalid_argument{
            "A score takes fewer than 2**30 different rows: summarise equal rows first."};
    }
}

void DiscreteScore::extensions(Variable child, Variables parents, Variables candidates,
                               std::span<double> out, Watch& watch) const {
    auto loan = rooms_.borrow();
    DiscreteFamily family{data_, values_, loan.room(), child, parents};
    BatchSteps steps{paused_, 0, child, parents, candidates, out};
    const bool listed = family.list_combinations();
    std::size_t left = candidates.size();
    if (listed) {
        if (steps.next()) out[0] = family.base_by_bitmaps();
        std::size_t work = 0;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (!family.bitmaps_pay(candidates[i])) continue;
            --left;
            if (!steps.next()) continue;
            out[1 + i] = family.extended_by_bitmaps(candidates[i]);
            work += family.bitmap_work(candidates[i]);
            if (work > work_between_polls && i + 1 < candidates.size()) {
                steps.poll(watch);
                work = 0;
            }
        }
        if (left == 0) return;
    }
    std::size_t widest = 1;
    for (const Variable candidate : candidates) {
        widest = std::max(widest, data_.levels(candidate));
    }
    family.number_rows(widest, left, watch);
    if (!listed && steps.next()) {
        out[0] = family.base_by_histogram(watch);
        if (left > 0) steps.poll(watch);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (listed && family.bitmaps_pay(candidates[i])) continue;
        --left;
        if (!steps.next()) continue;
        out[1 + i] = family.extended_by_histogram(candidates[i], watch);
        if (left > 0) steps.poll(watch);
    }
}

void DiscreteScore::reductions(Variable child, Variables parents, std::size_t first,
                               std::span<double> out, Watch& watch) const {
    auto loan = rooms_.borrow();
    BatchSteps steps{paused_, 1 + static_cast<Variable>(first), child, parents, {}, out};
    std::vector<Variable> rest{parents.begin(), parents.end()};
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(first));
    for (std::size_t i = 0; i < out.size(); ++i) {
        // From one set to the next, one parent comes in again and the one after it goes.
        if (i > 0) rest[first + i - 1] = parents[first + i - 1];
        if (!steps.next()) continue;
        out[i] = base(child, rest, loan.room(), watch);
        if (i + 1 < out.size()) steps.poll(watch);
    }
}

double DiscreteScore::base(Variable child, Variables parents, DiscreteRoom& room,
                           Watch& watch) const {
    DiscreteFamily family{data_, values_, room, child, parents};
    if (family.list_combinations()) return family.base_by_bitmaps();
    family.number_rows(1, 0, watch);
    return family.base_by_histogram(watch);
}

}  // namespace isthmus
