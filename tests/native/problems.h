// Random vocabularies with nasty merges, and random constraints over them, lowered when they are reached.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../src/core/automaton.h"
#include "../../src/core/machines/array.h"
#include "../../src/core/machines/choice.h"
#include "../../src/core/machines/object.h"
#include "../../src/core/machines/string.h"
#include "../../src/core/program.h"
#include "../../src/core/restrict.h"
#include "../../src/core/vocab.h"
#include "support.h"

namespace support {

// ---- vocabularies

inline const std::vector<std::string>& merges() {
  static const std::vector<std::string> list = {
      "{\"", "\":", "\": ", "\", \"", "\"}", "\"]", "},", "}}", "]]", "],[", "{}", "[]", "[[", "[{\"", "[1", "],\"", "\":{\"", "\",\"",
      "a\":1,\"", "a\":1,\"a\":", "\":1,\"b\":2}", "name\":", "na", "x\"}", "a\"", "ab\"", "a\",\"", "\"a", "\"ab\"", "\"a\":\"", "\"\"",
      "\"\",", "true", "tru", "false", "null", "1", "12", "-1", "0.", ".5", "1}", "1,", "1]", "ab", "aa", "aab", "abab", "aaaaaaaa", "aaab\"}",
      "  ", "   ", " \"", " :", " ,", "\n\n", "\n\n ", "\n  ", "\t\t", "\r\n", "\\", "\\\"", "\\n", "\\u00", "\\u0061", "\\u001", "\\ud83d",
      "\\ude00", "\\/", "\\\"}", "\\u0", "\xc3\xa9", "\xc3", "\xa9\"", "a\xc3", "\xe2\x82", "\xac\"", "\xf0\x9f", "\x98\x80", "\xf0\x9f\x98\x80",
      "\x80\xf0", "\xff", "\xed\xa0\x80", "\xc0\x80", "na\\\"me\":", "\"na\\\"", "\n                    ", "z\"]}", "\":[\"", "\"}]}",
  };
  return list;
}

struct TokenList {
  std::vector<std::string> tokens;
  std::vector<uint8_t> kinds;
  std::vector<mw::TokenId> eos;

  void add(const std::string& text, uint8_t kind = 0) {
    tokens.push_back(text);
    kinds.push_back(kind);
  }
  void add_eos(const std::string& text) {
    eos.push_back(static_cast<mw::TokenId>(tokens.size()));
    add(text);
  }
  std::shared_ptr<mw::Vocab> build() const { return std::make_shared<mw::Vocab>(tokens, kinds, eos); }
};

enum class Coverage {
  Complete,     // every byte
  Characters,   // lacks whole characters: see Vocab::is_character_closed
  Holes,        // lacks some bytes that the merges have
  Pieces,       // a few single bytes, the rest in tokens of several
};

inline std::string random_piece(Rng& rng) {
  std::string text;
  for (int64_t n = 2 + roll(rng, 2); n > 0; --n) text += pick(rng, merges());
  const auto from = static_cast<size_t>(roll(rng, static_cast<int64_t>(text.size())));
  return text.substr(from, static_cast<size_t>(1 + roll(rng, 12)));
}

inline void add_bytes(TokenList& list, Coverage coverage, Rng& rng) {
  const std::string needed = "{}[]:,\"";
  for (unsigned b = 0; b < 256; ++b) {
    const std::string one(1, static_cast<char>(b));
    const bool syntax = needed.find(one) != std::string::npos;
    const bool printable = b >= 0x20 && b < 0x7f;
    bool take = true;
    if (coverage == Coverage::Characters) take = printable || (b >= 0x80 && b < 0xc5) || b == '\n' || b == 0xe2;
    if (coverage == Coverage::Holes) take = (printable || b == '\n' || b >= 0xc3) && chance(rng, syntax ? 97 : 90);
    if (coverage == Coverage::Pieces) take = printable && chance(rng, syntax ? 70 : 25);
    if (take) list.add(one);
  }
}

// Whether no token of several bytes begins or ends inside a character.
inline bool is_whole(std::string_view text) {
  mw::Sub sub = 0;
  for (const char c : text) {
    const mw::Decoded d = mw::decode_utf8(sub, static_cast<uint8_t>(c));
    if (d.kind == mw::Decoded::Dead) return false;
    sub = d.kind == mw::Decoded::Partial ? d.value : 0;
  }
  return sub == 0;
}

// About `size` tokens besides the bytes: merges, pieces of texts, duplicates, special and empty ones, one or two EOS.
// plain: those of several bytes are whole characters.
inline TokenList random_tokens(Rng& rng, Coverage coverage, int size, bool plain = false) {
  TokenList list;
  add_bytes(list, coverage, rng);
  std::string known(256, '\0');
  for (const std::string& t : list.tokens) known[static_cast<uint8_t>(t[0])] = 1;
  for (int i = 0; i < size; ++i) {
    const std::string text = chance(rng, 40) ? pick(rng, merges()) : random_piece(rng);
    const bool spelled = std::all_of(text.begin(), text.end(), [&](char c) { return known[static_cast<uint8_t>(c)] != 0; });
    if ((coverage != Coverage::Characters || spelled) && (!plain || is_whole(text))) list.add(text);
    if (chance(rng, 3)) list.add(list.tokens[static_cast<size_t>(roll(rng, static_cast<int64_t>(list.tokens.size())))]);
    if (chance(rng, 1)) list.add("");
    if (chance(rng, 2)) list.add(pick(rng, merges()), 1);
  }
  list.add_eos(chance(rng, 30) ? "\"" : "<eos>");
  if (chance(rng, 30)) list.add_eos("");
  return list;
}

// ---- regexes

inline const std::vector<rx::Program>& regexes() {
  using namespace rx;
  static const Program az = chars({{'a', 'z'}});
  static const Program word = chars({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, {0xe9, 0xe9}});
  static const Program no_newline = chars({{0, 9}, {11, 0xd7ff}, {0xe000, 0x10ffff}});
  static const std::vector<Program> list = {
      rep(az, 1),
      cat({rep(az, 2, 4), rep(one('x'), 0, 1)}),
      rep(no_newline, 0),
      cat({one('a'), all(), one('b')}),
      cat({rep(alt({lit(U"ab"), lit(U"na")}), 0), rep(one('"'), 0, 1)}),
      cat({rep(word, 1, 3), one(0xe9)}),
      cat({rep(one('-'), 0, 1), alt({one('0'), cat({chars({{'1', '9'}}), digits(0)})}), rep(cat({one('.'), digits(1, 3)}), 0, 1)}),
      cat({all(), lit(U"ab"), all()}),
      both({cat({all(), one('a'), all()}), negate(cat({all(), one('b')}))}),
      rep(chars({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}}), 1, 2),
      rep(chars({{0x1f600, 0x1f60f}}), 1, 2),
      cat({digits(4, 4), one('-'), digits(2, 2)}),
      rep(cat({rep(az, 1), one(' ')}), 0, 3),
      cat({rep(az, 1, 300), one('.')}),
      alt({lit(U"a"), lit(U"é\""), lit(U"\n")}),
      rep(any(), 0, 3),
  };
  return list;
}

