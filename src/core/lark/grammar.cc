#include "grammar.h"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace mw::lark {
namespace {

constexpr size_t kMaxSurvey = 100'000;  // states of the lexer

// The parts of the lexer that are looked at one by one, with the types that are wanted of each.
struct Part {
  LexState start;
  uint32_t lexer;  // index of its rest guards
  std::vector<Type> wanted;
  std::vector<TokenEnd> ends;
};

std::vector<Part> parts_of(const Source& source, Lexer& lexer) {
  const Tables& t = source.tables;
  std::vector<Part> parts;
  std::vector<std::set<Type>> wanted(std::max<size_t>(source.lexers.size(), 1));
  for (uint32_t s = 0; s < t.states; ++s)
    for (Type x = 0; x < t.terminals; ++x)
      if (t.acts(s, x)) wanted[t.lexer_of.empty() ? 0 : t.lexer_of[s]].insert(x);
  if (lexer.kind() == Lexer::Kind::First) {
    for (uint32_t i = 0; i < source.lexers.size(); ++i) parts.push_back({lexer.start(i), i, {wanted[i].begin(), wanted[i].end()}, {}});
    return parts;
  }
  for (Type x = 0; x < t.terminals; ++x) {
    if (!lexer.ignores(x) && !wanted[0].contains(x)) continue;
    std::vector<uint64_t> one((t.terminals + 63) / 64, 0);
    one[x / 64] |= uint64_t{1} << (x % 64);
    parts.push_back({lexer.start(one), 0, {}, {}});
    if (wanted[0].contains(x)) parts.back().wanted = {x};
  }
  return parts;
}

bool find_ends(Lexer& lexer, Part& part) {
  std::vector<LexState> stack{part.start};
  std::set<LexState> seen{part.start};
  std::set<std::tuple<Type, Guard, bool>> ends;
  while (!stack.empty()) {
    const LexState at = stack.back();
    stack.pop_back();
    for (const TokenEnd& e : lexer.ends(at))
      if (ends.insert({e.type, e.guard, e.ignore}).second) part.ends.push_back(e);
    for (uint32_t c = 0; c < lexer.code().class_count(); ++c) {
      const LexState to = lexer.next(at, lexer.code().byte_of(c));
      if (to != 0 && seen.insert(to).second) stack.push_back(to);
    }
    if (seen.size() > kMaxSurvey) return false;
  }
  return true;
}

// Lexers that are used only at the start of a text that may be empty, where nothing has to be passed over.
std::vector<bool> lexers_at_start(const Source& source) {
  std::vector<bool> at_start(std::max<size_t>(source.lexers.size(), 1), false);
  const Tables& t = source.tables;
  if (t.general || t.lexer_of.empty()) return at_start;
  for (const auto& start : t.starts)
    if (t.at(start.state, t.terminals) != 0) at_start[t.lexer_of[start.state]] = true;
  for (uint32_t s = 0; s < t.states; ++s)
    if (std::none_of(t.starts.begin(), t.starts.end(), [&](const auto& start) { return start.state == s; }))
      at_start[t.lexer_of[s]] = false;
  return at_start;
}

uint32_t part_count(const Source& source) {
  return static_cast<uint32_t>(source.kind == Lexer::Kind::First ? source.lexers.size() : source.ignored.size());
}

LexState part_start(const Source& source, Lexer& lexer, uint32_t part) {
  return source.kind == Lexer::Kind::First ? lexer.start(part) : lexer.start_of(part);
}

// The way to an end of ignored text with some guard, from a part. False: there is none.
bool find_place(const Source& source, Lexer& lexer, Guard wanted, Survey::Place& place) {
  std::vector<std::pair<LexState, std::vector<uint8_t>>> work{{part_start(source, lexer, place.part), {}}};
  std::set<LexState> seen{work[0].first};
  for (size_t i = 0; i < work.size(); ++i) {
    const auto [at, bytes] = work[i];
    const auto& ends = lexer.ends(at);
    for (uint32_t k = 0; k < ends.size(); ++k)
      if (ends[k].ignore && ends[k].guard == wanted) {
        place.bytes = bytes;
        place.end = k;
        return true;
      }
    for (uint32_t c = 0; c < lexer.code().class_count(); ++c) {
      const LexState to = lexer.next(at, lexer.code().byte_of(c));
      if (to == 0 || !seen.insert(to).second) continue;
      work.push_back({to, bytes});
      work.back().second.push_back(lexer.code().byte_of(c));
    }
  }
  return false;
}

}  // namespace

