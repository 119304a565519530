#include "screened/local_families.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {

LocalFamilies::LocalFamilies(const LocalScore& score, Variable child,
                             std::vector<Variable> candidates, std::size_t max_parents)
    : score_{score},
      child_{child},
      candidates_{std::move(candidates)},
      max_parents_{max_parents} {}

std::vector<Variable> LocalFamilies::variables(std::span<const Local> parents) const {
    std::vector<Variable> found(parents.size());
    std::ranges::transform(parents, found.begin(), [&](Local p) { return candidates_[p]; });
    return found;
}

double LocalFamilies::extend(std::span<const Local> parents, std::span<const std::uint8_t> allowed,
                             Ranking& raising) const {
    std::vector<Local> tried;
    if (parents.size() < max_parents_) {
        for (std::size_t j = 0; j < candidates_.size(); ++j) {
            const auto candidate = static_cast<Local>(j);
            if (allowed[j] != 0 && std::ranges::find(parents, candidate) == parents.end()) {
                tried.push_back(candidate);
            }
        }
    }
    std::vector<double> values(tried.size() + 1);
    auto watch = Watch::unlimited();
    score_.extensions(child_, variables(parents), variables(tried), values, watch);
    for (std::size_t j = 0; j < tried.size(); ++j) {
        if (values[1 + j] > values[0]) raising.emplace_back(-values[1 + j], tried[j]);
    }
    return values[0];
}

void LocalFamilies::reduce(std::span<const Local> parents, std::size_t first,
                           std::span<double> out) const {
    auto watch = Watch::unlimited();
    score_.reductions(child_, variables(parents), first, out, watch);
}

}  // namespace isthmus
