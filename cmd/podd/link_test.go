package main

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"podd/cmd/internal/release"
)

// TestLink links podd as in a release. It checks that client-go has an implementation of HTTP/2,
// and that no reachable function calls reflect.Value.MethodByName with a variable name, or
// reflect.Value.Method. Because of one such call the linker would include every exported method of
// every type, which makes the program 6 MB larger. The first edge in the output of the linker is
// usually the cause; package commandline explains how podd avoids the calls of kong.
func TestLink(t *testing.T) {
	build := release.Command(t.Context(), os.DevNull, "-dumpdep")
	dump, err := build.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	build.Stderr = build.Stdout // go build prints the output of the linker to stdout or stderr
	if err := build.Start(); err != nil {
		t.Fatal(err)
	}
	edges, found, hasHTTP2, messages := 0, 0, false, []string(nil)
	lines := bufio.NewScanner(dump)
	lines.Buffer(nil, 1<<20) // some type names are long
	for lines.Scan() {
		line := lines.Text()
		hasHTTP2 = hasHTTP2 || strings.HasSuffix(line, " -> golang.org/x/net/http2.(*ClientConn).RoundTrip")
		switch {
		case !strings.Contains(line, " -> "):
			messages = append(messages, line)
		case strings.Contains(line, "<ReflectMethod>"):
			if found++; found <= 5 {
				t.Errorf("the linker includes all exported methods because of %s", line)
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
}
