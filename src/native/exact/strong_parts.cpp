#include "exact/strong_parts.hpp"

#include <limits>

namespace isthmus {

namespace {

constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();

/// Nodes that wait for their turn, the one that was pushed last on top. A node that waits already
/// moves to the top.
class Stack {
public:
    explicit Stack(std::size_t size) : below_(size, nothing), above_(size, nothing), inside_(size) {}

    [[nodiscard]] std::size_t top() const { return top_; }
    void push(std::size_t node) {
        if (inside_[node] != 0) remove(node);
        below_[node] = top_;
        above_[node] = nothing;
        if (top_ != nothing) above_[top_] = node;
        top_ = node;
        inside_[node] = 1;
    }
    void remove(std::size_t node) {
        if (above_[node] != nothing) below_[above_[node]] = below_[node];
        if (below_[node] != nothing) above_[below_[node]] = above_[node];
        if (top_ == node) top_ = below_[node];
        inside_[node] = 0;
    }

private:
    std::size_t top_ = nothing;
    std::vector<std::size_t> below_;
    std::vector<std::size_t> above_;
    std::vector<unsigned char> inside_;
};

}  // namespace

std::vector<std::vector<std::size_t>> strong_parts(const Successors& graph, Watch& watch) {
    const std::size_t n = graph.size();
    // Numbers of nodes that are in a part count down from the end, so they are never the lowest.
    std::vector<std::size_t> low(n, nothing);
    std::vector<std::size_t> open;
    Stack stack{n};
    std::size_t index = 0;
    std::size_t label = n;
    for (std::size_t start = 0; start < n; ++start) {
        if (low[start] != nothing) continue;
        stack.push(start);
        while (stack.top() != nothing) {
            const std::size_t v = stack.top();
            if (low[v] == nothing) {
                low[v] = index++;
                for (const std::size_t w : graph[v]) {
                    if (low[w] == nothing) stack.push(w);
                }
                continue;
            }
            stack.remove(v);
            bool root = true;
            for (const std::size_t w : graph[v]) {
                if (low[w] < low[v]) {
                    low[v] = low[w];
                    root = false;
                }
            }
            if (!root) {
                open.push_back(v);
                continue;
            }
            --index;
            --label;
            while (!open.empty() && low[v] <= low[open.back()]) {
                low[open.back()] = n + label;
                open.pop_back();
                --index;
            }
            low[v] = n + label;
            watch.poll_signals();
        }
    }
    std::vector<std::vector<std::size_t>> parts(n - label);
    for (std::size_t v = 0; v < n; ++v) parts[2 * n - 1 - low[v]].push_back(v);
    return parts;
}

}  // namespace isthmus
