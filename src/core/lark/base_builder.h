// Makes bases. What it finds out about the lexer it keeps for the next ones.
#pragma once

#include <algorithm>
#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "bases.h"

namespace mw::lark {

class BaseBuilder {
 public:
  explicit BaseBuilder(const LarkBases::Over& over) : lexer_(over.lexer), trie_(over.trie), store_(over.store) {}
  // From a node on. `runs`: see Slot::run.
  void walk(TrieNode node, LexState q, Guards g, int32_t column, bool runs);
  // From a place on.
  void walk(const Place& place, LexState q);
  // What came of the walk; the builder is then as before it.
  std::unique_ptr<LexBase> finish(LarkBases& bases, const LarkBases::Over& over, bool sorted);

 private:
  struct Exit {
    Type type;
    bool ignore, feed;
    Guards guards;
    int32_t column;
    const std::bitset<256>* firsts;  // the bytes that break no guard
    std::vector<TrieNode> members;
  };
  struct Slot {  // a state in which tokens end, and may end tokens of the grammar
    LexState q = 0;
    Guards guards = kNoGuards;
    int32_t column = -1;
    bool more = false, met = false;
    std::vector<Exit*> exits;
    std::vector<TokenId> tokens;
    Words run;  // tokens inside of a run of characters that lead back here; cut ones can be finished where this state can
    int8_t loops = -1;       // whether there are many such characters; -1: not looked at
    CharSet129 loop_set{};   // those
    std::bitset<256> leaves;   // bytes that lead elsewhere
    Slot* leads_to = nullptr;  // a state that loops, to which many characters lead
    bool leads = true;         // until it is known that there is none
    std::vector<Slot*> row;  // by byte, as they are asked for; &dead_ where nothing goes on
  };
  struct At {
    TrieNode node;
    Slot* slot;
  };
  Slot* step(Slot& from, uint8_t b) {
    Slot*& known = from.row[b];
    if (known == nullptr) known = make_step(from, b);
    return known == &dead_ ? nullptr : known;
  }
  Slot* make_step(const Slot& from, uint8_t b);
  Slot* slot(LexState q, Guards g, int32_t column);
  void arrive(TrieNode c, Slot& to);
  void walk_on(bool runs);
  void meet(Slot& s);
  bool loops(Slot& s);
  bool takes_all_beyond_ascii(Slot& s);
  // A run at a node whose first character is one of some alone, the others' branches are left out.
  struct Run {
    TrieNode node;
    Slot* slot;
    bool whole;                                          // nothing is left out, and the node itself is on the run
    std::vector<TrieNode> branches;                      // that are left out
    std::vector<std::pair<TrieNode, TrieNode>> left_out;  // their nodes: from, to
    bool has(TrieNode n) const {
      return n != node && std::none_of(left_out.begin(), left_out.end(), [&](const auto& r) { return r.first <= n && n < r.second; });
    }
    void leave_out(const TokenTrie& trie, TrieNode branch);
  };
  bool begins_run(TrieNode node, Slot& s, Run& out);
  void take_run(const Run& at);
  void leave_run(const Run& at, const ClassBase& run);
  void add_exit(Exit& exit, TrieNode node);
  TokenSet tokens(Slot& s, size_t vocab_size) const;
  TokenSet united(const std::vector<Slot*>& slots, size_t vocab_size) const;
  void take_stays(const LarkBases::Over& over, bool sorted, LexBase& out);
  const std::bitset<256>& survivors(Guards guards);
  LexBase::Stay stay(Slot& s, size_t vocab_size) const;
  void take_exits(LarkBases& bases, const LarkBases::Over& over, LexBase& out);

  Lexer& lexer_;
  const TokenTrie& trie_;
  BaseStore* store_;
  std::deque<Slot> slots_;
  std::deque<Exit> exits_;
  Slot dead_;
  std::map<std::tuple<LexState, Guards, int32_t>, Slot*> slot_index_;
  std::map<std::tuple<Type, bool, bool, Guards, int32_t>, Exit*> exit_index_;
  std::map<Guards, std::bitset<256>> survivors_;
  std::vector<At> stack_;
  std::vector<Slot*> met_;   // in this walk
  std::vector<Exit*> left_;  // likewise, exits with members
};

}  // namespace mw::lark
