// Decimal numbers of any size by value: the one text that all writings of a number share.
#pragma once

#include <string>
#include <string_view>

namespace mw {

// Of a JSON number: "0", else sign, digits without zeros at either end, "e" and the exponent: "-12e3" is -12000.
std::string canonical_number(std::string_view json);
// The digits of what was read of a number, without the zeros before and behind the point that lead: those of its value, as
// far as they are known. `negative`, `exponent`: whether those have begun.
struct Digits {
  std::string digits;
  bool negative = false, exponent = false;
};
Digits leading_digits(std::string_view json);

}  // namespace mw
