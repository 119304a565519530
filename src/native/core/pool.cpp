#include "core/pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace isthmus {

namespace {

/// What the threads of one call share.
class Queue {
public:
    Queue(std::size_t count, const Pool::Work& work) : count_{count}, work_{work} {}

    [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }

    /// Takes pieces until none is left, or one of them is paused or fails.
    void take(Watch& watch) noexcept {
        while (!stop_.load(std::memory_order_relaxed)) {
            const std::size_t piece = next_.fetch_add(1, std::memory_order_relaxed);
            if (piece >= count_) return;
            try {
                work_(piece, watch);
            } catch (const Paused&) {
                paused_.store(true, std::memory_order_relaxed);
                return;
            } catch (...) {
                fail(piece);
                return;
            }
        }
    }

    void finish() const {
        if (failure_) std::rethrow_exception(failure_);
        if (paused_.load(std::memory_order_relaxed)) throw Paused{};
    }

private:
    void fail(std::size_t piece) noexcept {
        const std::lock_guard lock{mutex_};
        if (!failure_ || piece < failed_) {
            failure_ = std::current_exception();
            failed_ = piece;
        }
        stop_.store(true, std::memory_order_relaxed);
    }

    std::size_t count_;
    const Pool::Work& work_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> paused_ = false;
    std::mutex mutex_;
    std::exception_ptr failure_;
    std::size_t failed_ = 0;
};

}  // namespace

Pool::Pool(std::size_t threads)
    : threads_{threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency())} {}

void Pool::run(std::size_t count, Watch& watch, const Work& work) const {
    Queue queue{count, work};
    // Not std::jthread: Apple's library does not have it.
    std::vector<std::thread> helpers;
    helpers.reserve(std::min(threads_, count));
    for (std::size_t i = 1; i < std::min(threads_, count); ++i) {
        try {
            helpers.emplace_back([&queue, own = watch.for_worker(queue.stop())]() mutable {
                queue.take(own);
            });
        } catch (const std::system_error&) {
            break;  // The system has no more threads: those that are there do the work.
        }
    }
    queue.take(watch);
    for (std::thread& helper : helpers) helper.join();
    queue.finish();
}

}  // namespace isthmus
