package logs

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Dir returns the directory with the logs of a pod. root is the directory with the logs of
// all pods.
func Dir(root string, pod types.NamespacedName, uid types.UID) string {
	return filepath.Join(root, DirName(pod, uid))
}

// DirName returns the name of a pod's log directory.
func DirName(pod types.NamespacedName, uid types.UID) string {
	return pod.Namespace + "_" + pod.Name + "_" + string(uid)
}

// AttemptOf parses the attempt in the name of a log file, "3.log" or a name derived from
// it, "3.log.20250102-150405.gz".
func AttemptOf(name string) (attempt uint32, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || rest != "log" && !strings.HasPrefix(rest, "log.") || strings.HasPrefix(digits, "+") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

// A File is the parsed name of a log file.
type File struct {
	Attempt uint32
	// Rotated is the time of the rotation in RotatedLayout; "" for the file that is written
	// to.
	Rotated string
	// Compressed reports that it is a gzip file.
	Compressed bool
}

// RotatedLayout is the format of the time of a rotation in a name.
const RotatedLayout = "20060102-150405"

var rotatedName = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}$`)

// ParseName parses the names of the files that Read reads. It returns false for incomplete
// files (".tmp") and for names in another spelling than that of podd and the runtimes.
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

// Name returns the file's name.
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

// Compare compares files by the order in which they were written. A compressed file is
// equal to the file from which it was created.
func (f File) Compare(g File) int {
	if f.Attempt == g.Attempt && (f.Rotated == "") != (g.Rotated == "") {
		if f.Rotated == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(f.Attempt, g.Attempt), cmp.Compare(f.Rotated, g.Rotated))
}
