#include "grammar.h"

#include <algorithm>
#include <set>

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

}  // namespace

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
  // At the start of a text that may be empty nothing has to be passed over: it can end there.
  std::vector<bool> at_start(std::max<size_t>(source.lexers.size(), 1), false);
  if (!source.tables.general && !source.tables.lexer_of.empty()) {
    const Tables& t = source.tables;
    for (const auto& start : t.starts)
      if (t.at(start.state, t.terminals) != 0) at_start[t.lexer_of[start.state]] = true;
    for (uint32_t s = 0; s < t.states; ++s)
      if (std::none_of(t.starts.begin(), t.starts.end(), [&](const auto& start) { return start.state == s; }))
        at_start[t.lexer_of[s]] = false;
  }
  // The guards behind the byte: for each lexer its own, or what some part of it leaves.
  const auto rest_behind = [&](uint8_t b) {
    std::vector<Guards> found(std::max<size_t>(source.lexers.size(), 1), kVoidGuards);
    for (const Part& part : parts)
      for (const TokenEnd& e : lexer.ends(lexer.next(part.start, b)))
        if (e.ignore && found[part.lexer] == kVoidGuards) found[part.lexer] = lexer.with(kNoGuards, e.guard);
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i] == kVoidGuards && at_start[i]) found[i] = kNoGuards;
    return found;
  };
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
    rest = rest_behind(b);
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
    const std::vector<Guards> found = rest_behind(b);
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
  std::vector<Guard> checked;
  rest_byte_ = find_rest_byte(*source_, lexer_, exact_, rest_, checked);
  if (rest_byte_ < 0) return;
  lexer_.set_rest(rest_byte(), std::move(checked));
  exact_.set_free([this](Guards g) { return is_rest(g) || lexer_.next_guards(g, rest_byte()) == kNoGuards; });
}

void Grammar::settle() {
  if (!is_loose()) exact_.explore();
  exact_.close();
}

bool Grammar::is_rest(Guards g) const { return std::find(rest_.begin(), rest_.end(), g) != rest_.end(); }

bool Grammar::is_empty() {
  if (is_loose()) return false;
  for (uint32_t i = 0; i < tables().starts.size(); ++i)
    if (exact_.cost_of_start(i) < kNoCost) return false;
  return true;
}

}  // namespace mw::lark
