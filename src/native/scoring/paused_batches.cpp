#include "scoring/paused_batches.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {

std::size_t PausedBatches::resume(const Question& question, std::span<double> out) {
    const std::lock_guard lock{mutex_};
    const auto found = std::ranges::find(batches_, question, &Batch::question);
    if (found == batches_.end()) return 0;
    std::ranges::copy(found->values, out.begin());
    const std::size_t steps = found->steps;
    batches_.erase(found);
    count_.store(batches_.size(), std::memory_order_relaxed);
    return steps;
}

void PausedBatches::keep(Question question, std::span<const double> out, std::size_t steps) {
    const std::lock_guard lock{mutex_};
    // The oldest belong to searches that were given up.
    if (batches_.size() == most) batches_.erase(batches_.begin());
    batches_.push_back({std::move(question), {out.begin(), out.end()}, steps});
    count_.store(batches_.size(), std::memory_order_relaxed);
}

}  // namespace isthmus
