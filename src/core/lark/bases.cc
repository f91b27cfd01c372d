#include "bases.h"

namespace mw::lark {
namespace {

class Builder {
 public:
  Builder(Lexer& lexer, const TokenTrie& trie, size_t vocab_size) : lexer_(lexer), trie_(trie), vocab_size_(vocab_size) {}

  std::unique_ptr<LexBase> build(TrieNode node, LexState q, Guards g) {
    stack_.push_back({node, q, g});
    while (!stack_.empty()) {
      const At at = stack_.back();
      stack_.pop_back();
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) step(at, c);
    }
    auto out = std::make_unique<LexBase>();
    for (auto& [key, tokens] : stays_) out->stays.push_back({key.first, key.second, TokenSet(std::move(tokens), vocab_size_)});
    for (auto& [key, members] : exits_) {
      const auto& [type, ignore, feed, guards] = key;
      auto made = std::make_unique<ExitTrie>(trie_, std::move(members), survivors(guards));
      out->exits.push_back({type, ignore, feed, guards, std::move(made)});
    }
    return out;
  }

 private:
  struct At {
    TrieNode node;
    LexState q;
    Guards g;
  };

  void step(const At& at, TrieNode c) {
    const uint8_t b = trie_.byte(c);
    const LexState q = lexer_.next(at.q, b);
    const Guards g = q == 0 ? kVoidGuards : lexer_.next_guards(at.g, b);
    if (g == kVoidGuards) return;
    if (trie_.has_tokens(c)) {
      auto& tokens = stays_[{q, g}];
      for (TokenId t : trie_.tokens(c)) tokens.push_back(t);
    }
    if (trie_.child_count(c) == 0) return;
    for (const TokenEnd& e : lexer_.ends(q)) add_exit(c, e, lexer_.with(g, e.guard));
    if (lexer_.more(q)) stack_.push_back({c, q, g});
  }

  void add_exit(TrieNode node, const TokenEnd& e, Guards guards) {
    const std::bitset<256>& firsts = survivors(guards);
    for (TrieNode c = trie_.first_child(node), end = c + trie_.child_count(node); c < end; ++c)
      if (firsts.test(trie_.byte(c))) {
        exits_[{e.type, e.ignore, e.feed, guards}].push_back({node, 0});
        return;
      }
  }

  // The bytes that break no guard.
  const std::bitset<256>& survivors(Guards guards) {
    const auto [it, fresh] = survivors_.try_emplace(guards);
    if (fresh)
      for (uint32_t b = 0; b < 256; ++b) it->second.set(b, lexer_.next_guards(guards, static_cast<uint8_t>(b)) != kVoidGuards);
    return it->second;
  }

  Lexer& lexer_;
  const TokenTrie& trie_;
  size_t vocab_size_;
  std::vector<At> stack_;
  std::map<std::pair<LexState, Guards>, std::vector<TokenId>> stays_;
  std::map<std::tuple<Type, bool, bool, Guards>, std::vector<ExitTrie::Member>> exits_;
  std::map<Guards, std::bitset<256>> survivors_;
};

}  // namespace

const LexBase& LarkBases::get(Lexer& lexer, const TokenTrie& trie, size_t vocab_size, TrieNode node, LexState q, Guards g) {
  const Key key{node, q, g};
  {
    const std::shared_lock lock(mutex_);
    const auto hit = bases_.find(key);
    if (hit != bases_.end()) return *hit->second;
  }
  auto made = Builder(lexer, trie, vocab_size).build(node, q, g);
  const std::unique_lock lock(mutex_);
  return *bases_.try_emplace(key, std::move(made)).first->second;
}

}  // namespace mw::lark
