// Bases: for a language with a huge set of tokens, everything about (trie node, language state) that does not depend
// on what follows: which tokens stay inside, which end exactly at its closing byte, and the merged trie behind the exits.
// Made on first use, shared by all constraints over a vocabulary.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "base_cache.h"
#include "bitset.h"
#include "char_decoder.h"
#include "class_base.h"
#include "exit_trie.h"
#include "intern.h"
#include "regex_dfa.h"
#include "token_trie.h"

namespace mw {

// Tokens, each once, ordered by a count of characters, with the cumulative sets that length bounds ask for.
class CountedTokens {
 public:
  struct Entry {
    uint32_t chars;
    TokenId token;
  };
  CountedTokens(const std::vector<Entry>& entries, size_t vocab_size);
  // Out of an image; empty where it holds none.
  CountedTokens(image::Reader& in, size_t vocab_size);
  void save(image::Writer& out) const;
  const TokenSet& all() const { return all_; }
  const TokenSet& up_to(uint32_t chars) const;  // at most so many characters; made once a bound
  std::span<const TokenId> between(uint32_t lo, uint32_t hi) const;
  uint32_t max_chars() const { return max_chars_; }
  // The distinct counts, ascending.
  const std::vector<uint32_t>& counts() const { return counts_; }

 private:
  std::unique_ptr<TokenSet> make_up_to(uint32_t chars) const;  // under the mutex

  size_t vocab_size_;
  std::vector<TokenId> tokens_;
  std::vector<uint32_t> counts_;
  std::vector<uint32_t> begin_;  // begin_[i]: first token with counts_[i] characters
  uint32_t max_chars_ = 0;
  TokenSet all_;
  mutable std::mutex mutex_;
  mutable std::map<uint32_t, std::unique_ptr<TokenSet>> cumulative_;
};

// The inside of a JSON string in some Sub state, from some node of the vocabulary. `chars` counts the characters begun.
struct StringBase {
  struct Cut {  // a token that ends inside a character
    TokenId token;
    Sub sub;
    uint32_t chars;
  };
  CountedTokens stay, close;  // ending between characters; ending with the closing quote
  CountedTokens cut;          // ending inside a character
  std::vector<Cut> cuts;      // the same, with where they end
  TokenSet all;               // of all of them
  std::vector<TrieNode> quotes;  // where the closing quote is read
  ExitTrie exits;             // behind the closing quote
  void unite(size_t vocab_size);  // fills `all`
  void save(image::Writer& out) const;
  static std::unique_ptr<StringBase> load(image::Reader& in, const TokenTrie& trie, size_t vocab_size);
};

// White space between JSON tokens, from the root, in some state of the policy's automaton.
struct SpaceBase {
  TokenSet stay;
  ExitTrie exits;
};

enum class Transport : uint8_t { Raw, JsonMinimal, JsonAny };

// A regex in some state, from some node: strings of the regex as raw text or inside a JSON string.
class RegexBase {
 public:
  TokenSet stay;   // alive inside the regex
  std::vector<const TokenSet*> shared;  // likewise, sets of other bases
  TokenSet close;  // JSON: ending with the closing quote
  // Where its tokens end, if that is known: states between characters, and states (these or others) in which some have
  // begun a further character; each once.
  bool knows_ends = false;
  std::vector<DfaState> ends, cut;
  // The most tokens that finishing takes after any token of `stay`, once Automaton::widest_after has found it.
  static constexpr uint32_t kUnsettled = 0xffffffffu;
  mutable std::atomic<uint32_t> widest{kUnsettled};
  ExitTrie& exits(const TokenTrie& trie) const;  // JSON: behind the quote; raw: behind each accepting end
  size_t bytes_used() const;  // about; what is behind its exits is estimated

 private:
  friend class RegexBaseBuilder;
  struct Run {  // accepting ends at the nodes of a class base, by character count; the last one stands for all beyond
    std::shared_ptr<const ClassBase> base;
    std::vector<bool> accepts;
    bool goes_on;
  };
  std::vector<std::shared_ptr<const ClassBase>> held_;  // whose sets are in `shared`
  std::shared_ptr<const RegexBase> whole_;  // likewise: that of the language without its exceptions,
  StringBase* body_ = nullptr;              // or the body of a string; the exits are theirs where none is left out
  bool own_exits_ = false;
  mutable std::vector<ExitTrie::Member> members_;
  mutable std::vector<Run> runs_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<ExitTrie> exits_;
};

class BaseStore;

// The bases of one automaton over one vocabulary.
class RegexBases final : BaseCache::Part {
 public:
  RegexBases(RegexDfa& dfa, Transport transport) : dfa_(&dfa), transport_(transport) {}
  ~RegexBases() {
    if (cache_) cache_->leave(this);
  }
  // `own`: not that of a state which differs in counts, where it matters what its tokens lead to.
  std::shared_ptr<const RegexBase> get(BaseStore& store, TrieNode node, DfaState state, bool own = false);

 private:
  void drop() override;
  std::shared_ptr<const RegexBase> find(uint64_t key, bool own);
  std::shared_ptr<const RegexBase> keep(uint64_t key, bool own, std::shared_ptr<const RegexBase> base);

  RegexDfa* dfa_;
  Transport transport_;
  std::once_flag joined_;
  std::shared_ptr<BaseCache> cache_;
  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const RegexBase>> bases_[2];  // shared, own
};

// Everything per vocabulary; thread-safe.
class BaseStore final : BaseCache::Part {
 public:
  BaseStore(const TokenTrie& trie, size_t vocab_size) : trie_(&trie), vocab_size_(vocab_size) { cache_->join(this); }
  ~BaseStore() { cache_->leave(this); }
  const TokenTrie& trie() const { return *trie_; }
  size_t vocab_size() const { return vocab_size_; }
  // Once the trie is there: works out what nearly every constraint asks for, or takes it from an image. False: it is none.
  void prepare();
  bool load(image::Reader& in);
  void save(image::Writer& out);
  // No token has more characters.
  uint32_t most_chars() const { return marks_.most_chars(); }
  const TrieMarks& marks() const { return marks_; }
  const std::shared_ptr<BaseCache>& cache() const { return cache_; }

  StringBase& string(TrieNode node, Sub sub, bool any_escapes);
  std::shared_ptr<const ClassBase> run(TrieNode node, const CharSet129& set, const OtherChars& others = {});
  SpaceBase& space(int policy, uint32_t state);

 private:
  void drop() override;
  template <class Key, class Base, class Make>
  Base& lookup(std::map<Key, std::unique_ptr<Base>>& bases, const Key& key, Make make);
  void keep_bodies();
  std::unique_ptr<StringBase> make_string(TrieNode node, Sub sub, bool any_escapes) const;
  std::unique_ptr<SpaceBase> make_space(int policy, uint32_t state) const;

  const TokenTrie* trie_;
  size_t vocab_size_;
  TrieMarks marks_;
  AsciiRuns ascii_runs_;
  std::shared_ptr<BaseCache> cache_ = std::make_shared<BaseCache>();
  std::shared_mutex mutex_;
  std::map<std::tuple<TrieNode, Sub, bool>, std::unique_ptr<StringBase>> strings_;
  std::map<std::tuple<TrieNode, uint64_t, uint64_t, bool, OtherChars>, std::shared_ptr<const ClassBase>> runs_;
  std::map<std::tuple<int, uint32_t>, std::unique_ptr<SpaceBase>> spaces_;
};

}  // namespace mw
