#include "class_base.h"

namespace mw {
namespace {

bool in_ranges(const OtherChars& ranges, uint32_t cp) {
  const auto it = std::upper_bound(ranges.begin(), ranges.end(), cp, [](uint32_t c, const auto& r) { return c < r.first; });
  return it != ranges.begin() && cp <= std::prev(it)->second;
}

}  // namespace

ClassBase::ClassBase(const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size, TrieNode node,
                     const CharSet129& set, const OtherChars& others)
    : trie_(&trie), marks_(&marks), vocab_size_(vocab_size), node_(node), first_(trie.first_child(node)),
      found_(vocab_size) {
  find(set, others);
  stay_ = found_.finish();
}

// The descendants of a node are contiguous, block of siblings by block: so one pass in order, which skips what is below
// a node that no run reaches.
void ClassBase::find(const CharSet129& set, const OtherChars& others) {
  if (trie_->child_count(node_) == 0) return;
  const bool some = !set.other && !others.empty(), beyond = set.other || some;
  const TrieNode end = trie_->end(node_);
  const size_t words = (end - first_ + 63) / 64;
  ended_.assign(words, 0);
  inside_.assign(beyond ? words : 0, 0);
  for (TrieNode i = first_; i < end;) {
    const TrieNode p = trie_->parent(i);
    const TrieNode last = i + trie_->child_count(p);
    if (p == node_ || has(ended_, p - first_)) {
      for (; i < last; ++i) step_boundary(i, set, beyond);
    } else if (beyond && has(inside_, p - first_)) {
      for (; i < last; ++i) step_inside(i, some, others);
    } else {
      i = trie_->end(p);
    }
  }
}

// A byte after a whole character.
inline void ClassBase::step_boundary(TrieNode c, const CharSet129& set, bool beyond) {
  const uint8_t b = trie_->byte(c);
  if (b < 0x80) {
    if ((((b < 64 ? set.lo >> b : set.hi >> (b - 64))) & 1u) == 0) return;
    ClassBase::set(ended_, c - first_);
    ++n_ended_;
    found_.add(trie_->tokens(c));
    return;
  }
  if (!beyond || (b & 0xc0) == 0x80 || marks_->place(c) != TrieMarks::kInside) return;
  ClassBase::set(inside_, c - first_);
  if (set.other) {
    found_.add(trie_->tokens(c));
    return;
  }
  for (const TokenId t : trie_->tokens(c)) cuts_.push_back({t, sub_of(c, nullptr), chars(c) - 1});
}

// A byte within a character.
inline void ClassBase::step_inside(TrieNode c, bool some, const OtherChars& others) {
  const auto place = (trie_->byte(c) & 0xc0) == 0x80 ? marks_->place(c) : TrieMarks::kInvalid;
  if (place == TrieMarks::kInvalid) return;
  if (place == TrieMarks::kInside) {
    ClassBase::set(inside_, c - first_);
    if (!some) found_.add(trie_->tokens(c));
    else
      for (const TokenId t : trie_->tokens(c)) cuts_.push_back({t, sub_of(c, nullptr), chars(c) - 1});
    return;
  }
  if (some) {
    uint32_t code_point = 0;
    sub_of(c, &code_point);
    if (!in_ranges(others, code_point)) {
      others_.push_back({c, code_point, chars(c) - 1});
      return;
    }
  }
  ClassBase::set(ended_, c - first_);
  ++n_ended_;
  found_.add(trie_->tokens(c));
}

// What has been read of the character that the node's byte belongs to; where it ends there, its code point.
Sub ClassBase::sub_of(TrieNode n, uint32_t* code_point) const {
  uint8_t bytes[4];
  int k = 0;
  for (;; n = trie_->parent(n)) {
    bytes[k++] = trie_->byte(n);
    if ((bytes[k - 1] & 0xc0) != 0x80 || k == 4) break;
  }
  Sub sub = 0;
  while (k > 0) {
    const Decoded d = decode_utf8(sub, bytes[--k]);
    if (d.kind == Decoded::Char && code_point != nullptr) *code_point = d.value;
    sub = d.kind == Decoded::Partial ? d.value : 0;
  }
  return sub;
}

uint32_t ClassBase::deepest() const {
  const std::scoped_lock lock(mutex_);
  if (deepest_ == kUnknown) {
    uint32_t most = 0;
    const auto note = [&](TrieNode n) { most = std::max(most, chars(n)); };
    each_bit(ended_, note);
    each_bit(inside_, note);
    deepest_ = most;
  }
  return deepest_;
}

const TokenSet& ClassBase::stay_up_to(uint32_t most) const {
  if (most >= deepest()) return stay_;
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<TokenSet>& made = up_to_[most];
  if (!made) {
    TokenCollector found(vocab_size_);
    const auto take = [&](TrieNode n) {
      if (chars(n) <= most) found.add(trie_->tokens(n));
    };
    each_bit(ended_, take);
    if (cuts_.empty()) each_bit(inside_, take);  // cut tokens are no stays
    made = std::make_unique<TokenSet>(found.finish());
  }
  return *made;
}

}  // namespace mw
