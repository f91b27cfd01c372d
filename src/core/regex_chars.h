// Character classes of one regular expression: the coarsest partition of the code points on which all its
// character sets agree, and sets of such classes. Surrogates belong to no class.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mw {

inline constexpr uint32_t kMaxCodePoint = 0x10ffff;
inline constexpr uint32_t kNoClass = 0xffffffff;

struct CodeRange {  // inclusive
  uint32_t lo;
  uint32_t hi;
  auto operator<=>(const CodeRange&) const = default;
};
using CodeRanges = std::vector<CodeRange>;

// Sorts, merges neighbours and takes the surrogates out.
void normalise_ranges(CodeRanges& ranges);

class CharPartition {
 public:
  struct AsciiMask {
    uint64_t lo = 0;
    uint64_t hi = 0;
  };

  // The sets are normalised. O(segments of all sets together), by partition refinement.
  explicit CharPartition(const std::vector<CodeRanges>& sets);

  uint32_t size() const { return size_; }
  uint32_t class_of(uint32_t cp) const { return cp < 128 ? ascii_[cp] : class_of_other(cp); }
  // Classes are numbered by their smallest code point, so those with an ASCII member come first.
  std::span<const AsciiMask> ascii_masks() const { return ascii_masks_; }
  uint32_t smallest(uint32_t cls) const { return smallest_[cls]; }  // code point
  // The distinct classes with a code point >= 0x80, ascending.
  std::span<const uint32_t> other_classes() const { return other_classes_; }
  // The classes met by [lo, hi] in code point order, neighbours distinct, calling f until it says true.
  template <class F>
  bool any_class_in(uint32_t lo, uint32_t hi, F&& f) const {
    for (size_t i = segment_of(lo); i < starts_.size() && starts_[i] <= hi; ++i) {
      if (classes_[i] != kNoClass && f(classes_[i])) return true;
    }
    return false;
  }
  // Calls f(first, last, class) for the segments from a code point on.
  template <class F>
  void each_segment_from(uint32_t lo, F&& f) const {
    for (size_t i = segment_of(lo); i < starts_.size(); ++i)
      f(starts_[i] < lo ? lo : starts_[i], i + 1 < starts_.size() ? starts_[i + 1] - 1 : kMaxCodePoint, classes_[i]);
  }
  // The classes of a normalised set that was given to the constructor, ascending.
  std::vector<uint32_t> classes_of(const CodeRanges& set) const;

 private:
  size_t segment_of(uint32_t cp) const;
  uint32_t class_of_other(uint32_t cp) const;
  void refine(const std::vector<CodeRanges>& sets);
  void number_classes();
  void index_classes();

  std::vector<uint32_t> starts_;   // segment i = [starts_[i], starts_[i + 1])
  std::vector<uint32_t> classes_;  // of segment i
  std::array<uint8_t, 128> ascii_{};
  std::vector<AsciiMask> ascii_masks_;
  std::vector<uint32_t> smallest_;  // by class
  std::vector<uint32_t> other_classes_;
  uint32_t size_ = 0;
};

// Interned sets of classes. A set carries a 64-bit mask of its classes modulo 64: exact up to 64 classes,
// a sound quick test beyond.
class ClassSets {
 public:
  explicit ClassSets(uint32_t n_classes);

  uint32_t intern(std::vector<uint32_t> classes);  // ascending
  uint32_t full() const { return full_; }
  bool empty(uint32_t set) const { return sets_[set].ranges.empty(); }
  uint64_t mask(uint32_t set) const { return sets_[set].mask; }
  bool contains(uint32_t set, uint32_t cls) const {
    return ((sets_[set].mask >> (cls & 63)) & 1) != 0 && (n_classes_ <= 64 || contains_slow(set, cls));
  }
  uint32_t unite(std::span<const uint32_t> sets);
  uint32_t intersect(uint32_t a, uint32_t b);

 private:
  using Ranges = std::vector<CodeRange>;  // of class numbers
  struct Set {
    uint64_t mask;
    Ranges ranges;
  };
  uint32_t intern_ranges(const Ranges& ranges);
  bool contains_slow(uint32_t set, uint32_t cls) const;

  uint32_t n_classes_;
  std::vector<Set> sets_;
  std::map<Ranges, uint32_t> index_;
  uint32_t full_;
};

}  // namespace mw
