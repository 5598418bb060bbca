package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"podd/cmd/internal/release"
)

// maxSize is the maximum size of the linux/amd64 binary in bytes. Raise it if a feature is worth its
// size. If the binary is larger than expected, "go tool nm -size -sort size" lists its largest
// functions, and the output of the linker with -dumpdep shows why they are included.
const maxSize = 33_000_000

// TestLink links podd as in a release. It checks the size of the binary, and that the binary contains
// the implementation of HTTP/2 that client-go uses. It also checks that no reachable function calls
// reflect.Value.MethodByName with a variable name, or reflect.Value.Method. Because of one such call
// the linker would include every exported method of every type, which makes the binary 6 MB larger.
// The first error names the function with the call in most cases. Package commandline explains how
// podd avoids such calls in kong.
func TestLink(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "podd")
	build := release.Command(t.Context(), "", binary, "-dumpdep")
	dump, err := build.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	build.Stderr = build.Stdout // go build prints the output of the linker to stdout or stderr
	if err := build.Start(); err != nil {
		t.Fatal(err)
	}
	edges, reflectEdges, hasHTTP2, messages := 0, 0, false, []string(nil)
	lines := bufio.NewScanner(dump)
	lines.Buffer(nil, 1<<20) // some type names are long
	for lines.Scan() {
		line := lines.Text()
		hasHTTP2 = hasHTTP2 || strings.HasSuffix(line, " -> golang.org/x/net/http2.(*ClientConn).RoundTrip")
		switch {
		case !strings.Contains(line, " -> "):
			messages = append(messages, line)
		case strings.Contains(line, "<ReflectMethod>"):
			if reflectEdges++; reflectEdges <= 5 {
				t.Errorf("the linker includes all exported methods of all types because of the dependency %q", line)
			}
			edges++
		default:
			edges++
		}
	}
	if err := build.Wait(); err != nil {
		t.Fatalf("linking podd: %v\n%s", err, strings.Join(messages, "\n"))
	}
	if edges < 10_000 {
		t.Errorf("the linker printed %d dependencies, want at least 10,000", edges)
	}
	if !hasHTTP2 {
		t.Error("the binary does not contain HTTP/2 from golang.org/x/net; connections to API servers would use HTTP/1.1")
	}
	file, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOARCH == "amd64" && file.Size() > maxSize {
		t.Errorf("the binary has %d bytes, want at most %d", file.Size(), maxSize)
	}
}
