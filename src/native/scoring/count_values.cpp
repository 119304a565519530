#include "scoring/count_values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "scoring/log_gamma.hpp"

namespace isthmus {

namespace {

// Memory for all tables of one score together.
constexpr std::size_t most_bytes = std::size_t{1} << 26;

std::size_t longest_table(DiscreteForm form) {
    switch (form) {
        case DiscreteForm::likelihood: return std::size_t{1} << 20;
        case DiscreteForm::bdeu: return std::size_t{1} << 13;
        case DiscreteForm::k2: return std::size_t{1} << 17;
        case DiscreteForm::support: break;
    }
    return std::size_t{1} << 10;
}

double log_gamma_at(DiscreteForm form, double shift) {
    return form == DiscreteForm::bdeu || form == DiscreteForm::k2 ? log_gamma(shift) : 0.0;
}

}  // namespace

double CountValue::compute(std::int64_t n) const {
    double value = 0.0;
    if (n != 0) {
        const auto count = static_cast<double>(n);
        if (form_ == DiscreteForm::likelihood) {
            value = count * std::log(count);
        } else if (form_ == DiscreteForm::support) {
            value = shift_ == 1.0 ? 1.0 : 0.0;
        } else {
            value = log_gamma(count + shift_) - at_shift_;
        }
    }
    if (static_cast<std::size_t>(n) < table_.size()) {
        std::atomic_ref<double>{table_[static_cast<std::size_t>(n)]}.store(
            value, std::memory_order_relaxed);
    }
    return value;
}

struct CountValues::Entry {
    double key;
    double at_shift;
    std::vector<double> values;
};

CountValues::CountValues(DiscreteForm form, double parameter, std::int64_t total)
    : form_{form},
      parameter_{parameter},
      length_{std::min(static_cast<std::size_t>(total) + 1, longest_table(form))},
      allowed_{std::clamp<std::size_t>(most_bytes / (length_ * sizeof(double)), 4, most_tables)} {}

CountValues::~CountValues() = default;

CountValue CountValues::cell(double r, double q) const {
    switch (form_) {
        case DiscreteForm::bdeu: return look_up(q * r);
        case DiscreteForm::k2: return look_up(parameter_);
        case DiscreteForm::likelihood:
        case DiscreteForm::support: break;
    }
    return look_up(1.0);
}

CountValue CountValues::configuration(double r, double q) const {
    switch (form_) {
        case DiscreteForm::likelihood: return look_up(1.0);
        case DiscreteForm::support: return look_up(2.0);
        case DiscreteForm::bdeu: return look_up(q);
        case DiscreteForm::k2: break;
    }
    return look_up(parameter_ * r);
}

CountValue CountValues::look_up(double key) const {
    const double shift = shift_of(key);
    if (Entry* const entry = find_or_make(key)) {
        return {form_, shift, entry->at_shift, entry->values};
    }
    return {form_, shift, log_gamma_at(form_, shift), {}};
}

CountValues::Entry* CountValues::find(double key, std::size_t& slot) const {
    while (Entry* const entry = index_[slot].load(std::memory_order_acquire)) {
        if (entry->key == key) return entry;
        slot = (slot + 1) % slots;
    }
    return nullptr;
}

CountValues::Entry* CountValues::find_or_make(double key) const {
    const std::uint64_t spread = std::bit_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15;
    auto slot = static_cast<std::size_t>(spread >> 40) % slots;
    if (Entry* const entry = find(key, slot)) return entry;
    if (full_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock{making_};
    // Another thread may have made it in the meantime, or another one in its place.
    if (Entry* const entry = find(key, slot)) return entry;
    if (entries_.size() == allowed_) {
        full_.store(true, std::memory_order_relaxed);
        return nullptr;
    }
    entries_.push_back(std::make_unique<Entry>(Entry{
        .key = key,
        .at_shift = log_gamma_at(form_, shift_of(key)),
        .values = std::vector<double>(length_, std::numeric_limits<double>::quiet_NaN())}));
    index_[slot].store(entries_.back().get(), std::memory_order_release);
    return entries_.back().get();
}

}  // namespace isthmus
