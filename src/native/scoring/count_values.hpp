#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace isthmus {

/// Which functions f of a cell's count and g of a configuration's count a discrete score adds up.
///
/// `support` is no score: f is 1 and g is 0, so it counts the combinations seen.
enum class DiscreteForm { likelihood, bdeu, k2, support };

/// A function of counts: `n log n`, or `lgamma(n + shift) - lgamma(shift)`. It is 0 at 0.
///
/// Values are computed when first wanted and kept, as many as the table has places.
class CountValue {
public:
    /// `at_shift` is `lgamma(shift)` where the form has it.
    CountValue(DiscreteForm form, double shift, double at_shift, std::span<double> table)
        : form_{form}, shift_{shift}, at_shift_{at_shift}, table_{table} {}

    [[nodiscard]] double operator()(std::int64_t n) const {
        if (static_cast<std::size_t>(n) < table_.size()) {
            // Threads share the table. They write the same value, so the order does not matter.
            const double known = std::atomic_ref<double>{table_[static_cast<std::size_t>(n)]}.load(
                std::memory_order_relaxed);
            if (known == known) return known;
        }
        return compute(n);
    }

private:
    [[nodiscard]] double compute(std::int64_t n) const;

    DiscreteForm form_;
    double shift_;
    double at_shift_;
    std::span<double> table_;  // NaN: not computed yet
};

/// The functions f and g of one score, for any number of levels and configurations.
///
/// A function has a key: `s` for K2, and `q r` or `q` for BDeu, where `s = ess / key`. Keys get
/// tables of values while there is room for tables, and are computed each time after that.
class CountValues {
public:
    /// `parameter` is the penalty per free parameter (likelihood), the equivalent sample size
    /// (BDeu) or the pseudo-count of a cell (K2); `total` is the largest count there can be.
    CountValues(DiscreteForm form, double parameter, std::int64_t total);
    ~CountValues();
    CountValues(const CountValues&) = delete;
    CountValues& operator=(const CountValues&) = delete;

    /// f for a child of `r` levels and `q` configurations of its parents.
    [[nodiscard]] CountValue cell(double r, double q) const;
    /// g for the same.
    [[nodiscard]] CountValue configuration(double r, double q) const;
    /// What the free parameters cost.
    [[nodiscard]] double penalty(double r, double q) const {
        return form_ == DiscreteForm::likelihood ? parameter_ * (r - 1.0) * q : 0.0;
    }

private:
    struct Entry;

    [[nodiscard]] CountValue look_up(double key) const;
    [[nodiscard]] Entry* find(double key, std::size_t& slot) const;
    [[nodiscard]] Entry* find_or_make(double key) const;
    [[nodiscard]] double shift_of(double key) const {
        return form_ == DiscreteForm::bdeu ? parameter_ / key : key;
    }

    static constexpr std::size_t most_tables = 512;
    // More than there can be tables, so that a search for a key always ends at a free slot.
    static constexpr std::size_t slots = 4 * most_tables;

    DiscreteForm form_;
    double parameter_;
    std::size_t length_;
    std::size_t allowed_;
    mutable std::atomic<bool> full_ = false;
    mutable std::mutex making_;
    mutable std::vector<std::unique_ptr<Entry>> entries_;
    mutable std::array<std::atomic<Entry*>, slots> index_{};
};

}  // namespace isthmus
