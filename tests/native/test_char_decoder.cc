// The character decoder against one that is written from the standards (RFC 3629, RFC 8259) and looks at whole strings:
// every code point, every reachable state with every byte, random bytes.
#include <algorithm>
#include <map>
#include <set>

#include "../../src/core/char_decoder.h"
#include "support.h"

namespace {

using mw::CharSpan;
using mw::Decoded;
using mw::Mode;
using mw::Sub;
using support::Rng;
using support::roll;
using support::show;

constexpr uint32_t kLast = 0x10ffff;
constexpr uint32_t kSampledFrom = 0x10400;  // inside JSON: beyond the first surrogate pairs all are alike

bool is_surrogate(uint32_t cp) { return cp >= 0xd800 && cp <= 0xdfff; }

// ---- the other decoder ------------------------------------------------------------------------------------

// UTF-8 by the table of RFC 3629, section 3: the number of bits decides the number of bytes.
std::string utf8(uint32_t cp) {
  const int more = cp < 0x80 ? 0 : cp < 0x800 ? 1 : cp < 0x10000 ? 2 : 3;
  if (more == 0) return {static_cast<char>(cp)};
  static const uint32_t marks[] = {0, 0xc0, 0xe0, 0xf0};
  std::string out{static_cast<char>(marks[more] | (cp >> (6 * more)))};
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((cp >> (6 * i)) & 0x3f));
  return out;
}

struct Verdict {
  Decoded::Kind kind = Decoded::Dead;
  uint32_t code_point = 0;
};

// The bytes of the first code point at or after cp, of those with the same length, that are no surrogates: a string of
// continuation bytes is a prefix of some character iff the smallest or largest character around it has it.
Verdict classify_utf8(const std::string& p) {
  const auto lead = static_cast<uint8_t>(p[0]);
  const size_t length = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 0;
  if (length == 0 || p.size() > length) return {};
  uint32_t lo = length == 1 ? lead : lead & (0xffu >> (length + 1)), hi;
  for (size_t i = 1; i < p.size(); ++i) {
    const auto b = static_cast<uint8_t>(p[i]);
    if (b < 0x80 || b > 0xbf) return {};
    lo = lo * 64 + (b - 0x80u);
  }
  hi = lo;
  for (size_t i = p.size(); i < length; ++i) {
    lo = lo * 64;
    hi = hi * 64 + 63;
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  lo = std::max(lo, least[length]);
  hi = std::min(hi, kLast);
  if (lo > hi || (is_surrogate(lo) && is_surrogate(hi))) return {};
  return {p.size() == length ? Decoded::Char : Decoded::Partial, lo};
}

bool hex_interval(const std::string& digits, uint32_t& lo, uint32_t& hi) {
  static const std::string alphabet = "0123456789abcdef";
  lo = hi = 0;
  for (size_t i = 0; i < 4; ++i) {
    const size_t v = i < digits.size() ? alphabet.find(static_cast<char>(std::tolower(digits[i]))) : 0;
    if (v == std::string::npos) return false;
    lo = lo * 16 + static_cast<uint32_t>(v);
    hi = hi * 16 + (i < digits.size() ? static_cast<uint32_t>(v) : 15u);
  }
  return true;
}

bool meets(uint32_t lo, uint32_t hi, uint32_t first, uint32_t last) { return lo <= last && hi >= first; }

bool named_control(uint32_t cp) { return cp == 8 || cp == 9 || cp == 10 || cp == 12 || cp == 13; }

Verdict classify_hex(const std::string& p, bool any) {  // p starts with \u
  uint32_t lo, hi;
  if (!hex_interval(p.substr(2, 4), lo, hi)) return {};
  if (!any) {
    bool some = false;
    for (uint32_t cp = 0; cp < 0x20; ++cp) some = some || (!named_control(cp) && cp >= lo && cp <= hi);
    if (!some || p.size() > 6) return {};
    return {p.size() == 6 ? Decoded::Char : Decoded::Partial, lo};
  }
  if (lo >= 0xdc00 && hi <= 0xdfff) return {};
  if (p.size() < 6) return {Decoded::Partial};
  if (!is_surrogate(lo)) return p.size() == 6 ? Verdict{Decoded::Char, lo} : Verdict{};
  if (p.size() == 6) return {Decoded::Partial};
  if (p[6] != '\\' || (p.size() > 7 && p[7] != 'u') || p.size() > 12) return {};
  if (p.size() < 9) return {Decoded::Partial};
  uint32_t low, high;
  if (!hex_interval(p.substr(8), low, high) || !meets(low, high, 0xdc00, 0xdfff)) return {};
  if (p.size() < 12) return {Decoded::Partial};
  return {Decoded::Char, 0x10000 + (lo - 0xd800) * 0x400 + (low - 0xdc00)};
}

// What a string of bytes is that has no whole character as a proper prefix.
Verdict classify(const std::string& p, bool json, bool any) {
  if (!json) return classify_utf8(p);
  if (p == "\"") return {Decoded::Quote};
  if (static_cast<uint8_t>(p[0]) < 0x20) return {};
  if (p[0] != '\\') return classify_utf8(p);
  if (p.size() == 1) return {Decoded::Partial};
  if (p[1] == 'u') return classify_hex(p, any);
  static const std::map<char, uint32_t> named{{'"', '"'}, {'\\', '\\'}, {'b', 8}, {'f', 12}, {'n', 10}, {'r', 13}, {'t', 9}};
  if (p.size() > 2) return {};
  if (p[1] == '/' && any) return {Decoded::Char, '/'};
  const auto it = named.find(p[1]);
  return it == named.end() ? Verdict{} : Verdict{Decoded::Char, it->second};
}

// All ways to write a character, with digits in lower case.
std::vector<std::string> spellings(uint32_t cp, bool json, bool any) {
  if (!json) return {utf8(cp)};
  std::vector<std::string> out;
  if (cp >= 0x20 && cp != '"' && cp != '\\') out.push_back(utf8(cp));
  static const std::map<uint32_t, char> named{{'"', '"'}, {'\\', '\\'}, {8, 'b'}, {12, 'f'}, {10, 'n'}, {13, 'r'}, {9, 't'}};
  if (const auto it = named.find(cp); it != named.end()) out.push_back({'\\', it->second});
  if (any && cp == '/') out.emplace_back("\\/");
  if (!any && (cp >= 0x20 || named_control(cp))) return out;
  char buffer[16];
  if (cp < 0x10000) std::snprintf(buffer, sizeof buffer, "\\u%04x", cp);
  else std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10), 0xdc00 + ((cp - 0x10000) & 0x3ff));
  out.emplace_back(buffer);
  return out;
}

