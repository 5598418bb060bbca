package memory

import (
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mapsText = `00400000-00fce000 r-xp 00000000 fe:00 42     /usr/bin/podd (deleted)
00fce000-01cbf000 r--p 00bce000 fe:00 42     /usr/bin/podd (deleted)
01cbf000-01d45000 rw-p 018bf000 fe:00 42     /usr/bin/podd (deleted)
01d45000-03d8f000 rw-p 00000000 00:00 0
c000000000-c000400000 r--p 00000000 00:00 0
7f0000000000-7f0000001000 r--p 00000000 fe:01 42     /usr/lib/other
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0      [vdso]
`

func TestProgramMappings(t *testing.T) {
	all, err := readMappings(strings.NewReader(mapsText))
	if err != nil {
		t.Fatal(err)
	}
	program := []mapping{{from: 0x400000, to: 0xfce000, file: "fe:00 42"}, {from: 0xfce000, to: 0x1cbf000, file: "fe:00 42"}}
	for name, test := range map[string]struct {
		code uintptr
		want []mapping
	}{
		"in the program": {0x400001, program},
		"in the vdso":    {0x7ffd00000000, nil},
		"anonymous":      {0xc000000001, nil},
		"not mapped":     {0x1000, nil},
	} {
		if diff := cmp.Diff(test.want, programMappings(all, test.code), cmp.AllowUnexported(mapping{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReadMappings_Invalid(t *testing.T) {
	for _, text := range []string{"nonsense", "x-2 r 0 0 0", "1-y r 0 0 0"} {
		if all, err := readMappings(strings.NewReader(text)); err == nil {
			t.Errorf("%q: got %v, want an error", text, all)
		}
	}
}

// TestReleaseProgram checks that code, constants and variables are unchanged afterwards,
// and that the program is found in its own mappings.
func TestReleaseProgram(t *testing.T) {
	variable := strings.Clone(mapsText)
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
	if variable != mapsText {
		t.Error("a constant or a variable changed")
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := readMappings(f)
	if err != nil {
		t.Fatal(err)
	}
	if found := programMappings(all, reflect.ValueOf(releaseProgram).Pointer()); len(found) < 2 {
		t.Errorf("mappings of this program: got %v, want code and constants", found)
	}
}

func TestBusyPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: gcPercent, largeHeap: gcPercent, largeHeap + 1: largeHeapPercent} {
		if got := busyPercent(live); got != want {
			t.Errorf("busyPercent(%d) = %d, want %d", live, got, want)
		}
	}
	if liveHeap() == 0 {
		runtime.GC()
		if liveHeap() == 0 {
			t.Error("liveHeap() = 0 after a garbage collection")
		}
	}
}
