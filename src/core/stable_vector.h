// An append-only array whose elements never move: readers need no lock for elements that were published to them.
// Appending is for one thread at a time (callers hold their own mutex).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

namespace mw {

template <class T, size_t kChunk = 1024, size_t kChunks = 16384>
class StableVector {
 public:
  StableVector() : chunks_(new std::atomic<T*>[kChunks]) {
    for (size_t i = 0; i < kChunks; ++i) chunks_[i].store(nullptr, std::memory_order_relaxed);
  }
  ~StableVector() {
    for (size_t i = 0; i < kChunks; ++i) delete[] chunks_[i].load(std::memory_order_relaxed);
  }
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;

  static constexpr size_t capacity() { return kChunk * kChunks; }
  size_t size() const { return size_.load(std::memory_order_acquire); }
  T& operator[](size_t i) { return chunks_[i / kChunk].load(std::memory_order_acquire)[i % kChunk]; }
  const T& operator[](size_t i) const { return chunks_[i / kChunk].load(std::memory_order_acquire)[i % kChunk]; }

  // Index of a new default-constructed element.
  size_t append() {
    const size_t i = size_.load(std::memory_order_relaxed);
    std::atomic<T*>& chunk = chunks_[i / kChunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr) chunk.store(new T[kChunk], std::memory_order_release);
    size_.store(i + 1, std::memory_order_release);
    return i;
  }

 private:
  std::unique_ptr<std::atomic<T*>[]> chunks_;
  std::atomic<size_t> size_{0};
};

}  // namespace mw
