package order

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// element has a key by which it is sorted and an identity.
type element struct{ key, id int }

func byKey(a, b element) int { return cmp.Compare(a.key, b.key) }

// TestSlice_Stable compares the results with those of package slices.
func TestSlice_Stable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []element
		for i, key := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 100).Draw(t, "keys") {
			all = append(all, element{key, i})
		}
		want := slices.Clone(all)
		slices.SortStableFunc(want, byKey)

		stable := slices.Clone(all)
		Stable(stable, byKey)
		if !slices.Equal(stable, want) {
			t.Errorf("Stable: got %v, want %v", stable, want)
		}
		byBoth := func(a, b element) int { return cmp.Or(byKey(a, b), cmp.Compare(a.id, b.id)) }
		if got := Collect(slices.Values(all), byBoth); !slices.Equal(got, want) {
			t.Errorf("Collect: got %v, want %v", got, want)
		}
		Slice(all, byBoth)
		if !slices.Equal(all, want) {
			t.Errorf("Slice: got %v, want %v", all, want)
		}
	})
}
