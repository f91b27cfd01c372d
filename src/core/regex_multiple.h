// Decimal numerals whose value is a multiple of modulus / 10^scale, read digit by digit in exact arithmetic.
//
// What has been read of one is kept as a remainder: that of its value, counted in units of 10^-scale, by the modulus. So
// a digit costs O(1) whatever the modulus, and nothing is tabulated. A multiple has no digits but zeros after the
// `scale`-th one behind the point.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace mw {

// Ten times a remainder and a unit are added in 128 bits; signed, so that a program can hold it.
inline constexpr uint64_t kMaxModulus = INT64_MAX;
inline constexpr uint64_t kWideModulus = 512;  // more remainders than anybody wants to have as states
inline constexpr int64_t kMaxScale = 1 << 16;
inline constexpr int64_t kNoLimit = INT64_MAX;

// What is still to be read of a numeral, the remainder aside.
struct MultipleForm {
  uint64_t modulus = 1;
  int64_t scale = 0;  // at most `room`
  int64_t least = 0;  // digits before the point still to come
  int64_t most = 0;   // kNoLimit: any number
  int64_t room = 0;   // digits after the point in all; kNoLimit: any number
  int64_t read = -1;  // those of them read, -1 before the point; no more are told apart than matter
  auto operator<=>(const MultipleForm&) const = default;
};

class MultipleForms {
 public:
  struct At {
    uint32_t form;
    uint64_t remainder;
  };

  uint32_t intern(MultipleForm form);
  const MultipleForm& operator[](uint32_t form) const { return forms_[form].form; }
  bool is_wide() const { return wide_; }
  bool is_complete(At at) const;
  // The fewest characters that complete the numeral, exactly where few fraction digits are enough, else a lower bound;
  // none where nothing completes it.
  std::optional<int64_t> shortest(At at) const;
  int64_t longest(uint32_t form) const;
  std::optional<At> read_digit(At at, uint32_t digit);
  std::optional<At> read_point(At at);

 private:
  // x * 10^place = c (mod modulus) is solvable where `divisor` divides c, by the inverse modulo modulus / divisor.
  struct Place {
    uint64_t unit;
    uint64_t divisor;
    uint64_t inverse;
  };
  struct Known {
    MultipleForm form;
    const std::vector<Place>* places;  // by the power of ten, 0 to scale
  };

  const std::vector<Place>& places_of(uint64_t modulus, int64_t scale);
  bool is_alive(const Known& known, uint64_t remainder) const;
  std::optional<int64_t> shortest_fraction(const Known& known, uint64_t remainder) const;
  std::optional<int64_t> shortest_numeral(const Known& known, uint64_t remainder) const;

  std::vector<Known> forms_;
  bool wide_ = false;
  std::map<MultipleForm, uint32_t> index_;
  std::map<std::pair<uint64_t, int64_t>, std::vector<Place>> places_;
};

}  // namespace mw
