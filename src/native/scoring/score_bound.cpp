#include "scoring/score_bound.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace isthmus {

ScoreBound::ScoreBound(Parts parts) : parts_{std::move(parts)} {
    const std::size_t d = parts_.levels.size();
    const auto refuse = [](const char* text) { throw std::invalid_argument{text}; };
    if (parts_.top.columns() != d + 1 || parts_.top.rows() != d) {
        refuse("top needs one row for each variable and one column for each number of parents");
    }
    const std::size_t rows = parts_.weight.rows();
    if (d > 0 && (parts_.weight.columns() != d || (rows != 1 && rows != d))) {
        refuse("weight needs one column for each variable, and one row or one for each variable");
    }
    if (parts_.scale.size() != d || parts_.factor.size() != d) {
        refuse("scale and factor need one value for each variable");
    }
    const std::size_t gains = parts_.gain.size();
    if (gains != 0 && gains != d * d && gains != d * d * d) {
        refuse("gain needs one value for each triple of variables, or for each pair");
    }
    const bool wanted = std::ranges::any_of(parts_.factor, [](double f) { return f > 0.0; });
    if (wanted && (!parts_.support || parts_.support->size() != d)) {
        refuse("a factor above zero needs a support over the same variables");
    }
}

ScoreBound ScoreBound::none(std::size_t size) {
    return ScoreBound{{.top = {size, size + 1, std::numeric_limits<double>::infinity()},
                       .weight = {1, size},
                       .scale = std::vector<double>(size),
                       .levels = std::vector<double>(size, 1.0),
                       .factor = std::vector<double>(size),
                       .support = nullptr,
                       .gain = {}}};
}

ScoreBound::Child ScoreBound::of(Variable child) const {
    const auto c = static_cast<std::size_t>(child);
    const std::size_t d = size();
    return {.top = parts_.top.row(c),
            .weight = parts_.weight.row(parts_.weight.rows() > 1 ? c : 0),
            .scale = parts_.scale[c],
            .levels = parts_.levels,
            .factor = parts_.factor[c],
            .support = parts_.support.get(),
            .gain = parts_.gain,
            .pairs = d > 1 && parts_.gain.size() == d * d * d};
}

}  // namespace isthmus
