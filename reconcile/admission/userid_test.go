package admission

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"podd/runtime"
)

const unit = runtime.DefaultIDsPerPod

func TestFreeIDs(t *testing.T) {
	r := func(first, length uint32) runtime.IDRange {
		return runtime.IDRange{First: first * unit, Length: length * unit}
	}
	for name, tt := range map[string]struct {
		used   []runtime.IDRange
		length uint32
		want   runtime.IDRange
	}{
		"none used":                   {nil, 1, r(1, 1)},
		"none used, large ranges":     {nil, 4, r(4, 4)},
		"lowest used":                 {[]runtime.IDRange{r(1, 1)}, 1, r(2, 1)},
		"gap":                         {[]runtime.IDRange{r(1, 1), r(3, 1)}, 1, r(2, 1)},
		"gap too small":               {[]runtime.IDRange{r(1, 1), r(3, 1), r(5, 1)}, 2, r(6, 2)},
		"small range in a large one":  {[]runtime.IDRange{r(5, 1)}, 4, r(8, 4)},
		"large range over small ones": {[]runtime.IDRange{r(1, 4)}, 1, r(5, 1)},
		"overlapping ranges":          {[]runtime.IDRange{r(1, 8), r(2, 1)}, 1, r(9, 1)},
		"not a power of two":          {[]runtime.IDRange{r(3, 3)}, 3, r(6, 3)},
		"before the first used":       {[]runtime.IDRange{r(9, 1)}, 4, r(4, 4)},
		"last range":                  {[]runtime.IDRange{r(1, 65533)}, 1, r(65534, 1)},
		"all used":                    {[]runtime.IDRange{r(1, 65534)}, 1, runtime.IDRange{}},
		"a small range in the first":  {[]runtime.IDRange{r(16384, 1)}, 16384, r(32768, 16384)},
		"length of half of all IDs":   {nil, 32768, runtime.IDRange{}},
		"mapping of all IDs":          {[]runtime.IDRange{{First: 0, Length: math.MaxUint32}}, 1, runtime.IDRange{}},
		"other alignment":             {[]runtime.IDRange{{First: unit + 1, Length: 2 * unit}}, 1, r(4, 1)},
		"beyond the last ID":          {[]runtime.IDRange{{First: math.MaxUint32, Length: math.MaxUint32}}, 1, r(1, 1)},
	} {
		all := runtime.IDRange{First: tt.length * unit, Length: math.MaxUint32 - tt.length*unit}
		if got := freeIDs(tt.used, all, tt.length*unit); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestFreeIDs_HostIDs checks that a range is only taken from the IDs for pods.
func TestFreeIDs_HostIDs(t *testing.T) {
	all := runtime.IDRange{First: 8 * unit, Length: 4 * unit}
	for name, tt := range map[string]struct {
		used         []runtime.IDRange
		length, want uint32 // the first ID, in units; 0 if no range is free
	}{
		"none used":             {nil, 1, 8},
		"first used":            {[]runtime.IDRange{{First: 8 * unit, Length: unit}}, 1, 9},
		"used IDs below":        {[]runtime.IDRange{{First: unit, Length: unit}}, 2, 8},
		"used IDs above":        {[]runtime.IDRange{{First: 12 * unit, Length: unit}}, 4, 8},
		"overlap from below":    {[]runtime.IDRange{{First: unit, Length: 9 * unit}}, 2, 10},
		"all used":              {[]runtime.IDRange{{First: 8 * unit, Length: 2 * unit}, {First: 10 * unit, Length: 2 * unit}}, 1, 0},
		"the rest is too small": {[]runtime.IDRange{{First: 9 * unit, Length: unit}, {First: 11 * unit, Length: unit}}, 2, 0},
	} {
		want := runtime.IDRange{}
		if tt.want > 0 {
			want = runtime.IDRange{First: tt.want * unit, Length: tt.length * unit}
		}
		if got := freeIDs(tt.used, all, tt.length*unit); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	last := runtime.IDRange{First: math.MaxUint32 - 2*unit + 1, Length: 2 * unit} // up to the last ID, which belongs to no user
	if got, want := freeIDs(nil, last, unit), (runtime.IDRange{First: last.First, Length: unit}); got != want {
		t.Errorf("all IDs up to the last: got %v, want %v", got, want)
	}
	if got := freeIDs([]runtime.IDRange{{First: last.First, Length: unit}}, last, unit); got != (runtime.IDRange{}) {
		t.Errorf("only the last IDs free: got %v, want none", got)
	}
}

// TestFreeIDs_Properties checks that allocated ranges of changing lengths are valid and never overlap.
func TestFreeIDs_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var used []runtime.IDRange
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			length := uint32(rapid.IntRange(1, 20000).Draw(t, "length")) * unit
			got := freeIDs(used, runtime.IDRange{First: length, Length: math.MaxUint32 - length}, length)
			if got == (runtime.IDRange{}) {
				continue
			}
			if !got.IsValid() || got.Length != length || got.First%length != 0 || got.End() > math.MaxUint32 {
				t.Fatalf("got the invalid range %v", got)
			}
			for _, u := range used {
				if uint64(got.First) < u.End() && uint64(u.First) < got.End() {
					t.Fatalf("got %v, which overlaps %v", got, u)
				}
			}
			used = insertIDs(used, got)
		}
	})
}

// TestSandboxIDs_Foreign checks that a sandbox of another agent reserves the IDs that the runtime
// reports. Its annotations reserve no IDs, because the author of the pod may have set them.
func TestSandboxIDs_Foreign(t *testing.T) {
	mapped, recorded := runtime.IDRange{First: 1000, Length: 7}, runtime.IDRange{First: unit, Length: 4294770688}
	p := &runtime.Pod{Incarnations: []runtime.Incarnation{{Sandbox: runtime.Sandbox{
		MappedIDs:   []runtime.IDRange{mapped},
		Annotations: map[string]string{runtime.AnnotationFirstHostUID: "65536", runtime.AnnotationHostIDCount: "4294770688"},
	}}}}
	if got := append(recordedIDs(p), foreignIDs(p)...); !slices.Equal(got, []runtime.IDRange{recorded}) {
		t.Errorf("sandbox of podd: got %v, want %v", got, recorded)
	}
	p.Incarnations[0].Foreign = true
	if got := append(recordedIDs(p), foreignIDs(p)...); !slices.Equal(got, []runtime.IDRange{mapped}) {
		t.Errorf("foreign sandbox: got reserved IDs %v, want %v", got, mapped)
	}
}