// Automata are shared by all programs, as those of the library are.
inline std::shared_ptr<mw::Automaton> automaton_over(const mw::Vocab& vocab, mw::Transport transport, const rx::Program& p) {
  static std::map<rx::Program, std::shared_ptr<mw::Automaton>> shared;
  auto& slot = shared[p];
  if (!slot) slot = std::make_shared<mw::Automaton>(rx::compile(p));
  std::string error;
  auto made = mw::restrict_automaton(slot, p, vocab, transport, &error);
  CHECK(made != nullptr, "%s", error.c_str());
  return made;
}

// ---- programs

// A random constraint. Node n is drawn from the seed and n alone, so that it is the same whenever it is reached.
class RandomProgram {
 public:
  RandomProgram(uint32_t seed, std::shared_ptr<mw::Vocab> vocab) : seed_(seed), vocab_(std::move(vocab)) {
    Rng rng(seed_);
    program_ = std::make_shared<mw::Program>(vocab_, pick(rng, std::vector{mw::Whitespace::Compact, mw::Whitespace::Bounded, mw::Whitespace::Any}));
    any_escapes_ = chance(rng, 50);
    simple_root_ = chance(rng, 15);
    new_node(0);
  }
  const std::shared_ptr<mw::Program>& program() const { return program_; }

  void lower(const std::vector<mw::NodeId>& needs) {
    for (const mw::NodeId n : needs)
      if (!program_->is_defined(n)) define(n);
  }
  // Defines all nodes.
  void lower_all() {
    for (mw::NodeId n = 0; program_->is_node(n); ++n) lower({n});
  }
  // A constraint without a stack: what its closing costs say is exact.
  bool is_regular() const { return simple_root_; }

 private:
  mw::NodeId new_node(int depth) {
    depths_.push_back(depth);
    return program_->new_node();
  }
  template <class M, class... Args>
  void machine(mw::NodeId n, Args&&... args) {
    auto made = std::make_unique<M>(std::forward<Args>(args)...);
    if constexpr (requires(const M& m) { m.start(); }) {
      const mw::State start = made->start();
      program_->define_machine(n, std::move(made), start);
    }
  }

  mw::Transport transport() const { return any_escapes_ ? mw::Transport::JsonAny : mw::Transport::JsonMinimal; }

  void define(mw::NodeId n) {
    Rng rng(seed_ * 7919 + static_cast<uint32_t>(n) * 104729 + 1);
    const int depth = depths_[static_cast<size_t>(n)];
    const int64_t kind = simple_root_ && n == 0 ? roll(rng, 2) : roll(rng, depth == 0 ? 2 : 100);
    if (simple_root_ && n == 0) return kind == 0 ? choice(n, rng) : raw_regex(n, rng);
    program_->uses_json();
    if (depth == 0) return kind == 0 ? object(n, rng, depth) : array(n, rng, depth);
    if (depth < 3 && kind < 30) return object(n, rng, depth);
    if (depth < 3 && kind < 45) return array(n, rng, depth);
    if (depth < 3 && kind < 55) return members(n, rng, depth);
    switch (kind % 6) {
      case 0: return machine<mw::StringMachine>(n, 0u, mw::StringMachine::kNoMax, any_escapes_);
      case 1: return bounded_string(n, rng);
      case 2: return raw_regex(n, rng, 6);
      case 3: return choice(n, rng, true);
      case 4: return choice_string(n, rng);
      default: return regex_string(n, rng);
    }
  }

