#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/watch.hpp"

namespace isthmus {

/// A Cholesky factor U of a symmetric matrix H = U'U, its rows one after the other.
///
/// Variables can be appended and removed at a cost of k² instead of k³. The upper factor is kept,
/// not the lower one: then every loop runs along rows.
class UpperFactor {
public:
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Row i from its diagonal entry on.
    [[nodiscard]] double* row(std::size_t i) { return values_.data() + i * stride_ + i; }
    [[nodiscard]] const double* row(std::size_t i) const {
        return values_.data() + i * stride_ + i;
    }

    /// Makes room for `size` variables; what is in the rows is undefined until it is written.
    void resize(std::size_t size);

    /// Factorises rows that hold H from the diagonal on. Resumes after a pause where it was.
    ///
    /// Returns false where a variable depends on earlier ones: a pivot of at most 1e-10 of its
    /// diagonal entry.
    [[nodiscard]] bool factorise(Watch& watch);
    /// Forgets a factorisation under way.
    void begin_factorisation() { next_ = 0; }

    /// Appends a variable with the entries H[new, 0..k] of which the last is the diagonal one.
    ///
    /// Returns false, and appends nothing, where it depends on the others.
    [[nodiscard]] bool append(std::span<const double> entries);
    /// Appends a variable whose column of the factor above the diagonal is known already.
    [[nodiscard]] bool append_solved(std::span<const double> column, double diagonal);
    /// Removes the variable at `position`. The others keep their order.
    void remove(std::size_t position);
    /// The same, and rotates along a vector that solves U'z = b.
    void remove(std::size_t position, std::span<double> solved);

    /// Copies the rows, each from its diagonal entry on, one after the other.
    [[nodiscard]] std::vector<double> packed() const;
    /// Takes such a copy of a factor of `size` variables.
    void load(std::span<const double> packed, std::size_t size);

    /// x becomes the solution of U'z = x.
    void solve_lower(std::span<double> x) const;
    /// x becomes the solution of U z = x.
    void solve_upper(std::span<double> x) const;

private:
    void reserve(std::size_t size);

    std::size_t size_ = 0;
    std::size_t stride_ = 0;
    std::size_t next_ = 0;
    std::vector<double> values_;
    std::vector<double> column_;
};

}  // namespace isthmus
