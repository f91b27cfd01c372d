// Bases of a lexer: what the tokens of a vocabulary do inside it, whatever the parser says (see ../bases.h).
//
// From a place of the vocabulary, that is one node of its trie or all those where a token of the grammar has just ended, a
// state of the lexer leads to tokens that end inside it and to further places, behind further ends. Where each terminal is
// read by itself (dynamic lexers) that is kept by terminal, whichever others are wanted beside it.
#pragma once

#include <atomic>
#include <bitset>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "../bitset.h"
#include "../bases.h"
#include "../exit_trie.h"
#include "lexer.h"

namespace mw::lark {

struct LexBase;
class BaseBuilder;

// Where tokens of the vocabulary go on before a token of the grammar, under guards.
class Place {
 public:
  Place(std::vector<TrieNode> members, std::vector<TrieNode> children, Guards guards)
      : members_(std::move(members)), children_(std::move(children)), guards_(guards) {}
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Guards guards() const { return guards_; }
  const std::vector<TrieNode>& members() const { return members_; }
  // The nodes behind a next byte that the guards allow, by that byte.
  const std::vector<TrieNode>& children() const { return children_; }
  // The same as a merged trie.
  ExitTrie& exits(const TokenTrie& trie, Lexer& lexer);

  // Dynamic lexers: the terminals that some token may go on with.
  struct Entry {
    Type type = 0;
    LexState start = 0;
    std::atomic<const LexBase*> base{nullptr};
  };

 private:
  friend class LarkBases;
  struct Entries {
    std::unique_ptr<Entry[]> all;
    size_t count = 0;
  };
  struct Link {  // other lexers: by the state before a token
    LexState q;
    const LexBase* base;
    Link* next;
  };
  std::vector<TrieNode> members_, children_;
  Guards guards_;
  std::atomic<Entries*> entries_{nullptr};
  std::atomic<Link*> links_{nullptr};
  std::once_flag exits_once_;
  std::unique_ptr<ExitTrie> exits_;
};

struct LexBase {
  struct Stay {  // tokens that end in the middle of a token of the grammar
    LexState q;
    Guards guards;
    int32_t column;
    TokenSet tokens;
  };
  struct Part {  // those without guards from where the same may be reached
    const Lexer::Reach* reach;
    TokenSet tokens;
    std::vector<Stay> stays;  // one by one, where indentation matters
  };
  struct Group {  // those without guards that may end as the same types
    std::vector<Type> types;
    bool ignored;
    TokenSet tokens;
    std::vector<Stay> stays;
    mutable std::once_flag once;
    mutable std::vector<Part> parts;  // made when the types do not decide
  };
  struct Exit {  // where a token of the grammar may end, with more behind it
    Type type;
    bool ignore, feed;
    int32_t column;
    Place* behind;
  };
  TokenSet sure;              // what can be finished wherever the token was wanted
  std::deque<Group> groups;   // what can be finished where something that may be reached is wanted
  std::vector<Stay> stays;    // all others
  std::vector<Exit> exits;
};

class LarkBases {
 public:
  // What they are made over.
  struct Over {
    Lexer& lexer;
    const TokenTrie& trie;
    size_t vocab_size;
    bool loose, indents;
    BaseStore* store;  // nullptr: the vocabulary lacks characters, whose bases are others
  };
  LarkBases();
  ~LarkBases();
  // In the middle of a token. `sorted`: what can be finished is told apart; else all are stays.
  const LexBase& get(const Over& over, TrieNode node, LexState q, Guards g, int32_t column, bool sorted);
  // Before a token.
  const LexBase& get(const Over& over, Place& place, LexState q);
  std::span<Place::Entry> entries(const Over& over, Place& place);
  const LexBase& get(const Over& over, Place& place, Place::Entry& entry);
  const std::vector<LexBase::Part>& parts(const Over& over, const LexBase::Group& group) const;
  // Of these nodes, which are ascending.
  Place& place(const Over& over, std::vector<TrieNode> members, Guards g);

 private:
  class Lease;
  void find_firsts(const Over& over);
  static std::vector<TrieNode> children_of(const Over& over, const std::vector<TrieNode>& members, Guards g);
  using Key = std::tuple<TrieNode, LexState, Guards, int32_t, bool>;
  std::shared_mutex mutex_;
  std::map<Key, std::unique_ptr<LexBase>> bases_;
  std::mutex places_mutex_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Place>> places_;  // by a hash of members and guards
  std::mutex builders_mutex_;
  std::vector<std::unique_ptr<BaseBuilder>> builders_;  // idle
  std::once_flag firsts_once_;
  std::vector<LexState> starts_;              // by terminal
  std::vector<std::vector<Type>> by_byte_;    // the terminals that may begin with it
};

}  // namespace mw::lark
