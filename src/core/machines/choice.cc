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

uint32_t bytes_to_finish(Sub sub) {
  const uint32_t p = sub_payload(sub);
  switch (sub_mode(sub)) {
    case Mode::Start: return 0;
    case Mode::Utf8Need1: return 1;
    case Mode::Utf8Need2: return 2;
    case Mode::Utf8Need3: return 3;
    case Mode::Backslash: return 1;
    case Mode::Hex: {  // a high surrogate wants six bytes more
      const uint32_t digits = p >> 12, value = p & 0xfffu;
      const bool high = digits >= 2 && (value >> (4 * (digits - 2))) >= 0xd8 && (value >> (4 * (digits - 2))) <= 0xdb;
      return 4 - digits + (high ? 6 : 0);
    }
    case Mode::LowSurrogate: {
      const uint32_t at = p & 0x7fu;
      return at < 4 ? 6 - at : at < 8 ? 2 : 1;
    }
  }
  return 0;
}

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
  struct At {
    TrieNode node;
    Sub sub;
  };
  std::vector<At> stack{{n, 0}};
  while (!stack.empty()) {
    const At at = stack.back();
    stack.pop_back();
    for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) {
      const Decoded d = decode_utf8(at.sub, trie_.byte(c));
      if (d.kind == Decoded::Partial) stack.push_back({c, d.value});
      else if (d.kind == Decoded::Char && lo <= d.value && d.value <= hi) return true;
    }
  }
  return false;
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

uint32_t ChoiceStringMachine::cost(Request&, State s) const {
  // Spelled without escapes where that is possible: a text with characters that need one costs its bytes.
  std::call_once(once_, [&] {
    costs_ = trie_costs(texts_, *vocab_, '"');
    const TokenTrie& trie = texts_.trie();
    std::vector<uint32_t> bytes(trie.size(), kNoCost);
    for (size_t i = trie.size(); i-- > 0;) {
      const auto n = static_cast<TrieNode>(i);
      bytes[i] = texts_.ends(n) ? 1 : kNoCost;
      bool escape = false;
      for (TrieNode c = trie.first_child(n), e = c + trie.child_count(n); c < e; ++c) {
        const uint8_t b = trie.byte(c);
        const bool short_escape = b == '"' || b == '\\' || (is_control(b) && !needs_hex_escape(b));
        escape = escape || short_escape || is_control(b);
        bytes[i] = std::min(bytes[i], add_cost(short_escape ? 2 : is_control(b) ? 6 : 1, bytes[c]));
      }
      if (escape || bytes[i] < costs_[i]) costs_[i] = bytes[i];
    }
    // A raw spelling must not run through a character that needs an escape: take bytes for every ancestor of one.
    std::vector<uint8_t> below(trie.size(), 0);
    for (size_t i = trie.size(); i-- > 0;) {
      const auto n = static_cast<TrieNode>(i);
      for (TrieNode c = trie.first_child(n), e = c + trie.child_count(n); c < e; ++c) {
        const uint8_t b = trie.byte(c);
        if (b == '"' || b == '\\' || is_control(b) || below[c]) below[i] = 1;
      }
      if (below[i]) costs_[i] = bytes[i];
      most_ = std::max(most_, costs_[i]);
    }
  });
  if (s == kQuote) return add_cost(1, costs_[0]);
  if (s == kClosed) return 0;
  const auto n = static_cast<size_t>(s >> kSubBits);
  const auto sub = static_cast<Sub>(s & kSubMask);
  if (sub == 0) return costs_[n];
  // Inside a character: which text it leads to is open, so the dearest one counts.
  return add_cost(bytes_to_finish(sub), most_);
}

}  // namespace mw
