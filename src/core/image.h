// Arrays in one piece of memory, so that what took long to work out can be kept in a file and mapped into other processes.
//
// An image is for machines of one kind and one release: whoever keeps it says by a key what it was made of. A piece of memory
// that holds anything else, or was damaged, is found out by a checksum and taken for no image. (It is not proof against somebody
// who makes up images: that one could as well change the library.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mw {

// An array that was made here, or lies in memory that somebody keeps.
template <class T>
class FlatArray {
 public:
  FlatArray() = default;
  explicit FlatArray(std::vector<T> made) : made_(std::move(made)), view_(made_) {}
  explicit FlatArray(std::span<const T> kept) : view_(kept) {}
  FlatArray(FlatArray&&) noexcept = default;
  FlatArray& operator=(FlatArray&&) noexcept = default;

  const T& operator[](size_t i) const { return view_[i]; }
  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  const T* data() const { return view_.data(); }
  auto begin() const { return view_.begin(); }
  auto end() const { return view_.end(); }
  std::span<const T> all() const { return view_; }

 private:
  std::vector<T> made_;
  std::span<const T> view_;
};

namespace image {

inline constexpr uint64_t kMagic = 0x3230454c54574d2f;  // raised whenever the layout of any image changes
inline constexpr size_t kAlign = 8;

inline uint64_t checksum(std::span<const char> bytes) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {1, 2, 3, bytes.size()};
  size_t at = 0;
  for (; at + sizeof lanes <= bytes.size(); at += sizeof lanes) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof words);
    for (size_t i = 0; i < 4; ++i) lanes[i] = ((lanes[i] << 23 | lanes[i] >> 41) ^ words[i]) * kFactor;
  }
  uint64_t sum = 0;
  for (; at < bytes.size(); ++at) sum = (sum ^ static_cast<uint8_t>(bytes[at])) * kFactor;
  for (const uint64_t lane : lanes) sum = ((sum << 23 | sum >> 41) ^ lane) * kFactor;
  return sum ^ (sum >> 32);
}

class Writer {
 public:
  explicit Writer(std::string_view key) { put(std::span(key)); }
  template <class T>
  void put(std::span<const T> items) {
    static_assert(std::has_unique_object_representations_v<T>);
    const uint64_t count = items.size();
    append(&count, sizeof count);
    append(items.data(), items.size_bytes());
    bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign);
  }
  std::string finish() const {
    const uint64_t head[2] = {kMagic, checksum(bytes_)};
    std::string out(sizeof head, '\0');
    std::memcpy(out.data(), head, sizeof head);
    return out += bytes_;
  }

 private:
  void append(const void* data, size_t size) {
    if (size > 0) bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

class Reader {
 public:
  Reader(std::span<const char> image, std::string_view key) {
    uint64_t head[2];
    if (image.size() < sizeof head || reinterpret_cast<uintptr_t>(image.data()) % kAlign != 0) return;
    std::memcpy(head, image.data(), sizeof head);
    left_ = image.subspan(sizeof head);
    good_ = head[0] == kMagic && head[1] == checksum(left_);
    const auto made_for = take<char>();
    good_ = good_ && std::string_view(made_for.data(), made_for.size()) == key;
  }
  // The next array; nothing where the image is none.
  template <class T>
  std::span<const T> take() {
    uint64_t count = 0;
    if (!good_ || left_.size() < sizeof count) return fail<T>();
    std::memcpy(&count, left_.data(), sizeof count);
    left_ = left_.subspan(sizeof count);
    if (count > left_.size() / sizeof(T)) return fail<T>();
    const std::span items(reinterpret_cast<const T*>(left_.data()), count);
    left_ = left_.subspan(std::min(left_.size(), (items.size_bytes() + kAlign - 1) / kAlign * kAlign));
    return items;
  }
  template <class T>
  std::vector<T> copy() {
    const std::span<const T> items = take<T>();
    return {items.begin(), items.end()};
  }
  bool good() const { return good_; }
  void reject() { good_ = false; }

 private:
  template <class T>
  std::span<const T> fail() {
    good_ = false;
    return {};
  }
  std::span<const char> left_;
  bool good_ = false;
};

}  // namespace image
}  // namespace mw