  void choice(mw::NodeId n, Rng& rng, bool literals = false) {
    static const std::vector<std::string> words = {"ab", "abab", "a", "na", "name", "\xc3\xa9t", "\xf0\x9f\x98\x80", "tru", "true", "1", "12", "{\"a\":1}"};
    std::vector<std::string> texts = literals ? std::vector<std::string>{"true", "false", "null"} : std::vector<std::string>{"na"};
    for (int64_t k = literals ? 0 : roll(rng, 4); k > 0; --k) texts.push_back(pick(rng, words));
    machine<mw::ChoiceMachine>(n, mw::restrict_texts(texts, *vocab_, mw::Transport::Raw), *vocab_);
  }
  void choice_string(mw::NodeId n, Rng& rng) {
    static const std::vector<std::string> words = {"ab", "a", "na\"me", "\xc3\xa9t", "", "\n", "\\", "\x01x", "\xf0\x9f\x98\x80", "abab", "aa"};
    std::vector<std::string> texts{"ab"};
    for (int64_t k = roll(rng, 5); k > 0; --k) texts.push_back(pick(rng, words));
    machine<mw::ChoiceStringMachine>(n, mw::restrict_texts(texts, *vocab_, transport()), any_escapes_, *vocab_);
  }
  void bounded_string(mw::NodeId n, Rng& rng) {
    const auto lo = static_cast<uint64_t>(roll(rng, 4)), hi = lo + static_cast<uint64_t>(roll(rng, 5));
    machine<mw::StringMachine>(n, lo, chance(rng, 30) ? mw::StringMachine::kNoMax : hi, any_escapes_);
  }
  // Numbers, where raw text stands inside JSON: everything else would be taken for syntax.
  void raw_regex(mw::NodeId n, Rng& rng, int number = -1) {
    const rx::Program& p = number >= 0 ? regexes()[static_cast<size_t>(number)] : pick(rng, regexes());
    machine<mw::RegexMachine>(n, automaton_over(*vocab_, mw::Transport::Raw, p), *vocab_);
  }
  void regex_string(mw::NodeId n, Rng& rng) {
    machine<mw::RegexStringMachine>(n, automaton_over(*vocab_, transport(), pick(rng, regexes())), any_escapes_, *vocab_);
  }
  void object(mw::NodeId n, Rng& rng, int depth) {
    std::vector<std::string> names = {"a", "b", "ab", "name", "na", "\xc3\xa9", "x", "na\"me", "", "aab"};
    std::shuffle(names.begin(), names.end(), rng);
    names.resize(static_cast<size_t>(roll(rng, 5)));
    mw::ObjectSpec spec;
    for (size_t i = 0; i < names.size(); ++i) {
      spec.children.push_back(chance(rng, 85) ? new_node(depth + 1) : mw::kNoChild);
      spec.required.push_back(spec.children.back() != mw::kNoChild && chance(rng, 40));
    }
    spec.names = std::move(names);
    spec.additional = chance(rng, 50) ? new_node(depth + 1) : mw::kNoChild;
    spec.any_order = chance(rng, 50);
    spec.any_escapes = any_escapes_;
    mw::restrict_names(spec, *vocab_);
    machine<mw::ObjectMachine>(n, std::move(spec), program_->whitespace(), *vocab_);
  }
  void array(mw::NodeId n, Rng& rng, int depth) {
    std::vector<mw::NodeId> prefix;
    for (int64_t k = roll(rng, 3); k > 0; --k) prefix.push_back(new_node(depth + 1));
    const auto least = static_cast<uint64_t>(roll(rng, 3));
    const mw::NodeId items = chance(rng, 80) || least > prefix.size() ? new_node(depth + 1) : mw::kNoChild;
    const uint64_t most = chance(rng, 40) ? mw::ArrayMachine::kNoMax : least + static_cast<uint64_t>(roll(rng, 3));
    machine<mw::ArrayMachine>(n, std::move(prefix), items, least, most, program_->whitespace());
  }
  void members(mw::NodeId n, Rng& rng, int depth) {
    std::vector<mw::NodeId> nodes;
    for (int64_t k = 1 + roll(rng, 3); k > 0; --k) nodes.push_back(new_node(depth + 1));
    program_->define_union(n, std::move(nodes));
  }

  uint32_t seed_;
  std::shared_ptr<mw::Vocab> vocab_;
  std::shared_ptr<mw::Program> program_;
  std::vector<int> depths_;
  bool any_escapes_ = false, simple_root_ = false;
};

}  // namespace support
