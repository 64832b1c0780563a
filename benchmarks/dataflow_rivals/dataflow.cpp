// The dataflow kernel of situs.simulate, as a plain C++ programmer would write it; for comparison.
// Build: g++ -O3 -march=native -shared -fPIC -o dataflow.so dataflow.cpp
#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

using Item = std::pair<double, int32_t>;
using Heap = std::priority_queue<Item, std::vector<Item>, std::greater<Item>>;

// Priority dispatch, shared links, one transfer per tensor and destination.
extern "C" void dataflow_batch(
    int n, int devices, const double* seconds, const double* size, const double* latency,
    const double* per_byte, const double* boundary, const int64_t* streams,
    const int32_t* op_tensors, const int32_t* consumer_offsets, const int32_t* consumers,
    const int32_t* input_offsets, const double* rank, const int32_t* assignments, int batch,
    double* out) {
    std::vector<int32_t> waiting(n);
    std::vector<double> ready(n), link_free(devices * devices), arrival(devices);
    std::vector<int64_t> sent(devices), busy(devices);
    for (int b = 0; b < batch; ++b) {
        const int32_t* a = assignments + static_cast<int64_t>(b) * n;
        std::vector<Heap> queue(devices);
        Heap events;
        double now = 0.0;
        std::fill(link_free.begin(), link_free.end(), 0.0);
        std::fill(sent.begin(), sent.end(), -1);
        std::fill(busy.begin(), busy.end(), 0);
        std::fill(ready.begin(), ready.end(), 0.0);
        for (int i = 0; i < n; ++i) {
            waiting[i] = input_offsets[i + 1] - input_offsets[i];
            if (waiting[i] == 0) queue[a[i]].push({-rank[i], i});
        }
        auto dispatch = [&] {
            for (int d = 0; d < devices; ++d)
                while (!queue[d].empty() && busy[d] < streams[d]) {
                    int32_t i = queue[d].top().second;
                    queue[d].pop();
                    ++busy[d];
                    events.push({now + seconds[static_cast<int64_t>(i) * devices + d], i});
                }
        };
        dispatch();
        while (!events.empty()) {
            now = events.top().first;
            while (!events.empty() && events.top().first == now) {
                int32_t i = events.top().second;
                events.pop();
                if (i >= n) {
                    queue[a[i - n]].push({-rank[i - n], i - n});
                    continue;
                }
                int source = a[i];
                --busy[source];
                for (int t = op_tensors[i]; t < op_tensors[i + 1]; ++t)
                    for (int e = consumer_offsets[t]; e < consumer_offsets[t + 1]; ++e) {
                        int v = consumers[e], d = a[v];
                        double arrived = now;
                        if (d != source) {
                            if (sent[d] != t) {
                                sent[d] = t;
                                double& free = link_free[source * devices + d];
                                free = std::max(now, free) + (latency[source * devices + d] +
                                       size[t] * per_byte[source * devices + d]);
                                arrival[d] = free + boundary[d];
                            }
                            arrived = arrival[d];
                        }
                        ready[v] = std::max(ready[v], arrived);
                        if (--waiting[v] == 0) {
                            if (ready[v] <= now) queue[d].push({-rank[v], v});
                            else events.push({ready[v], n + v});
                        }
                    }
            }
            dispatch();
        }
        out[b] = now;
    }
}