// ---- laws -------------------------------------------------------------------------------------------------

struct Setting {
  bool json, any;
  Decoded decode(Sub sub, uint8_t b) const { return json ? mw::decode_json(sub, b, any) : mw::decode_utf8(sub, b); }
};
constexpr Setting kSettings[] = {{false, false}, {true, false}, {true, true}};

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

// What is known of a string that is part of a character.
struct Prefix {
  Sub sub = 0;
  Ranges becomes;  // the code points that it can become, ascending
  size_t shortest = 100;
};

void add_code_point(Ranges& ranges, uint32_t cp) {
  if (!ranges.empty() && ranges.back().second == cp) return;
  if (!ranges.empty() && (ranges.back().second + 1 == cp || (ranges.back().second == 0xd7ff && cp == 0xe000))) ranges.back().second = cp;
  else ranges.emplace_back(cp, cp);
}

// Every code point in every spelling, byte by byte; collects all prefixes.
std::map<std::string, Prefix> read_all(const Setting& s) {
  std::map<std::string, Prefix> prefixes;
  for (uint32_t cp = 0; cp <= kLast; cp += s.json && cp > kSampledFrom ? 37 : 1) {
    if (is_surrogate(cp)) continue;
    uint8_t bytes[4];
    const int n = mw::encode_utf8(cp, bytes);
    CHECK(std::string(bytes, bytes + n) == utf8(cp), "UTF-8 of %x", cp);
    for (const std::string& text : spellings(cp, s.json, s.any)) {
      Sub sub = 0;
      for (size_t i = 0; i < text.size(); ++i) {
        const Decoded d = s.decode(sub, static_cast<uint8_t>(text[i]));
        if (i + 1 == text.size()) {
          CHECK(d.kind == Decoded::Char && d.value == cp, "%s is %x", show(text).c_str(), cp);
          break;
        }
        CHECK(d.kind == Decoded::Partial && d.value != 0 && d.value <= mw::kSubMask, "%s at %zu", show(text).c_str(), i);
        sub = d.value;
        Prefix& p = prefixes[text.substr(0, i + 1)];
        p.sub = sub;
        p.shortest = std::min(p.shortest, text.size() - i - 1);
        add_code_point(p.becomes, cp);
      }
    }
  }
  return prefixes;
}

