// Package order sorts slices of structs like package slices, but with one copy of the algorithm for
// all types. The compiler creates a copy of slices.SortFunc for each size and layout of an element.
// Each copy adds 10 to 35 KB to the program. The functions of this package are slower by a small
// factor, because they swap elements with package reflect.
package order

import (
	"iter"
	"slices"
	"sort"
)

// Slice sorts s in ascending order of compare, like slices.SortFunc. Equal elements may change
// their order.
func Slice[E any](s []E, compare func(a, b E) int) {
	if len(s) < 2 {
		return // avoid the memory allocation of sort.Slice
	}
	sort.Slice(s, func(i, j int) bool { return compare(s[i], s[j]) < 0 })
}

// Stable sorts s in ascending order of compare, like slices.SortStableFunc. Equal elements keep
// their order.
func Stable[E any](s []E, compare func(a, b E) int) {
	if len(s) < 2 {
		return
	}
	sort.SliceStable(s, func(i, j int) bool { return compare(s[i], s[j]) < 0 })
}

// Collect returns the values of seq in ascending order of compare, like slices.SortedFunc. Equal values
// may be in any order.
func Collect[E any](seq iter.Seq[E], compare func(a, b E) int) []E {
	s := slices.Collect(seq)
	Slice(s, compare)
	return s
}
