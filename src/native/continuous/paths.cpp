#include "continuous/paths.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/simd.hpp"

namespace isthmus {

namespace {

ISTHMUS_CLONES
void unite(std::uint64_t* __restrict target, const std::uint64_t* __restrict source,
           std::size_t count) {
    for (std::size_t w = 0; w < count; ++w) target[w] |= source[w];
}

/// Adds `source` to the row of each member of `members`.
void unite_rows(Matrix<std::uint64_t>& rows, const std::vector<std::uint64_t>& members,
                const std::vector<std::uint64_t>& source) {
    for (std::size_t w = 0; w < members.size(); ++w) {
        for (std::uint64_t bits = members[w]; bits != 0; bits &= bits - 1) {
            const std::size_t member = w * 64 + static_cast<std::size_t>(std::countr_zero(bits));
            unite(rows.row(member).data(), source.data(), source.size());
        }
    }
}

/// Variables in an order along the edges; those on and behind cycles are missing.
std::vector<std::size_t> topological_order(const Matrix<std::uint8_t>& edges) {
    const std::size_t d = edges.columns();
    std::vector<std::size_t> waiting(d);
    for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = 0; j < d; ++j) waiting[j] += edges.row(i)[j] != 0 ? 1 : 0;
    }
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < d; ++j) {
        if (waiting[j] == 0) order.push_back(j);
    }
    for (std::size_t next = 0; next < order.size(); ++next) {
        const auto row = edges.row(order[next]);
        for (std::size_t j = 0; j < d; ++j) {
            if (row[j] != 0 && --waiting[j] == 0) order.push_back(j);
        }
    }
    return order;
}

}  // namespace

void PathMatrix::add(std::size_t from, std::size_t to) {
    if (reaches(from, to)) return;
    // Copies, because the rows themselves are among those that change.
    const auto above = above_.row(from);
    const auto below = below_.row(to);
    sources_.assign(above.begin(), above.end());
    targets_.assign(below.begin(), below.end());
    sources_[from / 64] |= std::uint64_t{1} << (from % 64);
    targets_[to / 64] |= std::uint64_t{1} << (to % 64);
    unite_rows(below_, sources_, targets_);
    unite_rows(above_, targets_, sources_);
}

std::size_t PathMatrix::ancestors(std::size_t variable) const {
    std::size_t count = 0;
    for (const std::uint64_t word : above_.row(variable)) {
        count += static_cast<std::size_t>(std::popcount(word));
    }
    return count;
}

void PathMatrix::fill(const Matrix<std::uint8_t>& edges, const std::vector<std::size_t>& order) {
    const auto join = [&](Matrix<std::uint64_t>& rows, std::size_t target, std::size_t source) {
        unite(rows.row(target).data(), rows.row(source).data(), rows.columns());
        rows.row(target)[source / 64] |= std::uint64_t{1} << (source % 64);
    };
    for (const std::size_t i : order) {
        for (std::size_t j = 0; j < edges.columns(); ++j) {
            if (edges.row(i)[j] != 0) join(above_, j, i);
        }
    }
    for (std::size_t p = order.size(); p-- > 0;) {
        const std::size_t i = order[p];
        for (std::size_t j = 0; j < edges.columns(); ++j) {
            if (edges.row(i)[j] != 0) join(below_, i, j);
        }
    }
}

PathMatrix paths_of(const Matrix<std::uint8_t>& edges, Watch& watch) {
    PathMatrix result{edges.columns()};
    const auto order = topological_order(edges);
    if (order.size() == edges.rows()) {
        result.fill(edges, order);
        return result;
    }
    for (std::size_t i = 0; i < edges.rows(); ++i) {
        for (std::size_t j = 0; j < edges.columns(); ++j) {
            if (edges.row(i)[j] != 0) result.add(i, j);
        }
        watch.poll_signals();
    }
    return result;
}

AcyclicEdges acyclic_edges(const Matrix<std::uint8_t>& required, Variables sources,
                           Variables targets, Watch& watch) {
    PathMatrix paths = paths_of(required, watch);
    AcyclicEdges result{.kept = std::vector<std::uint8_t>(sources.size()),
                        .order = std::vector<Variable>(paths.variables())};
    for (std::size_t e = 0; e < sources.size(); ++e) {
        const auto i = static_cast<std::size_t>(sources[e]);
        const auto j = static_cast<std::size_t>(targets[e]);
        if (i != j && !paths.reaches(j, i)) {
            paths.add(i, j);
            result.kept[e] = 1;
        }
        if (e % 64 == 63) watch.poll_signals();
    }
    // A variable has more ancestors than each of them.
    std::vector<std::size_t> counts(paths.variables());
    for (std::size_t v = 0; v < counts.size(); ++v) counts[v] = paths.ancestors(v);
    std::iota(result.order.begin(), result.order.end(), Variable{0});
    std::ranges::stable_sort(result.order, {},
                             [&](Variable v) { return counts[static_cast<std::size_t>(v)]; });
    return result;
}

}  // namespace isthmus
