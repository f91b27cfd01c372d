// Hash-consing: equal keys get equal ids, so that comparing states is comparing integers.
#pragma once

#include <cstdint>
#include <vector>

namespace mw {

inline uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

// Open-addressing index from a hash to ids; the caller keeps the keys and compares them.
class HashIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    if (slots_.empty()) return kNone;
    const size_t mask = slots_.size() - 1;
    for (size_t i = static_cast<size_t>(hash) & mask;; i = (i + 1) & mask) {
      const Slot& s = slots_[i];
      if (s.id == kNone) return kNone;
      if (s.hash == hash && equal(s.id)) return s.id;
    }
  }
  void insert(uint64_t hash, uint32_t id) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    place(hash, id);
    ++count_;
  }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t id = kNone;
  };
  void place(uint64_t hash, uint32_t id) {
    const size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>(hash) & mask;
    while (slots_[i].id != kNone) i = (i + 1) & mask;
    slots_[i] = Slot{hash, id};
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& s : old)
      if (s.id != kNone) place(s.hash, s.id);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// Interns trivially comparable values.
template <class Key, class Hash>
class Interner {
 public:
  uint32_t intern(const Key& key) {
    const uint64_t h = Hash{}(key);
    const uint32_t found = index_.find(h, [&](uint32_t id) { return keys_[id] == key; });
    if (found != HashIndex::kNone) return found;
    const auto id = static_cast<uint32_t>(keys_.size());
    keys_.push_back(key);
    index_.insert(h, id);
    return id;
  }
  const Key& operator[](uint32_t id) const { return keys_[id]; }
  size_t size() const { return keys_.size(); }
  void clear() {
    keys_.clear();
    index_.clear();
  }

 private:
  std::vector<Key> keys_;
  HashIndex index_;
};

}  // namespace mw
