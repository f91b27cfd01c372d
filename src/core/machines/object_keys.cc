// Which keys may come: the order of names, what is required, what was seen.
#include <algorithm>
#include <numeric>

#include "../request.h"
#include "object.h"
#include "unique.h"

namespace mw {

ObjectMachine::ObjectMachine(ObjectSpec spec, Whitespace ws, const Vocab& vocab)
    : spec_(std::move(spec)), ws_(ws), vocab_(&vocab), trie_(spec_.names) {
  const auto n = static_cast<uint32_t>(size());
  by_text_.resize(n);
  std::iota(by_text_.begin(), by_text_.end(), 0u);
  std::sort(by_text_.begin(), by_text_.end(),
            [&](uint32_t a, uint32_t b) { return spec_.names[a] < spec_.names[b]; });
  text_rank_.resize(n);
  for (uint32_t i = 0; i < n; ++i) text_rank_[by_text_[i]] = i;
  const TokenTrie& trie = trie_.trie();
  first_under_.assign(trie.size(), n);
  end_under_.assign(trie.size(), 0);
  for (size_t i = trie.size(); i-- > 0;) {  // children have larger indices
    const auto at = static_cast<TrieNode>(i);
    const int own = name_at(at);
    if (own >= 0) {
      first_under_[i] = text_rank_[static_cast<uint32_t>(own)];
      end_under_[i] = first_under_[i] + 1;
    }
    for (TrieNode c = trie.first_child(at), e = c + trie.child_count(at); c < e; ++c) {
      first_under_[i] = std::min(first_under_[i], first_under_[c]);
      end_under_[i] = std::max(end_under_[i], end_under_[c]);
    }
  }
  next_required_.assign(n + 1, n);
  some_from_.assign(n + 1, 0);
  for (uint32_t i = n; i-- > 0;) {
    next_required_[i] = spec_.required[i] ? i : next_required_[i + 1];
    const bool usable = spec_.children[i] != kNoChild;
    some_from_[i] = usable || (!spec_.required[i] && some_from_[i + 1]);
    if (spec_.required[i]) ++required_count_;
  }
}

int ObjectMachine::name_at(TrieNode n) const {
  if (n == TokenTrie::kRoot) {  // the empty name is no token of the trie
    if (!trie_.ends(n)) return -1;
    return static_cast<int>(by_text_[0]);
  }
  const auto ids = trie_.trie().tokens(n);
  return ids.empty() ? -1 : static_cast<int>(ids[0]);
}

bool ObjectMachine::name_allowed(const Records& k, const ObjectRecord& r, uint32_t i) const {
  if (spec_.children[i] == kNoChild) return false;
  if (spec_.any_order) return !k.in_set(r.seen, i);
  return i >= r.next && i <= next_required_[r.next];
}

// In the fixed order other keys come after all names, so nothing required may be open.
bool ObjectMachine::others_allowed(const ObjectRecord& r) const {
  if (spec_.additional == kNoChild) return false;
  return spec_.any_order || next_required_[r.next] == size();
}

// Looks at the names below a trie node, or at those that may come in order: whichever are fewer.
bool ObjectMachine::some_name_under(const Records& k, const ObjectRecord& r, TrieNode n, Sub sub) const {
  const auto fits = [&](uint32_t i) {
    if (!name_allowed(k, r, i)) return false;
    if (sub == 0) return true;
    // The next character of the name must be one that the partial escape can become.
    std::vector<uint8_t> path;
    trie_.trie().path(n, path);
    const std::string& name = spec_.names[i];
    Sub at = 0;
    for (size_t j = path.size(); j < name.size(); ++j) {
      const Decoded d = decode_utf8(at, static_cast<uint8_t>(name[j]));
      if (d.kind == Decoded::Char)
        return partial_is_live(sub, spec_.any_escapes,
                               [&](uint32_t lo, uint32_t hi) { return lo <= d.value && d.value <= hi; });
      at = d.value;
    }
    return false;
  };
  const uint32_t first = first_under_[n], end = end_under_[n];
  if (!spec_.any_order) {
    const uint32_t last = std::min(next_required_[r.next], static_cast<uint32_t>(size()) - (size() ? 1u : 0u));
    if (size() > 0 && last + 1 - std::min(r.next, last + 1) < end - std::min(first, end)) {
      for (uint32_t i = r.next; i <= last; ++i)
        if (text_rank_[i] >= first && text_rank_[i] < end && fits(i)) return true;
      return false;
    }
  }
  for (uint32_t t = first; t < end; ++t)
    if (fits(by_text_[t])) return true;
  return false;
}

bool ObjectMachine::can_go_on(const Records& k, const ObjectRecord& r) const {
  if (others_allowed(r)) return true;
  return spec_.any_order ? some_name_under(k, r, TokenTrie::kRoot, 0) : some_from_[r.next] != 0;
}

bool ObjectMachine::can_close(const Records& k, const ObjectRecord& r) const {
  if (required_count_ == 0) return true;
  if (!spec_.any_order) return next_required_[r.next] == size();
  for (uint32_t i = next_required_[0]; i < size(); i = next_required_[i + 1])
    if (!k.in_set(r.seen, i)) return false;
  return true;
}

// Because of a member that has not begun yet. Inside a key it is not settled which may still come, unless others may.
bool ObjectMachine::endless(Request& r, State s) const {
  if (phase(s) == Done) return false;
  if (spec_.additional != kNoChild) return true;  // by its key
  if (in_key(s)) return false;
  const Records& k = r.records();
  const ObjectRecord rec = k.object(record(s));
  for (uint32_t i = spec_.any_order ? 0 : rec.next; i < size(); ++i) {
    const bool here = (phase(s) == AfterKey || phase(s) == Value) && cursor(s) == i;
    if (spec_.children[i] == kNoChild || (!here && k.in_set(rec.seen, i))) continue;
    if (node_is_endless(r, spec_.children[i])) return true;
  }
  return false;
}

ObjectRecord ObjectMachine::after_name(Records& k, ObjectRecord r, uint32_t i) const {
  if (spec_.any_order) r.seen = k.with(r.seen, i);
  else r.next = i + 1;
  return r;
}

ObjectRecord ObjectMachine::after_other(Records& k, ObjectRecord r, TextId text) const {
  r.others = k.add_other(r.others, text);
  r.next = static_cast<uint32_t>(size());
  return r;
}

}  // namespace mw
