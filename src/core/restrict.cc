#include "restrict.h"

#include <algorithm>

namespace mw {
namespace {

constexpr int64_t kChars = 2, kCat = 3, kRepeat = 5, kAnd = 6, kNot = 7, kMultiple = 8;
constexpr int64_t kLast = 0x10ffff;

bool inside(int64_t lo, int64_t hi, std::span<const std::pair<uint32_t, uint32_t>> ranges) {
  for (const auto& [first, last] : ranges)
    if (lo >= first && lo <= last) {
      if (hi <= last) return true;
      lo = int64_t{last} + 1;
    }
  return false;
}

bool lacks_nothing(const Vocab& vocab, Transport transport) {
  return vocab.is_byte_complete() || !vocab.is_character_closed() || transport == Transport::JsonAny;
}

bool can_spell(const Vocab& vocab, std::string text, Transport transport) {
  if (transport == Transport::JsonMinimal) std::erase_if(text, [](char c) { return is_control(static_cast<uint8_t>(c)); });
  return vocab.can_spell(text);
}

}  // namespace

std::optional<std::vector<int64_t>> restrict_program(std::span<const int64_t> program,
                                                     std::span<const std::pair<uint32_t, uint32_t>> lacking) {
  if (lacking.empty()) return std::nullopt;
  std::vector<int64_t> out;
  bool changed = false, boolean = false;
  for (size_t i = 0; i < program.size();) {
    const int64_t op = program[i];
    size_t length = 1;
    if (op == kChars) length = 2 + 2 * static_cast<size_t>(program[i + 1]);
    else if (op == kRepeat) length = 3;
    else if (op == kMultiple) length = 8;
    else if (op >= kCat && op != kNot) length = 2;
    bool empty = op == kChars;
    for (size_t j = i + 2; empty && j + 1 < i + length; j += 2) empty = inside(program[j], program[j + 1], lacking);
    boolean = boolean || op == kAnd || op == kNot || op == kMultiple;
    if (empty) out.push_back(0);
    else out.insert(out.end(), program.begin() + static_cast<std::ptrdiff_t>(i), program.begin() + static_cast<std::ptrdiff_t>(i + length));
    changed = changed || empty;
    i += length;
  }
  if (boolean) {
    std::vector<int64_t> rest;
    int64_t from = 0;
    for (const auto& [first, last] : lacking) {
      if (first > from) rest.insert(rest.end(), {from, int64_t{first} - 1});
      from = int64_t{last} + 1;
    }
    if (from <= kLast) rest.insert(rest.end(), {from, kLast});
    out.insert(out.end(), {kChars, static_cast<int64_t>(rest.size() / 2)});
    out.insert(out.end(), rest.begin(), rest.end());
    out.insert(out.end(), {kRepeat, 0, -1, kAnd, 2});
  } else if (!changed) {
    return std::nullopt;
  }
  return out;
}

std::shared_ptr<Automaton> restrict_automaton(const std::shared_ptr<Automaton>& automaton, std::span<const int64_t> program,
                                              const Vocab& vocab, Transport transport, std::string* error) {
  if (lacks_nothing(vocab, transport)) return automaton;
  auto lacking = vocab.lacking();
  if (transport != Transport::Raw) std::erase_if(lacking, [](const auto& r) { return r.second < 0x20; });
  const auto restricted = restrict_program(program, lacking);
  if (!restricted) return automaton;
  auto dfa = RegexDfa::from_program(*restricted, error);
  return dfa ? std::make_shared<Automaton>(std::move(dfa)) : nullptr;
}

std::vector<std::string> restrict_texts(std::vector<std::string> texts, const Vocab& vocab, Transport transport) {
  if (!lacks_nothing(vocab, transport))
    std::erase_if(texts, [&](const std::string& t) { return !can_spell(vocab, t, transport); });
  return texts;
}

void restrict_names(ObjectSpec& spec, const Vocab& vocab) {
  const Transport transport = spec.any_escapes ? Transport::JsonAny : Transport::JsonMinimal;
  if (lacks_nothing(vocab, transport)) return;
  size_t n = 0;
  for (size_t i = 0; i < spec.names.size(); ++i) {
    if (!spec.required[i] && !can_spell(vocab, spec.names[i], transport)) continue;
    if (n != i) spec.names[n] = std::move(spec.names[i]);
    spec.children[n] = spec.children[i];
    spec.required[n] = spec.required[i];
    ++n;
  }
  spec.names.resize(n);
  spec.children.resize(n);
  spec.required.resize(n);
}

}  // namespace mw
