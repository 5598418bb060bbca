package logs

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Dir returns the log directory of a pod. root is the parent of all pods' log directories.
func Dir(root string, pod types.NamespacedName, uid types.UID) string {
	return filepath.Join(root, DirName(pod, uid))
}

// DirName returns the base name of a pod's log directory.
func DirName(pod types.NamespacedName, uid types.UID) string {
	return pod.Namespace + "_" + pod.Name + "_" + string(uid)
}

// ParseAttempt returns the attempt in the name of a log file, such as "3.log" or
// "3.log.20250102-150405.gz". ok is false for other names.
func ParseAttempt(name string) (attempt uint32, ok bool) {
	digits, rest, hasDot := strings.Cut(name, ".")
	if !hasDot || rest != "log" && !strings.HasPrefix(rest, "log.") || strings.HasPrefix(digits, "+") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

// A File is the parsed name of a log file of one container.
type File struct {
	Attempt uint32
	// RotatedAt is the time at which the file was rotated, in the format RotatedLayout. It is ""
	// for the file to which the runtime writes.
	RotatedAt string
	// Compressed reports whether the file is compressed with gzip.
	Compressed bool
}

// RotatedLayout is the format of the rotation time in a file name.
const RotatedLayout = "20060102-150405"

var rotationTimePattern = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}$`)

// ParseName parses the name of a log file. ok is true only if f.Name() returns exactly this name.
// Therefore the names of incomplete files, which end in ".tmp", are rejected.
func ParseName(name string) (f File, ok bool) {
	attempt, ok := ParseAttempt(name)
	if !ok {
		return File{}, false
	}
	f = File{Attempt: attempt}
	_, rest, _ := strings.Cut(name, ".log")
	if rest != "" {
		f.RotatedAt, f.Compressed = strings.CutSuffix(rest[1:], ".gz")
		if !rotationTimePattern.MatchString(f.RotatedAt) {
			return File{}, false
		}
	}
	return f, f.Name() == name
}

// Name returns the name of the file.
func (f File) Name() string {
	name := strconv.FormatUint(uint64(f.Attempt), 10) + ".log"
	if f.RotatedAt != "" {
		name += "." + f.RotatedAt
	}
	if f.Compressed {
		name += ".gz"
	}
	return name
}

// Compare returns a negative number if f was written before g and a positive number if f
// was written after g. It returns 0 if both are the same log, even if one of them is the
// compressed copy of the other.
func (f File) Compare(g File) int {
	if f.Attempt == g.Attempt && (f.RotatedAt == "") != (g.RotatedAt == "") {
		if f.RotatedAt == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(f.Attempt, g.Attempt), cmp.Compare(f.RotatedAt, g.RotatedAt))
}
