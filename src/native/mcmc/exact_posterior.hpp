#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exclusive.hpp"
#include "mcmc/family_weights.hpp"
#include "mcmc/outside.hpp"

namespace isthmus {

/// Exact probabilities of edges and of ancestor relations, for up to 25 nodes.
///
/// The weight of a graph is the product of the weights of its families: a modular prior over
/// graphs, not over orders. Let f(T) be the weight of all graphs on the set T, and g(T) that of all
/// ways to add the other nodes after T. With a(v, T), the sum of the weights of the parent sets of v
/// within T, inclusion and exclusion over the nodes R whose parents are all in T give
///
///     g(T) = sum over R, not empty, of (-1)^(|R| + 1) prod(a(v, T), v in R) g(T with R),
///
/// and the same terms, seen from T with R, give f. In all graphs in which the nodes that do not
/// descend from v are those of T, v is the only node outside of T whose parents are all in T. So
///
///     P(v has the non-descendants T) =
///         f(T) a(v, T) sum over R without v of prod(-a(u, T), u in R) g(T with R and v) / g({}),
///
/// which gives the probabilities of all ancestor relations and, since the parents of v are then
/// drawn from T in proportion to their weights, of all edges. That takes of the order of 3^d steps.
///
/// No subtraction hurts: an error in f(T) or g(T) reaches the result multiplied by the probability
/// that T is closed under ancestors. By the same law, sets with a bound on this probability below
/// 1e-20 are left out. The probabilities above add up to one for each v; `error` is how far off they
/// are.
class ExactPosterior {
public:
    explicit ExactPosterior(std::shared_ptr<FamilyWeights> weights);

    /// Goes on until the watch ends the slice; returns whether all is done.
    bool step(Watch& watch);

    [[nodiscard]] bool done() const { return stage_ == Stage::done; }
    [[nodiscard]] double progress() const;
    [[nodiscard]] const std::shared_ptr<FamilyWeights>& weights() const { return weights_; }
    /// Logarithm of the sum of the weights of all graphs; minus infinity if there is none.
    [[nodiscard]] double log_total() const;
    /// Entry [u, v] is the probability of the edge u -> v.
    [[nodiscard]] const Matrix<double>& edges() const { return edges_; }
    /// Entry [u, v] is the probability of a directed path from u to v.
    [[nodiscard]] const Matrix<double>& ancestors() const { return ancestors_; }
    /// What the sums in them are to be divided by.
    [[nodiscard]] double total() const { return total_; }
    [[nodiscard]] double error() const;
    /// Number of sets that were not left out.
    [[nodiscard]] std::size_t sets() const { return alive_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

    /// g(T) and its exponent, for drawing graphs.
    [[nodiscard]] double after(Word set) const { return after_.data()[set]; }
    [[nodiscard]] std::int32_t after_exponent(Word set) const {
        return after_exponents_.data()[set];
    }

private:
    enum class Stage { weigh, bound_before, bound_after, prune, before, after, done };

    void advance(Watch& watch);
    void bound_before(Word set);
    void bound_after(Word set);
    void prune(Word set);
    void push_before(Word set, Watch& watch);
    void pull_after(Word set, Watch& watch);
    void enter(Word set, double seed, std::size_t factors);
    void add_probabilities(Word set, double scale);
    [[nodiscard]] Word everything() const { return (Word{1} << size_) - 1; }

    std::shared_ptr<FamilyWeights> weights_;
    std::size_t size_;
    Stage stage_ = Stage::weigh;
    Word next_ = 0;  // number of sets that the stage has done
    // Within a set, which takes long if it is small: it goes on where the watch stopped it.
    bool entered_ = false;
    std::size_t position_ = 0;  // the next of the sets that it makes with others
    std::size_t folds_ = 0;     // nodes to sum over
    std::size_t alive_ = 0;
    double least_ = 0.0;  // a set needs a larger bound
    std::int32_t total_exponent_ = 0;
    double total_ = 0.0;

    ZeroedArray<double> before_;  // f; first its bound
    ZeroedArray<double> after_;   // g; first its bound
    ZeroedArray<std::int32_t> before_exponents_;
    ZeroedArray<std::int32_t> after_exponents_;
    Outside outside_;
    std::vector<double> unique_;  // for each node outside, the weight with it as the only source
    Matrix<double> edges_;
    Matrix<double> ancestors_;
    std::vector<double> sums_;  // of the probabilities, for each node
    InUse in_use_;
};

}  // namespace isthmus
