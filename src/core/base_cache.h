// The memory of a vocabulary's bases: when they take more than the limit, those that can be made again are let go. Masks
// and walks hold on to the bases that they use, so nothing in use goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace mw {

class BaseCache {
 public:
  class Part {  // a map of bases
   public:
    virtual void drop() = 0;

   protected:
    ~Part() = default;
  };

  void join(Part* part) {
    const std::scoped_lock lock(mutex_);
    parts_.insert(part);
  }
  void leave(Part* part) {
    const std::scoped_lock lock(mutex_);
    parts_.erase(part);
  }
  // A base was made and takes so many bytes. No lock of a part may be held.
  void charge(size_t bytes) {
    built_.fetch_add(1, std::memory_order_relaxed);
    if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_.load(std::memory_order_relaxed)) evict();
  }
  void evict() {
    const std::scoped_lock lock(mutex_);
    for (Part* part : parts_) part->drop();
    bytes_.store(0, std::memory_order_relaxed);
    evictions_.fetch_add(1, std::memory_order_relaxed);
  }
  void set_limit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  size_t limit() const { return limit_.load(std::memory_order_relaxed); }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t built() const { return built_.load(std::memory_order_relaxed); }
  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  // taken before those of parts
  std::unordered_set<Part*> parts_;
  std::atomic<size_t> bytes_{0}, limit_{size_t{256} << 20};
  std::atomic<uint64_t> built_{0}, evictions_{0};
};

}  // namespace mw
