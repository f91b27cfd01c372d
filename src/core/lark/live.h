// Whether, and how cheaply, a text can be finished.
//
// Guards are a finite control that is threaded left to right through a pushdown system, so that is decidable. For each LR
// state on top of an unknown stack, under some guards, the *exits* are found: the ways to come to the point where a
// reduction has taken that state off the stack and goes on below, with the guards at that moment and, in LALR tables, the
// look-ahead. They are a least fixpoint (saturation; Bouajjani, Esparza, Maler 1997; Schwoon 2002), computed as it is asked
// for, the cheapest first (Knuth, "A generalization of Dijkstra's algorithm", 1977), so that each exit is handed on once. A
// given stack is then searched downwards over them.
//
// The search ends: there are finitely many entries (states, guards, look-ahead) and exits of each. Once all that can follow
// the start is explored, no text that was generated leads to a new one, so later searches are walks over what is known.
//
// Over vocabularies that lack single bytes the control also holds a place in the trie of the tokens (spelling.h).
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "../token_trie.h"
#include "../vocab.h"
#include "parser.h"

namespace mw::lark {

using Control = uint32_t;  // guards, and a node of the trie

// The front end puts the names of terminals for #numbers, and of rules for @states.
struct LiveLimit : std::length_error {
  explicit LiveLimit(const std::string& why) : std::length_error("whether every text can be finished takes too long to decide" + why) {}
};

// Another thread no longer wants the compile.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("the search was stopped") {}
};
// When searches of a compile end early.
struct Watch {
  std::atomic<bool> stop = false;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};
using WatchRef = std::shared_ptr<const Watch>;

class Live {
 public:
  // trie: nullptr where every byte is a token. watch: looked at until close().
  Live(const Tables& tables, Lexer& lexer, const TokenTrie* trie, WatchRef watch)
      : tables_(tables), lexer_(lexer), trie_(trie), watch_(std::move(watch)) {}

  // All that can follow the starts. Throws LiveLimit, Stopped; from close() on nothing does.
  void explore();
  void close() { closed_ = true; }
  // Guards under which, between tokens, every text can be finished: nothing is looked for behind them.
  void set_free(std::function<bool(Guards)> is_free) { is_free_ = std::move(is_free); }

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
  size_t done() const { return done_; }  // exits handed on, about

 private:
  static constexpr uint32_t kBoundary = 0xffffffffu;  // before a token; the only one without look-aheads (general tables)
  static constexpr uint32_t kBegin = 0xfffffffeu;     // before the first
  struct Point {
    uint32_t state, ahead;
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
  // What grows in lists may do so while they are gone through.
  struct Entry {
    Point point;
    std::vector<std::pair<Exit, uint32_t>> exits;
    std::unordered_map<Exit, uint32_t, Hash> exit_index;
    uint32_t accept = kNoCost;  // the text ends
    std::vector<std::pair<Reader, uint32_t>> readers;
    std::map<Reader, uint32_t> reader_index;
  };
  static constexpr uint32_t kFresh = 0xffffffffu, kAccept = 0xfffffffeu;
  struct Job {
    uint32_t cost, entry, exit;  // exit: an index, kFresh or kAccept
    bool operator>(const Job& o) const { return cost > o.cost; }
  };

  uint32_t entry(const Point& p);
  void run();
  void expand(uint32_t e);
  void expand_boundary(uint32_t e);
  void expand_ahead(uint32_t e);
  void look_at_watch();
  std::string blame() const;
  // Whether the text may end where a nonterminal has ended.
  bool ends_text(uint32_t ahead, Control c) const;
  void read(uint32_t from, const Reader& reader, uint32_t cost);
  void pass(const Exit& exit, uint32_t exit_cost, const Reader& reader, uint32_t cost);
  void improve(uint32_t e, const Exit& exit, uint32_t cost);
  void accept(uint32_t e, uint32_t cost);
  const Entry& settled(const Point& p);
  std::vector<LexState> lexers(uint32_t state, bool begin);

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
  std::priority_queue<Job, std::vector<Job>, std::greater<>> jobs_;
  size_t done_ = 0;
  bool closed_ = false;
  WatchRef watch_;
  uint32_t looks_ = 0;
  std::function<bool(Guards)> is_free_;
};

}  // namespace mw::lark
