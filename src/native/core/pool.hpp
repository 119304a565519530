#pragma once

#include <cstddef>
#include <functional>

#include "core/watch.hpp"

namespace isthmus {

/// Shares out independent pieces of work among threads.
///
/// Results must not depend on the number of threads: a piece stores what it computes at its own
/// place and does not look at those of others. Threads live as long as a call. Starting them takes
/// some tens of microseconds, which a time slice does not notice, and nothing is left behind that
/// a fork of the process would miss.
class Pool {
public:
    /// A piece of work, known by its number; it polls the watch that it is given.
    using Work = std::function<void(std::size_t, Watch&)>;

    /// `threads` includes the caller's; 0 means one for each processor.
    explicit Pool(std::size_t threads);

    [[nodiscard]] std::size_t threads() const { return threads_; }

    /// Does the pieces 0 to `count`, begun in this order.
    ///
    /// Throws `Paused` if the slice ended before all were done; the caller knows which, and calls
    /// again for the rest. If pieces fail, the others stop at their next poll, and what the first
    /// failed piece threw is thrown here.
    void run(std::size_t count, Watch& watch, const Work& work) const;

private:
    std::size_t threads_;
};

}  // namespace isthmus
