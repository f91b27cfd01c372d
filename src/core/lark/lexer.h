// Lexers as lazy automata over bytes, and guards: that a longer or better match must not follow.
//
// A lexer state is a list of threads for the whole ordered alternation of terminals (basic and contextual lexers), or one
// for each terminal (dynamic lexers). Each list is cut behind its first match, so that the engine's choice among the
// matches of one list is the last one met. That a token ends here is therefore a claim about the text to come: the threads
// before the match must not match. Such claims are guards, automata of the same kind that run on beside the next tokens.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "../intern.h"
#include "../stable_vector.h"
#include "threads.h"

namespace mw::lark {

using LexState = uint32_t;  // 0 = dead
using Guard = uint32_t;     // one guard; kFree, kVoid
using Guards = uint32_t;    // an interned set of them; 0 = none
using Type = uint32_t;      // a terminal
inline constexpr Guard kFree = 0, kVoid = 0xffffffffu;
inline constexpr Type kNoType = 0xffffffffu;
inline constexpr Guards kNoGuards = 0, kVoidGuards = 0xffffffffu;

// A token may end here. `ignore`: it may be passed over; `feed`: it may be handed to the parser.
struct TokenEnd {
  Type type;
  Guard guard;
  bool ignore, feed;
};

struct LexerStart {
  std::vector<uint32_t> programs;  // in order of preference
  std::vector<uint32_t> words;     // programs of strings that a regex also matches, their Match names an entry of `unless`
  struct Unless {
    Type regex;
    uint32_t word;  // index into `words`
    Type type;
  };
  std::vector<Unless> unless;  // in lark's order
};

class Lexer {
 public:
  enum class Kind : int { First, Each, Every };  // see start(); Every: each terminal may end wherever it matches
  Lexer(Code code, Kind kind, std::vector<LexerStart> starts, std::vector<bool> ignored);
  Lexer(const Lexer&) = delete;
  Lexer& operator=(const Lexer&) = delete;

  const Code& code() const { return code_; }
  Kind kind() const { return kind_; }
  bool ignores(Type t) const { return ignored_[t]; }
  size_t type_count() const { return ignored_.size(); }

  // The state before a token. First: one list of all programs; else one list each. begin: at the start of the text.
  LexState start(uint32_t lexer, bool begin = false);
  // Each, Every: for a set of terminals, as a bit per program of lexer 0.
  LexState start(const std::vector<uint64_t>& terminals, bool begin = false);
  // Nothing of a token was read.
  bool is_between(LexState s) const { return s == 0 || states_[s].key->fresh; }
  // Each, Every: of one terminal alone.
  LexState start_of(Type t);
  // States whose ends together are those of a state: each of one terminal, where terminals are read by themselves.
  const std::vector<LexState>& parts(LexState s) {
    const auto* known = states_[s].parts.load(std::memory_order_acquire);
    return known != nullptr ? *known : make_parts(s);
  }
  LexState next(LexState s, uint8_t b) {
    const uint32_t known = states_[s].row[code_.class_of(b)].load(std::memory_order_acquire);
    return known != kUnknown ? known : make_next(s, code_.class_of(b));
  }
  const std::vector<TokenEnd>& ends(LexState s) const { return states_[s].ends; }
  bool more(LexState s) const { return states_[s].more; }
  // What may come of the token in progress, guards aside.
  struct Reach {
    std::vector<Type> types;  // that may be fed to the parser, those nearest first
    bool passes = false;      // it may be passed over
    bool passes_freely = false;  // with nothing left to be seen to behind it; see rest()
    bool newline = false;        // it may become the token that ends lines
  };
  // The token that ends lines, for indentation; and how wide a tab is.
  void set_newline(Type newline, uint32_t tab) {
    newline_ = newline;
    tab_ = static_cast<int32_t>(tab);
  }
  // A byte after which everything can be finished, and guards under which it can too; before the first reach().
  void set_rest(uint8_t byte, std::vector<Guard> checked) {
    rest_byte_ = byte;
    checked_ = std::move(checked);
  }
  // The column behind a byte of a token that may end a line: -1 before its first line end.
  int32_t column(LexState q, int32_t before, uint8_t b) {
    if (newline_ == kNoType || !states_[q].newline) return -1;
    if (b == '\n') return 0;
    return before < 0 ? before : before + (b == ' ' ? 1 : b == '\t' ? tab_ : 0);
  }
  bool has_newline() const { return newline_ != kNoType; }
  bool is_newline(Type t) const { return has_newline() && t == newline_; }
  const Reach& reach(LexState s) {
    const Reach* known = states_[s].reach.load(std::memory_order_acquire);
    return known != nullptr ? *known : make_reach(s);
  }

