#pragma once

#include <cstddef>
#include <cstdint>

namespace isthmus {

/// target += factor * row, element by element.
void add_scaled(double* target, const double* row, double factor, std::size_t length);

/// target += factors[m] * row m for m = 0, 1, … `count - 1`, where row m begins at
/// `rows + m * stride`: the same bits as one row after the other.
void add_scaled_rows(double* target, const double* rows, std::size_t stride, const double* factors,
                     std::size_t count, std::size_t length);

/// target += factors[m] * rows[m] for m = 0, 1, … `count - 1`: the same bits as one row after the
/// other.
void add_scaled_rows(double* target, const double* const* rows, const double* factors,
                     std::size_t count, std::size_t length);

/// target += factor * row where `since` is at most `now`.
void add_scaled_where(double* target, const double* row, double factor, const std::uint32_t* since,
                      std::uint32_t now, std::size_t length);

/// Subtracts `base[m * stride] * row m` for m = 0, 1, … `count - 1` from the target, where row m
/// begins at `base + m * stride`: one row of a Cholesky factor by the rows above it.
///
/// Each element sees its subtractions in this order, so the result does not depend on how many
/// elements the processor takes at a time.
void subtract_rows(double* target, const double* base, std::size_t stride, std::size_t count,
                   std::size_t length);

/// Sum of products in eight partial sums: the same bits on every processor.
[[nodiscard]] double dot(const double* a, const double* b, std::size_t length);

/// Rotates two rows: (a, b) becomes (cosine a + sine b, cosine b - sine a).
void rotate_rows(double* a, double* b, double cosine, double sine, std::size_t length);

}  // namespace isthmus