std::vector<Guards> rest_behind(const Source& source, Lexer& lexer, uint8_t b) {
  std::vector<Guards> found(std::max<size_t>(source.lexers.size(), 1), kVoidGuards);
  const bool first = source.kind == Lexer::Kind::First;
  for (uint32_t part = 0; part < part_count(source); ++part)
    for (const TokenEnd& e : lexer.ends(lexer.next(part_start(source, lexer, part), b)))
      if (Guards& slot = found[first ? part : 0]; e.ignore && slot == kVoidGuards) slot = lexer.with(kNoGuards, e.guard);
  const std::vector<bool> at_start = lexers_at_start(source);
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] == kVoidGuards && at_start[i]) found[i] = kNoGuards;
  return found;
}

int find_rest_byte(const Source& source, Lexer& lexer, Live& live, std::vector<Guards>& rest, std::vector<Guard>& checked) {
  const bool ignores = std::find(source.ignored.begin(), source.ignored.end(), true) != source.ignored.end();
  // What may stand at the start alone is had nowhere else.
  if (!source.tables.reduced || !ignores || lexer.code().is_anchored()) return -1;
  const Indents& indents = source.indents;
  std::vector<Part> parts = parts_of(source, lexer);
  for (Part& part : parts) {
    if (!find_ends(lexer, part)) return -1;
    if (indents.on) std::erase_if(part.wanted, [&](Type t) { return t == indents.indent || t == indents.dedent; });
  }
  const auto is_newline = [&](const TokenEnd& e) { return indents.on && e.feed && e.type == indents.newline; };
  std::set<Guards> good_lines;  // behind a line end, where all else can be had
  const auto can_have_all = [&](const Part& part, Guards before, uint8_t b, bool newline) {
    if (!lexer.may_end(before)) return false;
    std::set<Type> had;
    for (const auto& o : live.outcomes(part.start, live.control(before)))
      if (o.feed && (lexer.next_guards(live.guards(o.control), b) == kNoGuards ||
                     (indents.on && o.type == indents.newline && good_lines.contains(live.guards(o.control)))))
        had.insert(o.type);
    if (indents.on && !newline) had.insert(indents.newline);
    return std::includes(had.begin(), had.end(), part.wanted.begin(), part.wanted.end());
  };
  const auto suits_end = [&](const Part& part, const TokenEnd& e, uint8_t b) {
    if (lexer.next_guard(e.guard, b) == kFree) return true;
    if (is_newline(e)) return true;  // looked at by themselves, each with its column
    if (!e.ignore) return false;
    const Guards guards = lexer.with(kNoGuards, e.guard);
    const bool all = std::all_of(parts.begin(), parts.end(), [&](const Part& other) {
      return (!indents.on && other.lexer != part.lexer) || can_have_all(other, guards, b, true);
    });
    if (all) checked.push_back(e.guard);
    return all || indents.on;
  };
  const auto suits = [&](uint8_t b) {
    rest = rest_behind(source, lexer, b);
    checked.clear();
    good_lines.clear();
    // The parser does not want another line end at once there (grammar/lark/indents.py).
    for (const Part& part : parts)
      for (const TokenEnd& e : part.ends) {
        const Guards guards = lexer.with(kNoGuards, e.guard);
        if (!is_newline(e) || good_lines.contains(guards)) continue;
        if (std::all_of(parts.begin(), parts.end(), [&](const Part& p) { return can_have_all(p, guards, b, false); })) good_lines.insert(guards);
      }
    for (const Part& part : parts)
      if (!can_have_all(part, rest[part.lexer], b, true)) return false;
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      return std::all_of(part.ends.begin(), part.ends.end(), [&](const TokenEnd& e) { return suits_end(part, e, b); });
    });
  };
  for (uint32_t c = 0; c < lexer.code().class_count(); ++c) {
    const uint8_t b = lexer.code().byte_of(c);
    const std::vector<Guards> found = rest_behind(source, lexer, b);
    if (b < 0x80 && std::find(found.begin(), found.end(), kVoidGuards) == found.end() && suits(b)) return b;
  }
  rest.clear();
  return -1;
}

