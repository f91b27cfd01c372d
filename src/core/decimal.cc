#include "decimal.h"

#include <algorithm>
#include <cstdint>

namespace mw {
namespace {

// A decimal natural plus a small number, without leading zeros.
std::string natural_plus(std::string n, uint64_t small) {
  for (size_t i = n.size(); small > 0;) {
    if (i == 0) {
      n.insert(n.begin(), '0');
      ++i;
    }
    --i;
    const uint64_t sum = static_cast<uint64_t>(n[i] - '0') + small;
    n[i] = static_cast<char>('0' + sum % 10);
    small = sum / 10;
  }
  return n;
}

// A decimal natural minus a smaller one.
std::string natural_minus(std::string n, uint64_t small) {
  uint64_t borrow = small;
  for (size_t i = n.size(); i-- > 0 && borrow > 0;) {
    const uint64_t digit = static_cast<uint64_t>(n[i] - '0'), take = borrow % 10;
    borrow /= 10;
    if (digit < take) ++borrow;
    n[i] = static_cast<char>('0' + (digit + 10 - take) % 10);
  }
  return n;
}

std::string without_leading_zeros(const std::string& n) {
  const size_t first = n.find_first_not_of('0');
  return first == std::string::npos ? "0" : n.substr(first);
}

// exponent + shift, both signed; the exponent is as long as its writer pleased.
std::string shifted(bool negative, const std::string& exponent, int64_t shift) {
  const std::string e = without_leading_zeros(exponent);
  const bool down = shift < 0;
  const auto by = static_cast<uint64_t>(down ? -shift : shift);
  std::string sum;
  bool minus = negative;
  if (e == "0" || negative == down) {
    minus = by == 0 || e != "0" ? negative : down;
    sum = natural_plus(e, by);
  } else if (e.size() < 19 && std::stoull(e) < by) {
    minus = down;
    sum = std::to_string(by - std::stoull(e));
  } else {
    sum = natural_minus(e, by);
  }
  sum = without_leading_zeros(sum);
  if (sum != "0" && minus) sum.insert(sum.begin(), '-');
  return sum;
}

}  // namespace

std::string canonical_number(std::string_view json) {
  const bool negative = !json.empty() && json[0] == '-';
  if (negative) json.remove_prefix(1);
  const size_t e = std::min(json.find_first_of("eE"), json.size());
  std::string digits;
  int64_t shift = 0;
  bool fraction = false;
  for (char c : json.substr(0, e)) {
    if (c == '.') {
      fraction = true;
    } else {
      digits += c;
      if (fraction) --shift;
    }
  }
  const size_t last = digits.find_last_not_of('0');
  if (last == std::string::npos) return "0";
  shift += static_cast<int64_t>(digits.size() - last - 1);
  digits.resize(last + 1);
  std::string_view exponent = e < json.size() ? json.substr(e + 1) : std::string_view("0");
  const bool down = !exponent.empty() && exponent[0] == '-';
  if (!exponent.empty() && (exponent[0] == '-' || exponent[0] == '+')) exponent.remove_prefix(1);
  std::string out;
  if (negative) out += '-';
  out += without_leading_zeros(digits);
  out += 'e';
  out += shifted(down, std::string(exponent), shift);
  return out;
}

Digits leading_digits(std::string_view json) {
  Digits out;
  for (char c : json) {
    if (c == '-' && !out.exponent) out.negative = true;
    else if (c == 'e' || c == 'E') out.exponent = true;
    else if (c >= '0' && c <= '9' && !out.exponent && (c != '0' || !out.digits.empty())) out.digits += c;
  }
  return out;
}

}  // namespace mw