  bool frees(Guard g);
  Guard next_guard(Guard g, uint8_t b) {
    const uint32_t known = guards_[g].row[code_.class_of(b)].load(std::memory_order_acquire);
    return known != kUnknown ? known : make_next_guard(g, code_.class_of(b));
  }
  Guards next_guards(Guards s, uint8_t b) {
    if (s == kNoGuards) return s;
    const uint32_t known = sets_[s].row[code_.class_of(b)].load(std::memory_order_acquire);
    return known != kUnknown ? known : make_next_guards(s, code_.class_of(b));
  }
  Guards with(Guards s, Guard g);
  Guard only(Guards s) const { return sets_[s].members.front(); }  // of a set of one
  bool may_end(Guards s) const { return sets_[s].may_end; }
  // The two terminals of the claims that occur most: one that ended, and one that could have gone on.
  std::pair<Type, Type> most_guarded() const;
  size_t state_count() const { return states_.size(); }
  size_t guard_count() const { return guards_.size(); }
  size_t guards_count() const { return sets_.size(); }

 private:
  static constexpr uint32_t kUnknown = 0xfffffffeu;
  using Row = std::unique_ptr<std::atomic<uint32_t>[]>;
  struct Key {
    std::vector<Threads> lists;
    Threads words;
    uint32_t lexer = 0;  // whose words these are
    Trackers trackers;
    bool fresh = false;  // nothing of the token was read: between tokens, though a loop may lead to the same threads
    auto operator<=>(const Key&) const = default;
  };
  struct GuardKey {
    Threads threads;  // must not match
    uint32_t open = 0;  // lookaheads of the match itself: must hold
    Trackers trackers;
    auto operator<=>(const GuardKey&) const = default;
  };
  struct State {
    Row row;
    std::vector<TokenEnd> ends;
    bool more = false;
    bool newline = false;  // some thread is one of the token that ends lines
    const Key* key = nullptr;
    std::atomic<const Reach*> reach{nullptr};
    std::atomic<const std::vector<LexState>*> parts{nullptr};
  };
  struct HashKey {
    size_t operator()(const Key& key) const;
    size_t operator()(const GuardKey& key) const;
  };
  struct GuardState {
    Row row;
    bool may_end = true;
    const GuardKey* key = nullptr;
    int8_t possible = -1;  // some text does not break it
    Type ended = kNoType, longer = kNoType;  // what it was first made for
  };
  struct GuardSet {
    Row row;
    bool may_end = true;
    std::vector<Guard> members;
  };
  LexState start_locked(std::span<const uint32_t> programs, std::span<const uint32_t> words, uint32_t lexer, bool begin);
  bool may_read(const Threads& list, uint8_t b) const;
  LexState make_next(LexState s, uint32_t c);
  LexState make_next_of_parts(LexState s, uint32_t c);
  class Reaches;
  const Reach& make_reach(LexState s);
  const Reach* publish(std::span<const LexState> states, Reach made);
  const std::vector<LexState>& make_parts(LexState s);
  Guard make_next_guard(Guard g, uint32_t c);
  Guard step_guard(Guard g, uint32_t c);
  bool is_possible(Guard g);
  Guards make_next_guards(Guards s, uint32_t c);
  bool implies(Guard a, Guard b);
  bool find_implies(Guard a, Guard b);
  LexState intern(Key key);
  Guard intern(GuardKey key);
  Guards intern(std::vector<Guard> members);
  void find_ends(State& state, const Key& key);
  Type type_of(const Key& key, Type t) const;
  Row new_row() const;
  uint64_t asks(const Threads& threads) const;

  Type newline_ = kNoType;
  int32_t tab_ = 8;
  int rest_byte_ = -1;
  std::vector<Guard> checked_;
  Code code_;
  Kind kind_;
  std::vector<LexerStart> starts_;
  std::vector<bool> ignored_;
  std::mutex mutex_;
  Lookaheads aheads_;
  StableVector<State> states_;
  StableVector<GuardState> guards_;
  StableVector<GuardSet> sets_;
  std::unordered_map<Key, LexState, HashKey> state_index_;
  std::unordered_map<GuardKey, Guard, HashKey> guard_index_;
  std::map<std::vector<Guard>, Guards> set_index_;
  std::map<std::pair<Guards, Guard>, Guards> with_;
  std::map<std::pair<Guard, Guard>, bool> implies_;
  std::deque<Reach> reaches_;
  std::map<std::pair<std::vector<Type>, int>, const Reach*> reach_index_;
  std::deque<std::vector<LexState>> parts_;
  std::vector<LexState> start_memo_[2];  // the second at the start of the text
  std::map<std::vector<uint64_t>, LexState> subset_memo_[2];
  std::unordered_map<uint32_t, LexState> single_starts_[2];  // by program
};

}  // namespace mw::lark
