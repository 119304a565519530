#include "scoring/child_scores.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace isthmus {

ChildScores::ChildScores(std::vector<const LocalScore*> scores) : scores_{std::move(scores)} {
    const auto differs = [this](const LocalScore* score) { return score->size() != scores_.size(); };
    if (scores_.empty() || std::ranges::any_of(scores_, differs)) {
        throw std::invalid_argument{"There must be one score per variable, each of all variables."};
    }
}

}  // namespace isthmus
