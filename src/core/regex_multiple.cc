#include "regex_multiple.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace mw {

namespace {

__extension__ using Wide = unsigned __int128;

// 10^19 exceeds every modulus: so many free digits reach every remainder.
constexpr int64_t kFreeDigits = 19;
// Longer completions than this are not looked for one by one.
constexpr int64_t kMaxSearch = 48;

constexpr std::array<uint64_t, kFreeDigits + 1> kPowers = [] {
  std::array<uint64_t, kFreeDigits + 1> out{1};
  for (size_t i = 1; i < out.size(); ++i) out[i] = out[i - 1] * 10;
  return out;
}();

uint64_t mul(uint64_t x, uint64_t y, uint64_t m) { return static_cast<uint64_t>(Wide{x} * y % m); }
uint64_t add(uint64_t x, uint64_t y, uint64_t m) { return static_cast<uint64_t>((Wide{x} + y) % m); }
uint64_t negated(uint64_t x, uint64_t m) { return x == 0 ? 0 : m - x; }

uint64_t power_of_ten(int64_t exponent, uint64_t m) {
  uint64_t result = 1 % m;
  for (uint64_t base = 10 % m; exponent > 0; exponent >>= 1, base = mul(base, base, m))
    if (exponent & 1) result = mul(result, base, m);
  return result;
}

bool is_below_power(uint64_t x, int64_t exponent) {
  return exponent >= kFreeDigits || x < kPowers[static_cast<size_t>(exponent)];
}

// The inverse of x modulo m, which have no common divisor (Euclid's extended algorithm, in residues).
uint64_t inverse_of(uint64_t x, uint64_t m) {
  uint64_t a = m;
  uint64_t b = m == 1 ? 0 : x % m;
  uint64_t u = 0;
  uint64_t v = 1 % m;
  while (b != 0) {
    const uint64_t q = a / b;
    u = add(u, negated(mul(q % m, v, m), m), m);
    a -= q * b;
    std::swap(a, b);
    std::swap(u, v);
  }
  return u;
}

}  // namespace

const std::vector<MultipleForms::Place>& MultipleForms::places_of(uint64_t modulus, int64_t scale) {
  const auto [it, fresh] = places_.try_emplace({modulus, scale});
  if (!fresh) return it->second;
  uint64_t unit = 1 % modulus;
  for (int64_t i = 0; i <= scale; ++i, unit = mul(unit, 10, modulus)) {
    const uint64_t divisor = std::gcd(unit, modulus);
    it->second.push_back({unit, divisor, inverse_of(unit / divisor, modulus / divisor)});
  }
  return it->second;
}

uint32_t MultipleForms::intern(MultipleForm form) {
  if (form.room == kNoLimit) form.read = std::min(form.read, std::max<int64_t>(form.scale, 1));
  const auto [it, fresh] = index_.try_emplace(form, static_cast<uint32_t>(forms_.size()));
  if (fresh) forms_.push_back({form, &places_of(form.modulus, form.scale)});
  wide_ = wide_ || form.modulus > kWideModulus;
  return it->second;
}

bool MultipleForms::is_complete(At at) const {
  const MultipleForm& form = forms_[at.form].form;
  return at.remainder == 0 && form.least == 0 && form.read != 0;
}

int64_t MultipleForms::longest(uint32_t id) const {
  const MultipleForm& form = forms_[id].form;
  if (form.room == kNoLimit || form.most == kNoLimit) return kNoLimit;
  if (form.read >= 0) return form.room - form.read;
  return form.most + (form.room == 0 ? 0 : 1 + form.room);
}

