// A lowered Lark grammar over the characters of a vocabulary.
#pragma once

#include <memory>
#include <optional>

#include "costs.h"

namespace mw::lark {

// The tokens of an Indenter.
struct Indents {
  bool on = false;
  Type newline = 0, indent = 0, dedent = 0;
  uint32_t tab = 8;
  std::vector<Type> open, close;
};

// What was found out about a grammar over all bytes when it was compiled first, in terms that outlast it.
struct Survey {
  bool known = false;
  int32_t rest_byte = -1;  // see Grammar
  struct Place {           // a state of the lexer: what it has read since it began with a part
    uint32_t part;         // index of a lexer; dynamic lexers: a terminal
    std::vector<uint8_t> bytes;
    uint32_t end;  // index of an end of a token there
  };
  bool rests_without_guards = false;
  std::vector<Place> rest, checked;
};

// As it comes from the front end; see grammar/lark/lowered.py.
struct Source {
  std::vector<Instr> code;
  std::vector<CodeRanges> classes;
  std::vector<int32_t> behinds;
  Lexer::Kind kind = Lexer::Kind::First;
  std::vector<LexerStart> lexers;
  std::vector<bool> ignored;
  Tables tables;
  Indents indents;
  Survey survey;
};

class Grammar {
 public:
  // trie: where some bytes are no tokens, the irreducible tokens. watch: until settle().
  Grammar(std::shared_ptr<const Source> source, const CodeRanges& lacking, const TokenTrie* trie, const WatchRef& watch);
  // Explores all that texts can lead to, so that nothing is left to be searched for in the middle of one. Throws LiveLimit,
  // Stopped; from then on nothing does.
  void settle();
  const Tables& tables() const { return source_->tables; }
  const Indents& indents() const { return source_->indents; }
  Lexer& lexer() { return lexer_; }
  // With guards as they are.
  Live& exact() { return exact_; }
  // Whether everything can be finished after some ignored text; then this byte is one, and frees (nearly) all guards.
  bool is_loose() const { return rest_byte_ >= 0; }
  uint8_t rest_byte() const { return static_cast<uint8_t>(rest_byte_); }
  bool is_rest(Guards g) const;
  // Of a loose grammar.
  LooseCosts& costs();
  bool is_empty();
  Survey survey();

 private:
  // A line end: its byte, and ignored text behind it.
  std::map<Type, LooseCosts::Sum> fixed_costs() const {
    if (!source_->indents.on) return {};
    return {{source_->indents.newline, LooseCosts::kLine + 2}, {source_->indents.indent, LooseCosts::kBlock}, {source_->indents.dedent, 0}};
  }

  std::shared_ptr<const Source> source_;
  Lexer lexer_;
  Live exact_;
  Guard replay(const Survey::Place& place);

  int rest_byte_ = -1;
  std::vector<Guards> rest_;   // behind ignored text, ascending
  std::vector<Guard> checked_;  // other guards of ignored text under which everything can be finished
  std::once_flag costs_once_;
  std::optional<LooseCosts> costs_;
};

// Finds a byte after which everything can be finished, by sufficient conditions: every lexer passes over it at any place;
// it frees the guards of all tokens; and behind it every token that the parser may want can be had, to be freed likewise.
// Then whatever the parser can still take, in a grammar without useless rules and resolved conflicts, can be spelled
// with that byte in between. -1: none found.
// rest: by lexer, the guards behind it.
int find_rest_byte(const Source& source, Lexer& lexer, Live& live, std::vector<Guards>& rest,
                   std::vector<Guard>& checked);
// The guards behind a rest byte, by lexer; kVoidGuards where it is not passed over.
std::vector<Guards> rest_behind(const Source& source, Lexer& lexer, uint8_t b);

}  // namespace mw::lark
