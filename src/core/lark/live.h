// Whether, and how cheaply, a text can be finished.
//
// Guards are a finite control that is threaded left to right through a pushdown system, so that is decidable. For each LR
// state on top of an unknown stack, under some guards, the *exits* are found: the ways to come to the point where a
// reduction has taken that state off the stack and goes on below, with the look-ahead and the guards at that moment. They are
// a least fixpoint (saturation; Bouajjani, Esparza, Maler 1997; Schwoon 2002), computed as it is asked for. A given stack is
// then searched downwards over them.
//
// Over vocabularies that lack single bytes the control also holds a place in the trie of the tokens (spelling.h).
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "../token_trie.h"
#include "../vocab.h"
#include "parser.h"

namespace mw::lark {

using Control = uint32_t;  // guards, and a node of the trie

// The front end puts the names of terminals for #numbers.
struct LiveLimit : std::length_error {
  explicit LiveLimit(std::pair<Type, Type> blamed)
      : std::length_error("whether every text can be finished takes too long to decide" + told(blamed)) {}
  static std::string told(std::pair<Type, Type> blamed) {
    if (blamed.first == kNoType) return "";
    return ": where #" + std::to_string(blamed.first) + " ends, #" + std::to_string(blamed.second) +
           " could go on, and that it does not is a claim about all the text behind it";
  }
};

class Live {
 public:
  // trie: nullptr where every byte is a token.
  Live(const Tables& tables, Lexer& lexer, const TokenTrie* trie) : tables_(tables), lexer_(lexer), trie_(trie) {}

  // A nonterminal has ended on top of a node, before some look-ahead.
  struct Place {
    NodeRef node;
    uint32_t lhs, ahead;
    Control control;
    auto operator<=>(const Place&) const = default;
  };
  // What was found out about the stacks of one request.
  using Known = std::map<Place, uint32_t>;

  // Steps to the end of the text from a stack under guards, in the middle of a token or before one; kNoCost: none.
  uint32_t cost(const Stacks& stacks, StackSet s, LexState q, Guards g, Known& known);
  // The same without a stack: for the start.
  uint32_t cost_of_start(uint32_t start);

  // The ends of tokens that can be reached from a state of the lexer.
  struct Outcome {
    Type type;  // the number of terminals: the text ends before another token
    bool ignore, feed;
    Control control;
    uint32_t cost;
  };
  const std::vector<Outcome>& outcomes(LexState q, Control c);
  Control control(Guards g, TrieNode node = TokenTrie::kRoot);
  Guards guards(Control c) const { return controls_[c].first; }
  std::mutex& mutex() { return mutex_; }
  size_t entry_count() const { return entries_.size(); }

 private:
  static constexpr uint32_t kBoundary = 0xffffffffu;
  struct Point {
    uint32_t state, ahead;  // kBoundary: before a token
    Control control;
    bool operator==(const Point&) const = default;
  };
  struct Exit {
    uint32_t lhs, pops, ahead;  // so many more nodes are taken off
    Control control;
    bool operator==(const Exit&) const = default;
  };
  struct Hash {
    size_t operator()(const Point& p) const { return static_cast<size_t>(mix(mix(mix(41, p.state), p.ahead), p.control)); }
    size_t operator()(const Exit& e) const {
      return static_cast<size_t>(mix(mix(mix(mix(42, e.lhs), e.pops), e.ahead), e.control));
    }
  };
  struct Reader {
    uint32_t entry;
    bool call;  // the exits are those of something on top of the reader's state
    bool operator<(const Reader& o) const { return std::tie(entry, call) < std::tie(o.entry, o.call); }
  };
  struct Entry {
    Point point;
    std::unordered_map<Exit, uint32_t, Hash> exits;
    uint32_t accept = kNoCost;  // the text ends
    std::map<Reader, uint32_t> readers;
  };
  struct Job {
    uint32_t entry;
    bool fresh, accept;
    Exit exit;
  };

  uint32_t entry(const Point& p);
  void run();
  void expand(uint32_t e);
  void expand_boundary(uint32_t e);
  void read(uint32_t from, const Reader& reader, uint32_t cost);
  void pass(const Exit& exit, uint32_t exit_cost, const Reader& reader, uint32_t cost);
  void improve(uint32_t e, const Exit& exit, uint32_t cost);
  void accept(uint32_t e, uint32_t cost);
  const Entry& settled(const Point& p);
  std::vector<LexState> lexers(uint32_t state);

  class Search;

  const Tables& tables_;
  Lexer& lexer_;
  const TokenTrie* trie_;
  std::mutex mutex_;
  std::vector<std::pair<Guards, TrieNode>> controls_;
  std::map<std::pair<Guards, TrieNode>, Control> control_index_;
  std::map<std::pair<LexState, Control>, std::vector<Outcome>> outcomes_;
  std::deque<Entry> entries_;
  std::unordered_map<Point, uint32_t, Hash> index_;
  std::deque<Job> jobs_;
  size_t done_ = 0;
};

}  // namespace mw::lark
