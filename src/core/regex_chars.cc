#include "regex_chars.h"

#include <algorithm>

namespace mw {

namespace {

constexpr uint32_t kSurrogateLo = 0xd800;
constexpr uint32_t kSurrogateHi = 0xdfff;

// Sorts and joins overlapping or adjacent ranges.
void merge_ranges(std::vector<CodeRange>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  size_t n = 0;
  for (const CodeRange r : ranges) {
    if (n > 0 && r.lo <= uint64_t{ranges[n - 1].hi} + 1) {
      ranges[n - 1].hi = std::max(ranges[n - 1].hi, r.hi);
    } else {
      ranges[n++] = r;
    }
  }
  ranges.resize(n);
}

}  // namespace

void normalise_ranges(CodeRanges& ranges) {
  CodeRanges out;
  out.reserve(ranges.size() + 1);
  for (const CodeRange r : ranges) {
    if (r.lo > r.hi) continue;
    if (r.hi < kSurrogateLo || r.lo > kSurrogateHi) {
      out.push_back(r);
      continue;
    }
    if (r.lo < kSurrogateLo) out.push_back({r.lo, kSurrogateLo - 1});
    if (r.hi > kSurrogateHi) out.push_back({kSurrogateHi + 1, r.hi});
  }
  merge_ranges(out);
  ranges = std::move(out);
}

CharPartition::CharPartition(const std::vector<CodeRanges>& sets) {
  starts_ = {0, kSurrogateLo, kSurrogateHi + 1};
  for (const CodeRanges& set : sets) {
    for (const CodeRange r : set) {
      starts_.push_back(r.lo);
      if (r.hi < kMaxCodePoint) starts_.push_back(r.hi + 1);
    }
  }
  std::sort(starts_.begin(), starts_.end());
  starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  refine(sets);
  number_classes();
  index_classes();
}

void CharPartition::refine(const std::vector<CodeRanges>& sets) {
  classes_.assign(starts_.size(), 0);
  std::vector<uint32_t> members{static_cast<uint32_t>(starts_.size())};  // segments per class
  std::vector<uint32_t> inside{0};                                       // of them in the current set
  std::vector<uint32_t> split{kNoClass};
  std::vector<uint32_t> segments;
  std::vector<uint32_t> touched;  // classes with a segment in the set: only these are reset
  for (const CodeRanges& set : sets) {
    segments.clear();
    touched.clear();
    for (const CodeRange r : set) {
      for (size_t i = segment_of(r.lo); i < starts_.size() && starts_[i] <= r.hi; ++i) {
        segments.push_back(static_cast<uint32_t>(i));
        if (inside[classes_[i]]++ == 0) touched.push_back(classes_[i]);
      }
    }
    for (const uint32_t i : segments) {
      const uint32_t old = classes_[i];
      if (split[old] == kNoClass && inside[old] == members[old]) continue;  // wholly inside
      if (split[old] == kNoClass) {
        split[old] = static_cast<uint32_t>(members.size());
        members.push_back(0);
        inside.push_back(0);
        split.push_back(kNoClass);
      }
      classes_[i] = split[old];
      ++members[split[old]];
      --members[old];
    }
    for (const uint32_t cls : touched) {
      inside[cls] = 0;
      split[cls] = kNoClass;
    }
  }
}

void CharPartition::number_classes() {
  std::map<uint32_t, uint32_t> number;
  size_t n = 0;
  for (size_t i = 0; i < starts_.size(); ++i) {
    const bool surrogate = starts_[i] >= kSurrogateLo && starts_[i] <= kSurrogateHi;
    uint32_t cls = kNoClass;
    if (!surrogate) cls = number.emplace(classes_[i], static_cast<uint32_t>(number.size())).first->second;
    if (!surrogate && cls == smallest_.size()) smallest_.push_back(starts_[i]);
    if (n > 0 && classes_[n - 1] == cls) continue;  // same class as the segment before
    starts_[n] = starts_[i];
    classes_[n++] = cls;
  }
  starts_.resize(n);
  classes_.resize(n);
  size_ = static_cast<uint32_t>(number.size());
}

void CharPartition::index_classes() {
  for (uint32_t c = 0; c < 128; ++c) {
    const uint32_t cls = classes_[segment_of(c)];
    ascii_[c] = static_cast<uint8_t>(cls);
    if (cls >= ascii_masks_.size()) ascii_masks_.resize(cls + 1);
    (c < 64 ? ascii_masks_[cls].lo : ascii_masks_[cls].hi) |= uint64_t{1} << (c & 63);
  }
  for (size_t i = segment_of(0x80); i < starts_.size(); ++i) {
    if (classes_[i] != kNoClass) other_classes_.push_back(classes_[i]);
  }
  std::sort(other_classes_.begin(), other_classes_.end());
  other_classes_.erase(std::unique(other_classes_.begin(), other_classes_.end()), other_classes_.end());
}

size_t CharPartition::segment_of(uint32_t cp) const {
  return static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), cp) - starts_.begin()) - 1;
}

