#include "bases.h"

namespace mw::lark {
namespace {

class Builder {
 public:
  Builder(Lexer& lexer, const TokenTrie& trie, size_t vocab_size) : lexer_(lexer), trie_(trie), vocab_size_(vocab_size) {}

  std::unique_ptr<LexBase> build(TrieNode node, LexState q, Guards g, int32_t column) {
    stack_.push_back({node, q, g, column});
    while (!stack_.empty()) {
      const At at = stack_.back();
      stack_.pop_back();
      for (TrieNode c = trie_.first_child(at.node), e = c + trie_.child_count(at.node); c < e; ++c) step(at, c);
    }
    auto out = std::make_unique<LexBase>();
    for (auto& [key, tokens] : stays_)
      out->stays.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), TokenSet(std::move(tokens), vocab_size_)});
    for (auto& [key, members] : exits_) {
      const auto& [type, ignore, feed, guards, column] = key;
      auto made = std::make_unique<ExitTrie>(trie_, std::move(members), survivors(guards));
      out->exits.push_back({type, ignore, feed, guards, column, std::move(made)});
    }
    return out;
  }

 private:
  struct At {
    TrieNode node;
    LexState q;
    Guards g;
    int32_t column;
  };

  void step(const At& at, TrieNode c) {
    const uint8_t b = trie_.byte(c);
    const LexState q = lexer_.next(at.q, b);
    const Guards g = q == 0 ? kVoidGuards : lexer_.next_guards(at.g, b);
    if (g == kVoidGuards) return;
    const int32_t column = lexer_.column(q, at.column, b);
    if (trie_.has_tokens(c)) {
      auto& tokens = stays_[{q, g, column}];
      for (TokenId t : trie_.tokens(c)) tokens.push_back(t);
    }
    if (trie_.child_count(c) == 0) return;
    for (const TokenEnd& e : lexer_.ends(q)) add_exit(c, e, lexer_.with(g, e.guard), column);
    if (lexer_.more(q)) stack_.push_back({c, q, g, column});
  }

  void add_exit(TrieNode node, const TokenEnd& e, Guards guards, int32_t column) {
    const std::bitset<256>& firsts = survivors(guards);
    for (TrieNode c = trie_.first_child(node), end = c + trie_.child_count(node); c < end; ++c)
      if (firsts.test(trie_.byte(c))) {
        exits_[{e.type, e.ignore, e.feed, guards, column}].push_back({node, 0});
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
  std::map<std::tuple<LexState, Guards, int32_t>, std::vector<TokenId>> stays_;
  std::map<std::tuple<Type, bool, bool, Guards, int32_t>, std::vector<ExitTrie::Member>> exits_;
  std::map<Guards, std::bitset<256>> survivors_;
};

}  // namespace

const LexBase& LarkBases::get(Lexer& lexer, const TokenTrie& trie, size_t vocab_size, TrieNode node, LexState q, Guards g,
                             int32_t column) {
  const Key key{node, q, g, column};
  {
    const std::shared_lock lock(mutex_);
    const auto hit = bases_.find(key);
    if (hit != bases_.end()) return *hit->second;
  }
  auto made = Builder(lexer, trie, vocab_size).build(node, q, g, column);
  const std::unique_lock lock(mutex_);
  return *bases_.try_emplace(key, std::move(made)).first->second;
}

}  // namespace mw::lark
