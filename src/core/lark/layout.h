// Indentation: the columns of the open blocks, the open brackets, and the column of a line end in progress.
#pragma once

#include <cstddef>

#include "../intern.h"
#include "grammar.h"

namespace mw::lark {

using LayoutId = uint32_t;  // 0: nothing open, no line end in progress

class Layouts {
 public:
  struct Layout {
    uint32_t columns = 0;  // a list of blocks; 0 = none but the text
    uint32_t brackets = 0;
    int32_t column = -1;   // behind the last line end of the token in progress
    bool operator==(const Layout&) const = default;
  };
  Layouts() {
    lists_.intern({0, 0, 0});
    layouts_.intern({});
  }
  const Layout& operator[](LayoutId id) const { return layouts_[id]; }
  LayoutId intern(const Layout& l) { return layouts_.intern(l); }
  LayoutId at_column(LayoutId id, int32_t column) {
    Layout l = layouts_[id];
    if (l.column == column) return id;
    l.column = column;
    return intern(l);
  }
  uint32_t top(uint32_t columns) const { return lists_[columns].column; }
  uint32_t depth(uint32_t columns) const { return lists_[columns].depth; }
  uint32_t below(uint32_t columns) const { return lists_[columns].below; }
  uint32_t with(uint32_t columns, uint32_t column) { return lists_.intern({columns, column, lists_[columns].depth + 1}); }

  // A token of the grammar has ended: feeds it, and what comes of the columns. kNoStack: refused.
  StackSet end(const Indents& x, Stacks& stacks, StackSet s, Type t, LayoutId& layout);
  // The text may end here.
  bool complete(const Indents& x, Stacks& stacks, StackSet s, LayoutId layout) const;

 private:
  struct List {
    uint32_t below, column, depth;
    bool operator==(const List&) const = default;
  };
  struct HashList {
    uint64_t operator()(const List& l) const { return mix(mix(61, l.below), l.column); }
  };
  struct HashLayout {
    uint64_t operator()(const Layout& l) const { return mix(mix(mix(62, l.columns), l.brackets), static_cast<uint64_t>(l.column + 1)); }
  };
  StackSet end_line(const Indents& x, Stacks& stacks, StackSet s, Layout& l);

  Interner<List, HashList> lists_;
  Interner<Layout, HashLayout> layouts_;
};

}  // namespace mw::lark