// The shortest spelling of each code point in JSON is what json_bytes says.
void test_json_bytes() {
  for (uint32_t cp = 0; cp <= kLast; cp += cp > kSampledFrom ? 37 : 1) {
    if (is_surrogate(cp)) continue;
    size_t least = 100;
    for (const std::string& text : spellings(cp, true, false)) least = std::min(least, text.size());
    CHECK(mw::json_bytes(cp) == least, "json_bytes of %x", cp);
    CHECK(mw::needs_hex_escape(cp) == (cp < 0x20 && !named_control(cp)), "needs_hex_escape of %x", cp);
  }
}

bool holds(const Ranges& ranges, uint32_t cp) {
  return !is_surrogate(cp) && std::any_of(ranges.begin(), ranges.end(), [&](auto r) { return r.first <= cp && cp <= r.second; });
}

void check_ranges(const Setting& s, const std::string& text, const Prefix& p) {
  const Mode mode = mw::sub_mode(p.sub);
  if (mode == Mode::Backslash || (mode == Mode::Hex && !s.any)) return;  // not what partial_ranges is for
  CharSpan spans[2];
  const int n = mw::partial_ranges(p.sub, spans);
  CHECK(n == 1 || n == 2, "ranges of %s", show(text).c_str());
  Ranges said;
  for (int i = 0; i < n; ++i) {
    CHECK(spans[i].lo <= spans[i].hi && spans[i].hi <= kLast, "range of %s", show(text).c_str());
    CHECK(i == 0 || spans[i].lo > spans[0].hi, "ranges of %s overlap", show(text).c_str());
    said.emplace_back(spans[i].lo, spans[i].hi);
  }
  for (const auto& [lo, hi] : p.becomes) CHECK(holds(said, lo) && holds(said, hi), "%s: %x-%x is missing", show(text).c_str(), lo, hi);
  for (const auto& [lo, hi] : said)  // the ends that are no surrogates are reached
    for (const uint32_t cp : {lo, hi}) CHECK(is_surrogate(cp) || (s.json && cp > kSampledFrom) || holds(p.becomes, cp), "%s: %x is too much", show(text).c_str(), cp);
}

void check_liveness(const Setting& s, const std::string& text, const Prefix& p, Rng& rng) {
  const auto live_in = [&](uint32_t first, uint32_t last) {
    return mw::partial_is_live(p.sub, s.any, [&](uint32_t lo, uint32_t hi) { return lo <= last && hi >= first; });
  };
  CHECK(live_in(0, kLast), "%s is dead", show(text).c_str());
  std::vector<uint32_t> around{0, 0x1f, '"', '/', '\\', 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, kLast,
                               static_cast<uint32_t>(roll(rng, kLast + 1)), static_cast<uint32_t>(roll(rng, 0x20))};
  for (const auto& [lo, hi] : p.becomes) around.insert(around.end(), {lo, hi, lo + 1, hi + 1, lo > 0 ? lo - 1 : 0});
  for (const uint32_t cp : around) {
    if (is_surrogate(cp) || (s.json && cp > kSampledFrom) || cp > kLast) continue;
    CHECK(live_in(cp, cp) == holds(p.becomes, cp), "%s may become %x", show(text).c_str(), cp);
  }
}

