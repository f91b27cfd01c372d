#include "choice.h"

#include <algorithm>
#include <numeric>

#include "../request.h"

namespace mw {
namespace {

// For each node of a trie, the fewest tokens that spell a path to some end; `closing` is one more byte after each end,
// 0 = none. From the back, since children have larger indices; each node looks as far as one token reaches.
std::vector<uint32_t> trie_costs(const TextTrie& texts, const Vocab& vocab, uint8_t closing) {
  const TokenTrie& trie = texts.trie();
  const TokenTrie& tokens = vocab.trie();
  std::vector<uint32_t> costs(trie.size(), kNoCost);
  const TrieNode close = closing ? tokens.child(TokenTrie::kRoot, closing) : kNoNode;
  const uint32_t close_cost = close != kNoNode && tokens.has_tokens(close) ? 1 : kNoCost;
  for (size_t i = trie.size(); i-- > 0;) {
    const auto n = static_cast<TrieNode>(i);
    uint32_t best = !texts.ends(n) ? kNoCost : closing ? close_cost : 0;
    std::vector<std::pair<TrieNode, TrieNode>> stack{{n, TokenTrie::kRoot}};
    while (!stack.empty()) {
      const auto [at, token] = stack.back();
      stack.pop_back();
      if (closing && texts.ends(at)) {
        const TrieNode t = tokens.child(token, closing);
        if (t != kNoNode && tokens.has_tokens(t)) best = std::min(best, 1u);
      }
      for (TrieNode c = trie.first_child(at), e = c + trie.child_count(at); c < e; ++c) {
        const TrieNode t = tokens.child(token, trie.byte(c));
        if (t == kNoNode) continue;
        if (tokens.has_tokens(t)) best = std::min(best, add_cost(1, costs[c]));
        stack.push_back({c, t});
      }
    }
    costs[n] = best;
  }
  return costs;
}

}  // namespace

TextTrie::TextTrie(const std::vector<std::string>& texts) {
  std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<TokenId> ids(texts.size());
  std::iota(ids.begin(), ids.end(), 0u);
  has_empty_ = std::any_of(texts.begin(), texts.end(), [](const std::string& t) { return t.empty(); });
  trie_.build(views, ids);
}

TrieNode TextTrie::advance(TrieNode n, uint32_t code_point) const {
  uint8_t bytes[4];
  const int count = encode_utf8(code_point, bytes);
  for (int i = 0; i < count && n != kNoNode; ++i) n = child(n, bytes[i]);
  return n;
}

bool TextTrie::any_child_in(TrieNode n, uint32_t lo, uint32_t hi) const {
  return any_next_char(n, [&](uint32_t cp, TrieNode) { return lo <= cp && cp <= hi; });
}

ChoiceMachine::ChoiceMachine(const std::vector<std::string>& texts, const Vocab& vocab)
    : texts_(texts), vocab_(&vocab) {}

State ChoiceMachine::next(Request&, State s, uint8_t b) const {
  const TrieNode c = texts_.child(static_cast<TrieNode>(s), b);
  return c == kNoNode ? kDead : c;
}

Accept ChoiceMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = texts_.ends(static_cast<TrieNode>(s));
  return a;
}

bool ChoiceMachine::more(Request&, State s) const { return texts_.trie().child_count(static_cast<TrieNode>(s)) != 0; }

int ChoiceMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  const TokenTrie& trie = texts_.trie();
  const auto n = static_cast<TrieNode>(s);
  const uint32_t count = trie.child_count(n);
  if (count > out.size()) return -1;
  for (uint32_t i = 0; i < count; ++i) out[i] = trie.byte(trie.first_child(n) + i);
  return static_cast<int>(count);
}

uint32_t ChoiceMachine::cost(Request&, State s) const {
  std::call_once(once_, [&] { costs_ = trie_costs(texts_, *vocab_, 0); });
  return costs_[static_cast<size_t>(s)];
}

ChoiceStringMachine::ChoiceStringMachine(const std::vector<std::string>& texts, bool any_escapes, const Vocab& vocab)
    : texts_(texts), any_escapes_(any_escapes), vocab_(&vocab) {}

