#include "class_base.h"

namespace mw {
namespace {

bool in_ranges(const OtherChars& ranges, uint32_t cp) {
  const auto it = std::upper_bound(ranges.begin(), ranges.end(), cp, [](uint32_t c, const auto& r) { return c < r.first; });
  return it != ranges.begin() && cp <= std::prev(it)->second;
}

// Without the instruction, which not every processor has, the built-in function is a call for each word.
size_t count_bits(std::span<const uint64_t> words) {
  uint64_t n = 0;
  for (uint64_t w : words) {
    w -= (w >> 1) & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + ((w >> 2) & 0x3333333333333333u);
    w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    n += (w * 0x0101010101010101u) >> 56;
  }
  return static_cast<size_t>(n);
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

bool ClassBase::is_wide(const CharSet129& set, const OtherChars& others) {
  const int ascii = __builtin_popcountll(set.lo) + __builtin_popcountll(set.hi);
  return ascii >= 80 && (set.other || !others.empty());
}

ClassBase::ClassBase(const ClassBase& whole, const CharSet129& set, const OtherChars& others)
    : trie_(whole.trie_), marks_(whole.marks_), vocab_size_(whole.vocab_size_), node_(whole.node_), first_(whole.first_),
      ended_(whole.ended_), inside_(whole.inside_), found_(whole.vocab_size_) {
  cut_down(set, others);
  Words tokens(words_for(vocab_size_), 0);
  if (whole.stay_.dense()) tokens = whole.stay_.words();
  else
    for (const TokenId t : whole.stay_.list()) set_bit(tokens.data(), t);
  const auto take_out = [&](const Bits& before, const Bits& after) {
    for (size_t w = 0; w < before.size(); ++w)
      for (uint64_t gone = before[w] & ~after[w]; gone != 0; gone &= gone - 1) {
        const auto i = static_cast<TrieNode>(w * 64) + static_cast<TrieNode>(__builtin_ctzll(gone));
        for (const TokenId t : trie_->tokens(first_ + i)) clear_bit(tokens.data(), t);
      }
  };
  take_out(whole.ended_, ended_);
  take_out(whole.inside_, inside_);
  for (const Cut& cut : cuts_) clear_bit(tokens.data(), cut.token);
  n_ended_ = count_bits(ended_);
  stay_ = TokenSet(std::move(tokens));
}

ClassBase::ClassBase(const TokenTrie& trie, const TrieMarks& marks, size_t vocab_size, const AsciiRuns& runs, const CharSet129& set)
    : trie_(&trie), marks_(&marks), vocab_size_(vocab_size), node_(TokenTrie::kRoot), first_(trie.first_child(TokenTrie::kRoot)),
      found_(vocab_size) {
  Words tokens;
  runs.find(set, ended_, tokens);
  n_ended_ = count_bits(ended_);
  stay_ = TokenSet(std::move(tokens));
}

void ClassBase::append_to(std::vector<uint64_t>& ended, Words& tokens) const {
  ended.insert(ended.end(), ended_.begin(), ended_.end());
  const size_t from = tokens.size();
  tokens.resize(from + words_for(vocab_size_), 0);
  if (stay_.dense()) std::copy(stay_.words().begin(), stay_.words().end(), tokens.begin() + static_cast<std::ptrdiff_t>(from));
  else
    for (const TokenId t : stay_.list()) set_bit(tokens.data() + from, t);
}

// What lies behind a character that is not in the set goes, whole branches at a time: parents come before their
// children, so that nothing is visited below what is gone.
void ClassBase::cut_down(const CharSet129& set, const OtherChars& others) {
  const bool some = !set.other;
  for (unsigned b = 0; b < 0x80; ++b) {
    if (((b < 64 ? set.lo >> b : set.hi >> (b - 64)) & 1u) != 0) continue;
    const auto all = marks_->with_byte(static_cast<uint8_t>(b));
    const TrieNode end = trie_->child_count(node_) ? trie_->end(node_) : first_;
    for (auto it = std::lower_bound(all.begin(), all.end(), first_); it != all.end() && *it < end; ++it)
      if (has(ended_, *it - first_)) leave_out(*it);
  }
  if (some)
    for (const TrieMarks::Beyond& at : marks_->beyond()) {
      if (at.node < first_ || at.node - first_ >= ended_.size() * 64 || !has(ended_, at.node - first_)) continue;
      if (in_ranges(others, at.code_point)) continue;
      others_.push_back({at.node, at.code_point, chars(at.node) - 1});
      leave_out(at.node);
    }
  if (!some) return;
  each_bit(inside_, [&](TrieNode n) {
    for (const TokenId t : trie_->tokens(n)) cuts_.push_back({t, sub_of(n, nullptr), chars(n) - 1});
  });
}

// Clears a node and all below it.
void ClassBase::leave_out(TrieNode c) {
  const auto clear = [&](TrieNode from, TrieNode to) {
    for (Bits* bits : {&ended_, &inside_})
      for (TrieNode i = from - first_, end = to - first_; i < end;) {
        const TrieNode next = std::min(end, (i | 63) + 1);
        const uint64_t keep_low = (uint64_t{1} << (i & 63)) - 1;
        const uint64_t keep_high = (next & 63) == 0 ? 0 : ~uint64_t{0} << (next & 63);
        (*bits)[i >> 6] &= keep_low | keep_high;
        i = next;
      }
  };
  clear(c, c + 1);
  if (trie_->child_count(c)) clear(trie_->first_child(c), trie_->end(c));
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

const std::vector<uint32_t>& ClassBase::counts() const {
  std::call_once(counted_, [&] {
    each_bit(ended_, [&](TrieNode n) {
      const uint32_t k = chars(n);
      if (std::find(counts_.begin(), counts_.end(), k) == counts_.end() && trie_->has_tokens(n)) counts_.push_back(k);
    });
    std::sort(counts_.begin(), counts_.end());
  });
  return counts_;
}

// Most often nearly all tokens have few enough characters: then those that have more are taken out.
TokenSet ClassBase::find_up_to(uint32_t most) const {
  if (!stay_.dense()) {
    std::vector<TokenId> tokens;
    for (const TokenId t : stay_.list())
      if (marks_->token_chars(t) <= most) tokens.push_back(t);
    return TokenSet(std::move(tokens), vocab_size_);
  }
  const auto within = marks_->tokens_within(most), beyond = marks_->tokens_beyond(most);
  if (beyond.size() <= within.size()) {
    Words words = stay_.words();
    for (const TokenId t : beyond) clear_bit(words.data(), t);
    return TokenSet(std::move(words));
  }
  std::vector<TokenId> tokens;
  for (const TokenId t : within)
    if (test_bit(stay_.words().data(), t)) tokens.push_back(t);
  return TokenSet(std::move(tokens), vocab_size_);
}

const TokenSet& ClassBase::stay_up_to(uint32_t most) const {
  const uint32_t in_all = most + marks_->chars(node_);
  if (marks_->tokens_beyond(in_all).empty()) return stay_;
  const std::scoped_lock lock(mutex_);
  const auto known = up_to_.find(most);
  if (known != up_to_.end()) return *known->second;
  return *up_to_.emplace(most, std::make_unique<TokenSet>(find_up_to(in_all))).first->second;
}

}  // namespace mw
