#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "orders/rules.hpp"

namespace isthmus {

/// Who may be a parent of one child.
struct Candidates {
    Variable child;
    std::vector<Variable> base;   // parents that it must have, ascending
    std::vector<Variable> names;  // others that it may have, ascending
    std::size_t room;             // how many of those at most

    Candidates(const Rules& rules, Variable of)
        : child{of}, base{rules.required(of).begin(), rules.required(of).end()} {
        const auto forbidden = rules.forbidden(of);
        for (std::size_t p = 0; p < forbidden.size(); ++p) {
            const auto v = static_cast<Variable>(p);
            if (v == of || forbidden[p] != 0 || std::ranges::binary_search(base, v)) continue;
            names.push_back(v);
        }
        room = rules.max_parents() > base.size() ? rules.max_parents() - base.size() : 0;
        room = std::min(room, names.size());
    }
};

}  // namespace isthmus