State ChoiceStringMachine::next(Request&, State s, uint8_t b) const {
  if (s == kQuote) return b == '"' ? pack(TokenTrie::kRoot, 0) : kDead;
  if (s == kClosed) return kDead;
  const auto n = static_cast<TrieNode>(s >> kSubBits);
  const auto sub = static_cast<Sub>(s & kSubMask);
  const Decoded d = decode_json(sub, b, any_escapes_);
  const auto live = [&](uint32_t lo, uint32_t hi) { return texts_.any_child_in(n, lo, hi); };
  switch (d.kind) {
    case Decoded::Quote: return texts_.ends(n) ? kClosed : kDead;
    case Decoded::Partial: return partial_is_live(d.value, any_escapes_, live) ? pack(n, d.value) : kDead;
    case Decoded::Char: {
      const TrieNode c = texts_.advance(n, d.value);
      return c == kNoNode ? kDead : pack(c, 0);
    }
    default: return kDead;
  }
}

Accept ChoiceStringMachine::accept(Request&, State s) const {
  Accept a;
  a.pop = s == kClosed;
  return a;
}

int ChoiceStringMachine::candidates(Request&, State s, std::span<uint8_t> out) const {
  if (s == kQuote) {
    out[0] = '"';
    return 1;
  }
  if (s == kClosed) return 0;
  if ((s & kSubMask) != 0) return -1;
  const TokenTrie& trie = texts_.trie();
  const auto n = static_cast<TrieNode>(s >> kSubBits);
  const uint32_t count = trie.child_count(n);
  if (count + 2 > out.size()) return -1;
  int k = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t b = trie.byte(trie.first_child(n) + i);
    if (b != '"' && b != '\\') out[static_cast<size_t>(k++)] = b;
  }
  out[static_cast<size_t>(k++)] = '"';
  out[static_cast<size_t>(k++)] = '\\';
  return k;
}

// Fewest tokens from each node: spelled raw where nothing below needs an escape, else byte by byte.
void ChoiceStringMachine::prepare_costs() const {
  costs_ = trie_costs(texts_, *vocab_, '"');
  const TokenTrie& trie = texts_.trie();
  std::vector<uint32_t> bytes(trie.size(), kNoCost);
  std::vector<uint8_t> escapes(trie.size(), 0);
  for (size_t i = trie.size(); i-- > 0;) {
    const auto n = static_cast<TrieNode>(i);
    if (texts_.ends(n)) bytes[i] = 1;
    for (TrieNode c = trie.first_child(n), e = c + trie.child_count(n); c < e; ++c) {
      const uint32_t own = trie.byte(c) < 0x80 ? json_bytes(trie.byte(c)) : 1;
      bytes[i] = std::min(bytes[i], add_cost(own, bytes[c]));
      if (own > 1 || escapes[c]) escapes[i] = 1;
    }
    if (escapes[i]) costs_[i] = bytes[i];
  }
}

uint32_t ChoiceStringMachine::cost(Request&, State s) const {
  std::call_once(once_, [&] { prepare_costs(); });
  if (s == kQuote) return add_cost(1, costs_[0]);
  if (s == kClosed) return 0;
  const auto n = static_cast<TrieNode>(s >> kSubBits);
  const auto sub = static_cast<Sub>(s & kSubMask);
  if (sub == 0) return costs_[n];
  uint32_t best = kNoCost;
  texts_.any_next_char(n, [&](uint32_t cp, TrieNode c) {
    if (!partial_is_live(sub, any_escapes_, [&](uint32_t lo, uint32_t hi) { return lo <= cp && cp <= hi; })) return false;
    if (sub_mode(sub) >= Mode::Backslash) {
      best = std::min(best, add_cost(bytes_to_finish(sub, cp), costs_[c]));
      return false;
    }
    TrieNode at = c;  // raw bytes: the node that they have reached on the way to c
    for (uint32_t left = bytes_to_finish(sub); left > 0; --left) at = texts_.trie().parent(at);
    best = costs_[at];
    return true;
  });
  return best;
}

}  // namespace mw