// Bytes to the end: the least over all spellings, and the way is really that long.
void check_finish(const Setting& s, const std::string& text, const Prefix& p) {
  CHECK(mw::bytes_to_finish(p.sub) == p.shortest, "%s: %u bytes, not %zu", show(text).c_str(), mw::bytes_to_finish(p.sub), p.shortest);
  for (const auto& [lo, hi] : p.becomes) {
    for (const uint32_t cp : {lo, hi}) {
      size_t least = 100;
      for (const std::string& t : spellings(cp, s.json, s.any))
        if (t.starts_with(text)) least = std::min(least, t.size() - text.size());
      const uint32_t said = mw::bytes_to_finish(p.sub, cp);
      const bool solidus = text == "\\" && cp == '/';  // written raw or in hexadecimal, where it is asked for
      CHECK(said == least || (solidus && said == 5), "%s to %x: %u bytes, not %zu", show(text).c_str(), cp, said, least);
    }
  }
}

// Every byte after every prefix; digits in either case lead to the same state.
void check_bytes(const Setting& s, const std::string& text, Sub sub) {
  for (unsigned b = 0; b < 256; ++b) {
    const Decoded d = s.decode(sub, static_cast<uint8_t>(b));
    const std::string longer = text + static_cast<char>(b);
    const Verdict v = classify(longer, s.json, s.any);
    CHECK(d.kind == v.kind, "%s: kind %d, not %d", show(longer).c_str(), d.kind, v.kind);
    if (d.kind == Decoded::Char) CHECK(d.value == v.code_point, "%s: %x", show(longer).c_str(), d.value);
    const bool in_hex = mw::sub_mode(sub) == Mode::Hex || (mw::sub_mode(sub) == Mode::LowSurrogate && (mw::sub_payload(sub) & 0x7f) >= 2);
    if (in_hex && b >= 'a' && b <= 'f') {
      const Decoded upper = s.decode(sub, static_cast<uint8_t>(b - 'a' + 'A'));
      CHECK(upper.kind == d.kind && upper.value == d.value, "%s in upper case", show(longer).c_str());
    }
  }
}

void test_states(const Setting& s) {
  Rng rng(20261202);
  const std::map<std::string, Prefix> prefixes = read_all(s);
  check_bytes(s, "", 0);
  CHECK(mw::bytes_to_finish(0) == 0, "between characters");
  size_t i = 0;
  for (const auto& [text, p] : prefixes) {
    // There are a hundred thousand; those inside a surrogate pair differ in their digits only.
    if (text.size() > 6 && text[0] == '\\' && i++ % 61 != 0) continue;
    check_bytes(s, text, p.sub);
    check_ranges(s, text, p);
    check_liveness(s, text, p, rng);
    check_finish(s, text, p);
  }
}

std::string random_text(Rng& rng) {
  static const std::string pieces[] = {"\\u", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\u00", "\\u001f", "\\\"", "\\\\", "\\n", "\\/", "\"",
                                       "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90", "\xe0\x9f", "a", "\x1f"};
  std::string text;
  for (int64_t n = 1 + roll(rng, 8); n > 0; --n) {
    if (roll(rng, 3) == 0) text += static_cast<char>(roll(rng, 256));
    else if (roll(rng, 3) == 0) text += "0123456789abcdefABCDEF"[roll(rng, 22)];
    else text += support::pick(rng, pieces);
  }
  return text;
}

void test_random() {
  Rng rng(20261203);
  for (int round = 0; round < 50000; ++round) {
    const Setting& s = kSettings[round % 3];
    std::string pending;
    Sub sub = 0;
    for (const char c : random_text(rng)) {
      pending += c;
      const Decoded d = s.decode(sub, static_cast<uint8_t>(c));
      const Verdict v = classify(pending, s.json, s.any);
      CHECK(d.kind == v.kind, "%s: kind %d, not %d", show(pending).c_str(), d.kind, v.kind);
      if (d.kind == Decoded::Char) CHECK(d.value == v.code_point, "%s: %x", show(pending).c_str(), d.value);
      if (d.kind == Decoded::Dead || d.kind == Decoded::Quote) break;
      sub = d.kind == Decoded::Partial ? d.value : 0;
      if (d.kind == Decoded::Char) pending.clear();
    }
  }
}

}  // namespace

int main() {
  test_json_bytes();
  for (const Setting& s : kSettings) test_states(s);
  test_random();
  std::puts("char decoder: ok");
  return 0;
}