std::optional<MultipleForms::At> MultipleForms::read_digit(At at, uint32_t digit) {
  const Known known = forms_[at.form];
  MultipleForm next = known.form;
  const uint64_t m = next.modulus;
  if (next.read < 0) {
    if (next.most == 0) return std::nullopt;
    next.least = std::max<int64_t>(next.least - 1, 0);
    if (next.most != kNoLimit) --next.most;
    const uint64_t shifted = mul(at.remainder, 10, m);
    return At{intern(next), add(shifted, mul(digit, known.places->back().unit, m), m)};
  }
  if (next.read == next.room) return std::nullopt;
  if (next.read < next.scale) {
    const uint64_t unit = (*known.places)[static_cast<size_t>(next.scale - next.read - 1)].unit;
    at.remainder = add(at.remainder, mul(digit, unit, m), m);
  } else if (digit != 0) {
    return std::nullopt;
  }
  ++next.read;
  return At{intern(next), at.remainder};
}

std::optional<MultipleForms::At> MultipleForms::read_point(At at) {
  MultipleForm next = forms_[at.form].form;
  if (next.read >= 0 || next.least > 0 || next.room == 0) return std::nullopt;
  next.most = next.read = 0;
  return At{intern(next), at.remainder};
}

std::optional<int64_t> MultipleForms::shortest(At at) const {
  const Known& known = forms_[at.form];
  if (!is_alive(known, at.remainder)) return std::nullopt;
  return known.form.read < 0 ? shortest_numeral(known, at.remainder) : shortest_fraction(known, at.remainder);
}

// With t more digits before the point and all behind it, the value takes 10^(t + digits behind) values in a row.
bool MultipleForms::is_alive(const Known& known, uint64_t remainder) const {
  const MultipleForm& form = known.form;
  if (form.read >= 0) {
    return is_below_power(negated(remainder, form.modulus), std::max<int64_t>(form.scale - form.read, 0));
  }
  uint64_t shifted = mul(remainder, power_of_ten(form.least, form.modulus), form.modulus);
  for (int64_t t = form.least; t <= form.most; ++t) {
    if (is_below_power(negated(shifted, form.modulus), t + form.scale)) return true;
    shifted = mul(shifted, 10, form.modulus);
  }
  return false;
}

std::optional<int64_t> MultipleForms::shortest_fraction(const Known& known, uint64_t remainder) const {
  const MultipleForm& form = known.form;
  if (remainder == 0) return form.read == 0 ? 1 : 0;
  const uint64_t wanted = negated(remainder, form.modulus);
  for (int64_t f = 1; f <= std::min(form.scale - form.read, kMaxSearch); ++f) {
    const Place& place = (*known.places)[static_cast<size_t>(form.scale - form.read - f)];
    if (wanted % place.divisor != 0) continue;
    const uint64_t m = form.modulus / place.divisor;
    if (is_below_power(mul(wanted / place.divisor % m, place.inverse, m), f)) return f;
  }
  return 1;
}

// By the number of characters: t digits, or t digits, the point and f digits.
std::optional<int64_t> MultipleForms::shortest_numeral(const Known& known, uint64_t remainder) const {
  const MultipleForm& form = known.form;
  const int64_t last = form.most == kNoLimit ? form.least + kFreeDigits : std::min(form.most, form.least + kFreeDigits);
  std::vector<uint64_t> wanted;  // by the digits before the point beyond the least
  uint64_t shifted = mul(remainder, power_of_ten(form.least, form.modulus), form.modulus);
  const auto hits = [&](int64_t extra, int64_t f) {
    const uint64_t c = wanted[static_cast<size_t>(extra)];
    const Place& place = (*known.places)[static_cast<size_t>(form.scale - f)];
    if (c % place.divisor != 0) return false;
    const uint64_t m = form.modulus / place.divisor;
    return is_below_power(mul(c / place.divisor % m, place.inverse, m), form.least + extra + f);
  };
  for (int64_t n = 0; n <= kMaxSearch; ++n) {
    if (form.least + n <= last) {
      wanted.push_back(negated(shifted, form.modulus));
      shifted = mul(shifted, 10, form.modulus);
      if (hits(n, 0)) return form.least + n;
    }
    for (int64_t f = std::min(form.scale, n - 1); f >= 1; --f) {
      const int64_t extra = n - 1 - f;
      if (form.least + extra <= last && hits(extra, f)) return form.least + n;
    }
  }
  return form.least + kMaxSearch;
}

}  // namespace mw
