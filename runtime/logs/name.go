package logs

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// AttemptOf reads the attempt off the name of a log file, "3.log" or anything
// that was made of it, "3.log.20250102-150405.gz".
func AttemptOf(name string) (attempt uint32, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || rest != "log" && !strings.HasPrefix(rest, "log.") || strings.HasPrefix(digits, "+") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

// File is a log file, by its name.
type File struct {
	Attempt uint32
	// Rotated is when the file was put aside, as RotatedLayout has it; "" for the
	// one that is written to.
	Rotated string
	// Compressed says that it is a gzip file.
	Compressed bool
}

// RotatedLayout is how the time of a rotation stands in a name.
const RotatedLayout = "20060102-150405"

var rotatedName = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}$`)

// ParseName knows the files that Read reads. Half-made ones (".tmp") and what
// is not spelled as podd and runtimes spell it are none.
func ParseName(name string) (File, bool) {
	attempt, ok := AttemptOf(name)
	if !ok {
		return File{}, false
	}
	f := File{Attempt: attempt}
	_, rest, _ := strings.Cut(name, ".log")
	if rest != "" {
		f.Rotated, f.Compressed = strings.CutSuffix(rest[1:], ".gz")
		if !rotatedName.MatchString(f.Rotated) {
			return File{}, false
		}
	}
	return f, f.Name() == name
}

// Name is the file's name.
func (f File) Name() string {
	name := strconv.FormatUint(uint64(f.Attempt), 10) + ".log"
	if f.Rotated != "" {
		name += "." + f.Rotated
	}
	if f.Compressed {
		name += ".gz"
	}
	return name
}

// Compare orders files as they were written. A compressed file has the place
// of the one it was made from.
func (f File) Compare(g File) int {
	if f.Attempt == g.Attempt && (f.Rotated == "") != (g.Rotated == "") {
		if f.Rotated == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(f.Attempt, g.Attempt), cmp.Compare(f.Rotated, g.Rotated))
}
