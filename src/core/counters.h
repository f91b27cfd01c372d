// What predicts the speed of masks, counted over all requests of a program (Python: CompiledGrammar.stats).
#pragma once

#include <atomic>
#include <cstdint>

namespace mw {

struct Counters {
  using Count = std::atomic<uint64_t>;
  Count masks{0};           // walked
  Count memo_hits{0};       // taken from a request's memo
  Count live_nodes{0};      // vocabulary nodes that walks reached one by one
  Count dead_probes{0};     // bytes that walks tried in vain
  Count configurations{0};  // new ones that walks came upon
  Count memo_evictions{0};  // times that a request's memo was emptied
  static void add(Count& count, uint64_t n) { count.fetch_add(n, std::memory_order_relaxed); }
};

}  // namespace mw
