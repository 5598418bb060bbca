package logs

import (
	"slices"
	"testing"
)

func TestParseAttempt(t *testing.T) {
	for name, want := range map[string]int64{
		"0.log": 0, "12.log": 12, "3.log.20250102-150405": 3, "3.log.20250102-150405.gz": 3, "4.log.tmp": 4,
		"4294967295.log": 4294967295, "007.log": 7,
		"4294967296.log": -1, "-1.log": -1, "+1.log": -1, "a.log": -1, ".log": -1, "1.logs": -1, "1": -1, "1.txt": -1, "": -1,
	} {
		got, ok := ParseAttempt(name)
		if ok != (want >= 0) || ok && int64(got) != want {
			t.Errorf("ParseAttempt(%q): got attempt %d, valid: %t; want %d (-1: invalid)", name, got, ok, want)
		}
	}
}

func TestFile_Compare(t *testing.T) {
	want := []string{
		"0.log.20250102-150405.gz", "0.log.20250102-160405", "0.log", "1.log", "9.log.20240101-000000", "9.log", "10.log",
	}
	names := append(slices.Clone(want), "007.log", "1.log.tmp", "1.log.20250102-150405.tmp", "1.log.gz", "x.log")
	slices.Sort(names)
	var files []File
	for _, name := range names {
		if f, ok := ParseName(name); ok {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, File.Compare)
	var got []string
	for _, f := range files {
		got = append(got, f.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("sorted file names: got %q, want %q", got, want)
	}
}
