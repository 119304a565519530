#pragma once

#include <array>
#include <vector>

#include "scoring/doubled_factor.hpp"
#include "scoring/gaussian_score.hpp"
#include "scoring/gaussian_tile.hpp"
#include "scoring/set_determinant.hpp"

namespace isthmus {

/// What the candidates need to know of the set that they extend.
struct GaussianScore::Base {
    double variance;         // of the child, given the parents
    double log_determinant;  // of the parents
    double left = 1.0;       // the variance as it was computed, not raised to the tolerance
    double product = 1.0;    // of the pivots of the parents
    double smallest = 1.0;   // of these
};

/// Room to work in. One for each thread, kept between calls: a score with few parents takes less
/// time than the allocations would.
struct GaussianScore::Scratch {
    std::vector<double> lower;
    std::vector<double> inverse;
    std::vector<double> own;
    std::vector<double> pivots;
    std::vector<Tile> factored;
    std::vector<Tile> solved;

    // For families with columns that others determine, or nearly so.
    LeastShare share;         // of the parents and the child
    LeastShare parent_share;  // of the parents
    bool tried_more_digits = false;  // whether the next one was computed in this call
    bool has_more_digits = false;    // whether these columns are clear of the tolerance
    DoubledFactor more_digits;       // of the parents and the child
    LeastShare exact_share;          // by that factor
    std::vector<Tile> exact_rows;    // of candidates below it
    std::vector<Variable> tried;
    std::array<DoubledFactor::Left, tile_width> left;
    bool knows_child = false;           // whether the next two are those of this call
    double child_squares = 0.0;         // of the coefficients of a child that the parents determine
    std::vector<double> child_coefficients;
    std::vector<double> coefficients;
    std::vector<double> row;
    std::vector<const double*> rows;
    std::vector<Variable> columns;
    std::vector<std::size_t> dependent;

    void make_room(std::size_t k) {
        if (k < own.size()) return;
        const std::size_t roomy = 2 * (k + 1);
        lower.resize(roomy * roomy);
        inverse.resize(roomy);
        own.resize(roomy);
        pivots.resize(roomy);
        factored.resize((roomy / tile_width + 1) * roomy);
        solved.resize(roomy);
    }
};

}  // namespace isthmus
