// Masks: the set of tokens allowed in a configuration, found by walking the vocabulary's trie inside the machines.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "exit_trie.h"
#include "request.h"

namespace mw {

// A union of shared bitsets and listed tokens, less some tokens that the bitsets hold wrongly.
struct MaskPart {
  std::vector<const Words*> dense;
  std::vector<TokenId> add;
  std::vector<TokenId> remove;
};

struct MaskRecord {
  MaskPart plain;                  // without removals
  std::vector<MaskPart> repaired;  // with
  std::vector<std::shared_ptr<const void>> kept;  // bases that the sets belong to
  std::vector<TokenId> doubts;     // where items must differ: tokens of which it depends on the position (uniqueness.h)
  size_t owned_bytes = 0;          // of sets that are this mask's alone
  uint32_t max_cost = kNoCost;     // the largest closing cost after any of its tokens, where costs were asked for
  size_t bytes_used() const;
  // row: words of the vocabulary's size.
  void write(std::span<uint32_t> row) const;
};

class Walker {
 public:
  // With costs, tokens after which more than `limit` tokens are needed are left out.
  Walker(Request& request, MaskRecord& out, bool costs, uint32_t limit)
      : request_(request), vocab_(request.vocab()), trie_(vocab_.trie()), out_(out), costs_(costs),
        tests_tokens_(!request.program().spells_freely()), limit_(limit) {}

  void run(ConfigId config);
  bool dropped() const { return dropped_; }  // some token was left out for its cost

  // --- for the bases of machines
  Request& request() const { return request_; }
  Vocab& vocab() const { return vocab_; }
  const TokenTrie& trie() const { return trie_; }
  // Whole sets may be added: false where each token's end must be tested by itself.
  bool takes_sets() const { return !tests_tokens_; }
  bool costs() const { return costs_; }
  // Whether tokens with this closing cost are let through; notes it.
  bool admits(uint32_t cost);
  // The same for a bound on the costs of a whole set; not fitting is no loss, the caller then goes token by token.
  bool fits(uint32_t bound);
  // A base that may be dropped elsewhere stays as long as the mask.
  template <class Base>
  const Base& keep(std::shared_ptr<const Base> base) {
    const Base& kept = *base;
    out_.kept.push_back(std::move(base));
    return kept;
  }
  // Likewise a set that this mask alone holds.
  const TokenSet& keep_own(std::shared_ptr<const TokenSet> set) {
    out_.owned_bytes += set->bytes_used();
    return keep(std::move(set));
  }
  void note_dropped() { dropped_ = true; }
  void note_live() { ++live_nodes_; }  // what a machine reached in walks of its own
  void add(const TokenSet& set);
  void add(std::span<const TokenId> tokens);
  // Tokens that end with an item.
  void emit(std::span<const TokenId> tokens, const Item& end);
  // The item reads a byte from here on.
  void walk(TrieNode node, const Item& item);
  // The same, without what it pushes or pops to: for an item of an expanded configuration, or one with nothing to read.
  void walk_here(TrieNode node, const Item& item) {
    if (request_.machine(item.machine).more(request_, item.state)) walk(node, item);
  }
  // The item has just read the byte that leads here.
  void reach(TrieNode node, const Item& item);
  // Goes on over what follows an exit, from an item or after a pop.
  void follow_exits(ExitTrie& exits, CharRange range, const Item& item);
  void pop_exits(ExitTrie& exits, CharRange range, RestId rest);
  // Between these, sets and tokens go to a part of their own, from which `removed` is taken out (and what the parts
  // around it remove). open_part returns what close_part wants back.
  int open_part(std::vector<TokenId> removed);
  void close_part(int outer) { part_ = outer; }

 private:
  struct Exit {
    ExitTrie* trie;
    CharRange range;
  };
  // Long tokens must not become deep recursion: past kMaxDepth bytes the walk goes on from these lists.
  static constexpr int kMaxDepth = 128;
  struct Later {
    TrieNode node;
    Item item;
    int part;
  };
  struct LaterExit {
    Exit exit;
    ExitTrie::Node* node;
    Item item;
    int part;
  };
  void walk_later();
  void follow(TrieNode node, const Item& item);
  template <class F>
  void each_branch(const Machine& m, const Item& item, F go_on);
  void walk_exit(const Exit& exit, ExitTrie::Node& node, const Item& item);
  void reach_exit(const Exit& exit, ExitTrie::Node& node, const Item& item);
  void follow_exit(const Exit& exit, ExitTrie::Node& node, const Item& item);
  void step_exit(const Exit& exit, ExitTrie::Node& child, const Item& item, uint8_t b);
  void doubt_exit(const Exit& exit, ExitTrie::Node& node);
  bool admits_end(const Item& end);
  bool opens_item(const Item& item) const;
  bool is_doubtful(const Item& item) const;
  void settle_doubts(ConfigId config);
  void count(ConfigId configs_before);
  MaskPart& part() { return part_ < 0 ? out_.plain : out_.repaired[static_cast<size_t>(part_)]; }

  Request& request_;
  Vocab& vocab_;
  const TokenTrie& trie_;
  MaskRecord& out_;
  int part_ = -1;  // index into repaired; -1 = plain
  bool costs_;
  bool tests_tokens_;
  uint32_t limit_;
  bool dropped_ = false;
  uint32_t max_cost_ = 0;
  uint64_t live_nodes_ = 0, dead_probes_ = 0;  // see Counters
  std::vector<TokenId> doubts_;  // tokens to be tried one by one
  int depth_ = 0;
  std::vector<Later> later_;
  std::vector<LaterExit> later_exits_;
};

}  // namespace mw
