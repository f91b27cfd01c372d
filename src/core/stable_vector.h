// An append-only array whose elements never move: readers need no lock for elements that were published to them.
// Appending is for one thread at a time (callers hold their own mutex). Chunks double, so that a vector of a few elements
// is small and quick to make: every compiled constraint has two.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace mw {

template <class T, size_t kFirst = 8, size_t kChunks = 22>
class StableVector {
  static_assert(std::has_single_bit(kFirst));

 public:
  StableVector() = default;
  ~StableVector() {
    for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
  }
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;

  static constexpr size_t capacity() { return (kFirst << kChunks) - kFirst; }
  size_t size() const { return size_.load(std::memory_order_acquire); }
  T& operator[](size_t i) {
    const Place p = place(i);
    return chunks_[p.chunk].load(std::memory_order_acquire)[p.offset];
  }
  const T& operator[](size_t i) const {
    const Place p = place(i);
    return chunks_[p.chunk].load(std::memory_order_acquire)[p.offset];
  }

  // Index of a new default-constructed element.
  size_t append() {
    const size_t i = size_.load(std::memory_order_relaxed);
    std::atomic<T*>& chunk = chunks_[place(i).chunk];
    if (chunk.load(std::memory_order_relaxed) == nullptr)
      chunk.store(new T[kFirst << place(i).chunk], std::memory_order_release);
    size_.store(i + 1, std::memory_order_release);
    return i;
  }

 private:
  struct Place {
    size_t chunk, offset;
  };
  // Chunk k holds kFirst << k elements, from index kFirst * (2^k - 1) on.
  static Place place(size_t i) {
    const size_t n = i + kFirst;
    const auto k = static_cast<size_t>(std::bit_width(n)) - static_cast<size_t>(std::bit_width(kFirst));
    return {k, n - (kFirst << k)};
  }

  std::array<std::atomic<T*>, kChunks> chunks_{};
  std::atomic<size_t> size_{0};
};

}  // namespace mw
