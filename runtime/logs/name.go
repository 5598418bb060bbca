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

// file is a log file, by its name.
type file struct {
	attempt uint32
	rotated string // when; "" for the one that is written to
	gz      bool
}

var rotatedName = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}$`)

// parseName knows the files that Read reads. Half-made ones (".tmp") and what
// is not spelled as podd and runtimes spell it are none.
func parseName(name string) (file, bool) {
	attempt, ok := AttemptOf(name)
	if !ok {
		return file{}, false
	}
	f := file{attempt: attempt}
	_, rest, _ := strings.Cut(name, ".log")
	if rest != "" {
		f.rotated, f.gz = strings.CutSuffix(rest[1:], ".gz")
		if !rotatedName.MatchString(f.rotated) {
			return file{}, false
		}
	}
	return f, f.name() == name
}

func (f file) name() string {
	name := strconv.FormatUint(uint64(f.attempt), 10) + ".log"
	if f.rotated != "" {
		name += "." + f.rotated
	}
	if f.gz {
		name += ".gz"
	}
	return name
}

// compare orders files as they were written. A compressed file has the place
// of the one it was made from.
func (f file) compare(g file) int {
	if f.attempt == g.attempt && (f.rotated == "") != (g.rotated == "") {
		if f.rotated == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(f.attempt, g.attempt), cmp.Compare(f.rotated, g.rotated))
}
