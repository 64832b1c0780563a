// The dataflow simulation of situs.simulate in plain C++, for benchmarks/simulate.py only.
// Priority dispatch, shared links, one transfer per tensor and destination.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

using Entry = std::pair<double, int32_t>;
using Heap = std::vector<Entry>;

static void push(Heap& heap, double key, int32_t item) {
  heap.emplace_back(key, item);
  std::push_heap(heap.begin(), heap.end(), std::greater<Entry>());
}

static int32_t pop(Heap& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<Entry>());
  int32_t item = heap.back().second;
  heap.pop_back();
  return item;
}

extern "C" void simulate(int64_t batch, int64_t n, int64_t d, const int32_t* assignments,
                         const double* seconds, const int32_t* op_tensors, const int32_t* offsets,
                         const int32_t* consumers, const int32_t* inputs, const double* size,
                         const double* latency, const double* per_byte, const double* boundary,
                         const double* keys, double* out) {
  std::vector<double> ready(n), free_s(d * d), arrived(d);
  std::vector<int32_t> missing(n), mark(d);
  std::vector<char> running(n), busy(d);
  std::vector<Heap> queues(d);
  Heap events;
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* a = assignments + b * n;
    std::copy(inputs, inputs + n, missing.begin());
    std::fill(ready.begin(), ready.end(), 0.0);
    std::fill(free_s.begin(), free_s.end(), 0.0);
    std::fill(running.begin(), running.end(), 0);
    std::fill(busy.begin(), busy.end(), 0);
    std::fill(mark.begin(), mark.end(), -1);
    for (int32_t i = 0; i < n; ++i)
      if (inputs[i] == 0) push(queues[a[i]], keys[i], i);
    double now = 0.0;
    for (;;) {
      for (int64_t k = 0; k < d; ++k)
        if (!busy[k] && !queues[k].empty()) {
          int32_t i = pop(queues[k]);
          busy[k] = running[i] = 1;
          push(events, now + seconds[i * d + k], i);
        }
      if (events.empty()) break;
      now = events.front().first;
      while (!events.empty() && events.front().first == now) {
        int32_t i = pop(events);
        int32_t source = a[i];
        if (!running[i]) {
          push(queues[source], keys[i], i);
          continue;
        }
        busy[source] = 0;
        for (int32_t t = op_tensors[i]; t < op_tensors[i + 1]; ++t)
          for (int32_t e = offsets[t]; e < offsets[t + 1]; ++e) {
            int32_t c = consumers[e], target = a[c];
            double at = now;
            if (target != source) {
              if (mark[target] != t) {
                mark[target] = t;
                int64_t link = source * d + target;
                free_s[link] = std::max(now, free_s[link]) + latency[link] + size[t] * per_byte[link];
                arrived[target] = free_s[link] + boundary[target];
              }
              at = arrived[target];
            }
            ready[c] = std::max(ready[c], at);
            if (--missing[c] > 0) continue;
            if (ready[c] > now)
              push(events, ready[c], c);
            else
              push(queues[target], keys[c], c);
          }
      }
    }
    out[b] = now;
  }
}
