#include "source.h"

#include <stdexcept>

namespace mw::lark {
namespace {

class Reader {
 public:
  explicit Reader(std::span<const int32_t> words) : words_(words) {}
  int32_t next() {
    if (at_ >= words_.size()) throw std::invalid_argument("it ends too early");
    return words_[at_++];
  }
  // A number below a bound.
  uint32_t below(size_t bound) {
    const int32_t v = next();
    if (v < 0 || static_cast<size_t>(v) >= bound) throw std::invalid_argument("a number is out of range");
    return static_cast<uint32_t>(v);
  }
  uint32_t count() { return below(words_.size() - at_ + 1); }
  bool at_end() const { return at_ == words_.size(); }

 private:
  std::span<const int32_t> words_;
  size_t at_ = 0;
};

void read_code(Reader& in, Source& out) {
  const uint32_t n = in.count();
  for (uint32_t i = 0; i < n; ++i) {
    Instr x{};
    x.op = static_cast<Op>(in.below(10));
    x.a = in.next();
    x.b = in.next();
    out.code.push_back(x);
  }
  const uint32_t classes = in.count();
  for (uint32_t i = 0; i < classes; ++i) {
    auto& ranges = out.classes.emplace_back();
    for (uint32_t k = in.count(); k > 0; --k) {
      const uint32_t lo = in.below(kSpecials + 256), hi = in.below(kSpecials + 256);
      if (lo > hi || (lo < kSpecials && hi >= kSpecials)) throw std::invalid_argument("a range is empty");
      ranges.push_back({lo, hi});
    }
  }
  const uint32_t behinds = in.count();
  if (behinds > 64) throw std::invalid_argument("too many lookbehinds");
  for (uint32_t i = 0; i < behinds; ++i) out.behinds.push_back(static_cast<int32_t>(in.below(n)));
}

void check_code(const Source& s, size_t terminals, size_t words) {
  const auto n = static_cast<int32_t>(s.code.size());
  const auto target = [&](int32_t pc) {
    if (pc < 0 || pc >= n) throw std::invalid_argument("a jump is out of range");
  };
  for (int32_t i = 0; i < n; ++i) {
    const Instr& x = s.code[static_cast<size_t>(i)];
    if (x.op != Op::Match && x.op != Op::Jump && x.op != Op::Split) target(i + 1);
    if (x.op == Op::Split || x.op == Op::Jump || x.op == Op::Ahead) target(x.a);
    if (x.op == Op::Split || x.op == Op::LoopEnd) target(x.b);
    const auto a = static_cast<size_t>(x.a);
    if (x.op == Op::Char && a >= s.classes.size()) throw std::invalid_argument("no such class");
    if (x.op == Op::Match && a >= std::max(terminals, words)) throw std::invalid_argument("no such terminal");
    if (x.op == Op::Behind && a >= s.behinds.size()) throw std::invalid_argument("no such lookbehind");
    if ((x.op == Op::LoopIn || x.op == Op::LoopEnd) && a >= 64) throw std::invalid_argument("no such loop");
  }
}

size_t read_lexers(Reader& in, Source& out) {
  out.kind = static_cast<Lexer::Kind>(in.below(3));
  size_t words = 0;
  for (uint32_t n = in.count(); n > 0; --n) {
    LexerStart& start = out.lexers.emplace_back();
    for (uint32_t k = in.count(); k > 0; --k) start.programs.push_back(in.below(out.code.size()));
    for (uint32_t k = in.count(); k > 0; --k) start.words.push_back(in.below(out.code.size()));
    for (uint32_t k = in.count(); k > 0; --k) {
      const uint32_t regex = in.count(), word = in.count(), type = in.count();
      start.unless.push_back({regex, word, type});
      words = std::max<size_t>(words, word + 1);
    }
  }
  for (uint32_t n = in.count(); n > 0; --n) out.ignored.push_back(in.below(2) != 0);
  for (const LexerStart& start : out.lexers)
    for (const auto& u : start.unless)
      if (u.type >= out.ignored.size() || u.regex >= out.ignored.size()) throw std::invalid_argument("no such terminal");
  return words;
}

void read_actions(Reader& in, Tables& t) {
  t.action.assign(size_t{t.states} * (t.terminals + 1), 0);
  t.go.assign(size_t{t.states} * t.nonterminals, -1);
  for (uint32_t s = 0; s < t.states; ++s) {
    for (uint32_t k = in.count(); k > 0; --k) {
      const uint32_t x = in.below(t.terminals + 1);
      const int32_t a = in.next();
      const bool good = a > 0 ? static_cast<uint32_t>(a) <= t.states : a < 0 && static_cast<size_t>(-int64_t{a}) <= t.rules.size();
      if (!good || (a < 0 && t.general)) throw std::invalid_argument("no such action");
      t.action[size_t{s} * (t.terminals + 1) + x] = a;
    }
    for (uint32_t k = in.count(); k > 0; --k) {
      const uint32_t a = in.below(t.nonterminals);
      t.go[size_t{s} * t.nonterminals + a] = static_cast<int32_t>(in.below(t.states));
    }
  }
}

void read_tables(Reader& in, Source& source) {
  Tables& t = source.tables;
  t.terminals = static_cast<uint32_t>(source.ignored.size());
  t.states = in.below(1u << 20);
  t.nonterminals = in.below(1u << 20);
  t.general = in.below(2) != 0;
  t.reduced = in.below(2) != 0;
  if (size_t{t.states} * (t.terminals + t.nonterminals + 1) > (size_t{1} << 28)) throw std::invalid_argument("it is too large");
  for (uint32_t n = in.count(); n > 0; --n) {
    const uint32_t lhs = in.below(t.nonterminals);
    auto& rule = t.rules.emplace_back(Tables::Rule{lhs, in.count(), {}});
    for (uint32_t i = 0; i < rule.length; ++i) rule.body.push_back(in.below(size_t{t.terminals} + t.nonterminals));
  }
  read_actions(in, t);
  if (t.general) {
    t.shifts.assign(t.states * t.words(), 0);
    for (uint32_t s = 0; s < t.states; ++s)
      for (uint32_t x = 0; x < t.terminals; ++x)
        if (t.at(s, x) > 0) t.shifts[s * t.words() + x / 64] |= uint64_t{1} << (x % 64);
    t.reduces.resize(t.states);
    for (auto& list : t.reduces)
      for (uint32_t k = in.count(); k > 0; --k) {
        list.push_back(in.below(t.rules.size()));
        if (t.rules[list.back()].length == 0) throw std::invalid_argument("an empty rule");
      }
    t.follow.assign(t.nonterminals, std::vector<uint64_t>(t.terminals / 64 + 1, 0));
    for (auto& bits : t.follow)
      for (uint32_t k = in.count(); k > 0; --k) {
        const uint32_t x = in.below(t.terminals + 1);
        bits[x / 64] |= uint64_t{1} << (x % 64);
      }
  }
  for (uint32_t n = in.count(); n > 0; --n) {
    const uint32_t state = in.below(t.states), end = in.below(t.states);
    const int32_t empty = in.next();
    if (empty >= static_cast<int32_t>(t.states)) throw std::invalid_argument("no such state");
    t.starts.push_back({state, end, empty});
  }
  for (uint32_t n = in.count(); n > 0; --n) t.lexer_of.push_back(in.below(source.lexers.size()));
  const bool contextual = source.kind == Lexer::Kind::First && !t.general;
  if (t.starts.empty() || source.lexers.empty() || t.lexer_of.size() != (contextual ? t.states : 0)) throw std::invalid_argument("parts are missing");
  if (source.kind != Lexer::Kind::First && (!t.general || source.lexers[0].programs.size() != t.terminals)) throw std::invalid_argument("parts do not fit");
}

void read_indents(Reader& in, Source& source) {
  Indents& x = source.indents;
  x.on = in.below(2) != 0;
  if (!x.on) return;
  const size_t n = source.ignored.size();
  x.newline = in.below(n);
  x.indent = in.below(n);
  x.dedent = in.below(n);
  x.tab = in.below(1u << 16);
  for (auto* list : {&x.open, &x.close})
    for (uint32_t k = in.count(); k > 0; --k) list->push_back(in.below(n));
  if (source.kind != Lexer::Kind::First || x.tab == 0) throw std::invalid_argument("no such indentation");
}

std::vector<Survey::Place> read_places(Reader& in) {
  std::vector<Survey::Place> out;
  for (uint32_t n = in.count(); n > 0; --n) {
    Survey::Place& place = out.emplace_back();
    place.part = in.below(1u << 20);
    place.end = in.below(1u << 20);
    for (uint32_t k = in.count(); k > 0; --k) place.bytes.push_back(static_cast<uint8_t>(in.below(256)));
  }
  return out;
}

void read_survey(Reader& in, Survey& survey) {
  survey.known = in.below(2) != 0;
  if (!survey.known) return;
  survey.rest_byte = static_cast<int32_t>(in.below(257)) - 1;
  survey.rests_without_guards = in.below(2) != 0;
  survey.rest = read_places(in);
  survey.checked = read_places(in);
}

void write_places(const std::vector<Survey::Place>& places, std::vector<int32_t>& out) {
  out.push_back(static_cast<int32_t>(places.size()));
  for (const auto& place : places) {
    for (const size_t n : {size_t{place.part}, size_t{place.end}, place.bytes.size()}) out.push_back(static_cast<int32_t>(n));
    out.insert(out.end(), place.bytes.begin(), place.bytes.end());
  }
}

}  // namespace

std::vector<int32_t> write_survey(const Survey& survey) {
  if (!survey.known) return {0};
  std::vector<int32_t> out{1, survey.rest_byte + 1, survey.rests_without_guards ? 1 : 0};
  write_places(survey.rest, out);
  write_places(survey.checked, out);
  return out;
}

std::shared_ptr<const Source> read_source(std::span<const int32_t> words, std::string* error) {
  try {
    auto source = std::make_shared<Source>();
    Reader in(words);
    if (in.next() != kSourceVersion) throw std::invalid_argument("it is of another version");
    read_code(in, *source);
    const size_t unless = read_lexers(in, *source);
    read_tables(in, *source);
    read_indents(in, *source);
    read_survey(in, source->survey);
    check_code(*source, source->ignored.size(), unless);
    if (!in.at_end()) throw std::invalid_argument("it goes on too long");
    return source;
  } catch (const std::invalid_argument& e) {
    *error = std::string("the lowered grammar is damaged: ") + e.what();
    return nullptr;
  }
}

}  // namespace mw::lark
