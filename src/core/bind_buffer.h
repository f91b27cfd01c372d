// Buffers of Python objects, for bind.cpp.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <string_view>

namespace mw {

namespace nb = nanobind;

// A contiguous buffer of some Python object: the buffer protocol, else DLPack.
class Buffer {
 public:
  Buffer(nb::handle object, size_t item_size, bool writable) {
    if (PyObject_CheckBuffer(object.ptr())) {
      const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
      if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
      held_ = true;
      const std::string_view format = view_.format ? view_.format : "B";
      if (static_cast<size_t>(view_.itemsize) != item_size || format.find_first_of("fdegc?") != std::string_view::npos)
        throw nb::type_error("the buffer has elements of another type");
      data_ = view_.buf;
      bytes_ = static_cast<size_t>(view_.len);
      rows_ = view_.ndim > 1 && view_.shape ? static_cast<size_t>(view_.shape[0]) : 1;
      return;
    }
    array_ = nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(object);
    if (array_.dtype().bits != item_size * 8 || array_.dtype().code == static_cast<uint8_t>(nb::dlpack::dtype_code::Float))
      throw nb::type_error("the array has elements of another type");
    data_ = array_.data();
    bytes_ = array_.nbytes();
    rows_ = array_.ndim() > 1 ? array_.shape(0) : 1;
  }
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }
  size_t rows() const { return rows_; }

 private:
  Py_buffer view_{};
  bool held_ = false;
  nb::ndarray<nb::c_contig, nb::device::cpu> array_;
  void* data_ = nullptr;
  size_t bytes_ = 0, rows_ = 1;
};

}  // namespace mw