Grammar::Grammar(std::shared_ptr<const Source> source, const CodeRanges& lacking, const TokenTrie* trie, const WatchRef& watch)
    : source_(std::move(source)), lexer_(Code(source_->code, source_->classes, source_->behinds, lacking), source_->kind, source_->lexers, source_->ignored),
      exact_(source_->tables, lexer_, trie, watch) {
  if (source_->indents.on) lexer_.set_newline(source_->indents.newline, source_->indents.tab);
  if (trie != nullptr) return;
  if (const Survey& known = source_->survey; known.known && lacking.empty()) {
    rest_byte_ = known.rest_byte;
    if (known.rests_without_guards) rest_.push_back(kNoGuards);
    for (const auto& place : known.rest) rest_.push_back(lexer_.with(kNoGuards, replay(place)));
    for (const auto& place : known.checked) checked_.push_back(replay(place));
  } else {
    rest_byte_ = find_rest_byte(*source_, lexer_, exact_, rest_, checked_);
  }
  std::sort(rest_.begin(), rest_.end());
  rest_.erase(std::unique(rest_.begin(), rest_.end()), rest_.end());
  if (rest_byte_ < 0) return;
  lexer_.set_rest(rest_byte(), checked_);
  exact_.set_free([this](Guards g) { return is_rest(g) || lexer_.next_guards(g, rest_byte()) == kNoGuards; });
}

void Grammar::settle() {
  if (!is_loose()) exact_.explore();
  exact_.close();
}

// The guard of an end that was found when the grammar was compiled first.
Guard Grammar::replay(const Survey::Place& place) {
  LexState q = place.part < part_count(*source_) ? part_start(*source_, lexer_, place.part) : 0;
  for (const uint8_t b : place.bytes) q = lexer_.next(q, b);
  const auto& ends = lexer_.ends(q);
  if (place.end >= ends.size()) throw std::invalid_argument("the lowered grammar is damaged: an end of a token is missing");
  return ends[place.end].guard;
}

Survey Grammar::survey() {
  Survey out;
  out.known = true;
  out.rest_byte = rest_byte_;
  if (!is_loose()) return out;
  const auto place_of = [&](Guard guard, std::vector<Survey::Place>& to) {
    for (uint32_t part = 0; part < part_count(*source_); ++part) {
      Survey::Place place{part, {}, 0};
      if (find_place(*source_, lexer_, guard, place)) return to.push_back(place);
    }
    out.known = false;
  };
  for (const Guards g : rest_) {
    if (g == kNoGuards) out.rests_without_guards = true;
    else place_of(lexer_.only(g), out.rest);
  }
  for (const Guard g : checked_) place_of(g, out.checked);
  return out;
}

LooseCosts& Grammar::costs() {
  std::call_once(costs_once_, [&] {
    costs_.emplace(source_->tables, lexer_, exact_, rest_behind(*source_, lexer_, rest_byte()), fixed_costs());
  });
  return *costs_;
}

bool Grammar::is_rest(Guards g) const { return std::find(rest_.begin(), rest_.end(), g) != rest_.end(); }

bool Grammar::is_empty() {
  if (is_loose()) return false;
  for (uint32_t i = 0; i < tables().starts.size(); ++i)
    if (exact_.cost_of_start(i) < kNoCost) return false;
  return true;
}

}  // namespace mw::lark