uint32_t CharPartition::class_of_other(uint32_t cp) const {
  return cp > kMaxCodePoint ? kNoClass : classes_[segment_of(cp)];
}

std::vector<uint32_t> CharPartition::classes_of(const CodeRanges& set) const {
  std::vector<uint32_t> out;
  for (const CodeRange r : set) {
    any_class_in(r.lo, r.hi, [&](uint32_t cls) {
      out.push_back(cls);
      return false;
    });
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

ClassSets::ClassSets(uint32_t n_classes) : n_classes_(n_classes), full_(0) {
  full_ = intern_ranges({{0, n_classes - 1}});
}

uint32_t ClassSets::intern(std::vector<uint32_t> classes) {
  Ranges ranges;
  for (const uint32_t c : classes) {
    if (!ranges.empty() && ranges.back().hi + 1 == c) {
      ranges.back().hi = c;
    } else {
      ranges.push_back({c, c});
    }
  }
  return intern_ranges(ranges);
}

uint32_t ClassSets::intern_ranges(const Ranges& ranges) {
  const auto [it, fresh] = index_.emplace(ranges, static_cast<uint32_t>(sets_.size()));
  if (fresh) {
    uint64_t mask = 0;
    for (const CodeRange r : ranges) {
      if (r.hi - r.lo >= 63) mask = ~uint64_t{0};
      for (uint32_t c = r.lo; c <= r.hi && ~mask != 0; ++c) mask |= uint64_t{1} << (c & 63);
    }
    sets_.push_back({mask, ranges});
  }
  return it->second;
}

bool ClassSets::contains_slow(uint32_t set, uint32_t cls) const {
  const Ranges& ranges = sets_[set].ranges;
  const auto it = std::upper_bound(ranges.begin(), ranges.end(), cls,
                                   [](uint32_t c, const CodeRange& r) { return c < r.lo; });
  return it != ranges.begin() && cls <= std::prev(it)->hi;
}

uint32_t ClassSets::unite(std::span<const uint32_t> sets) {
  Ranges ranges;
  for (const uint32_t s : sets) ranges.insert(ranges.end(), sets_[s].ranges.begin(), sets_[s].ranges.end());
  merge_ranges(ranges);
  return intern_ranges(ranges);
}

uint32_t ClassSets::intersect(uint32_t a, uint32_t b) {
  if (a == b) return a;
  const Ranges& x = sets_[a].ranges;
  const Ranges& y = sets_[b].ranges;
  Ranges out;
  for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    const CodeRange r{std::max(x[i].lo, y[j].lo), std::min(x[i].hi, y[j].hi)};
    if (r.lo <= r.hi) out.push_back(r);
    ++(x[i].hi < y[j].hi ? i : j);
  }
  return intern_ranges(out);
}

}  // namespace mw
