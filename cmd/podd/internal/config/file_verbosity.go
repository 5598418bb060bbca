package config

import (
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// A FileVerbosity is the log level of the source files that match Pattern.
type FileVerbosity struct {
	// Pattern matches the name of a file without .go, as in klog. If it contains slashes, it matches the
	// end of the file's path: the name and as many directories as it contains slashes. It has the syntax
	// of path.Match.
	Pattern string
	// Verbosity is a log level of klog.
	Verbosity int
}

// Matches reports whether the pattern matches a source file. file is a path with slashes.
func (v FileVerbosity) Matches(file string) bool {
	end := strings.TrimSuffix(file, ".go")
	start := len(end)
	for range strings.Count(v.Pattern, "/") + 1 {
		if start = strings.LastIndexByte(end[:start], '/'); start < 0 {
			break
		}
	}
	matches, err := path.Match(v.Pattern, end[start+1:])
	return matches && err == nil
}

// matchesAnyFile reports whether the pattern matches a source file of this program.
func (v FileVerbosity) matchesAnyFile() bool {
	for file := range sourceFiles() {
		if v.Matches(file) {
			return true
		}
	}
	return false
}

// sourceFiles returns the paths of the source files of this program. It goes through all functions from
// the end of the program's code to its beginning. The Go runtime has no list of the functions, but it finds
// the function of every address in the code.
var sourceFiles = sync.OnceValue(func() map[string]bool {
	pc := reflect.ValueOf(FileVerbosity.Matches).Pointer()
	step := uintptr(1)
	for runtime.FuncForPC(pc+step) != nil {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		if runtime.FuncForPC(pc+step) != nil {
			pc += step
		}
	}
	files := map[string]bool{}
	for f := runtime.FuncForPC(pc); f != nil; f = runtime.FuncForPC(f.Entry() - 1) {
		file, _ := f.FileLine(f.Entry())
		files[file] = true
	}
	return files
})
