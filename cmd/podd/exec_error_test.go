package main

import (
	"errors"
	"strings"
	"testing"

	"podd/cmd/podd/internal/stream"
)

// TestExecError: what runtimes say of programs that do not start.
func TestExecError(t *testing.T) {
	const containerd = `Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "` +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `": OCI runtime exec failed: exec failed: `
	const runc = containerd + "unable to start container process: "
	for said, want := range map[string]string{
		runc + `exec: "x": executable file not found in $PATH: unknown`:                              `127 container c of web has no program "x" in its $PATH`,
		runc + `error during container init: exec: "x": executable file not found in $PATH: unknown`: `127 container c of web has no program "x" in its $PATH`,
		containerd + "executable file `x` not found in $PATH: No such file or directory: unknown":    `127 container c of web has no program "x" in its $PATH`,
		runc + `exec: "x": stat x: no such file or directory: unknown`:                               `127 container c of web has no "x"`,
		runc + `exec x: no such file or directory: unknown`:                                          `127 container c of web has no "x", or not the interpreter that it names`,
		runc + `exec: "x": permission denied: unknown`:                                               `126 container c of web may not run "x": permission denied`,
		containerd + "open executable: Permission denied: unknown":                                   `126 container c of web may not run "x": permission denied`,
		runc + `exec: "x": is a directory: unknown`:                                                  `126 container c of web cannot run "x": it is a directory`,
		runc + `exec x: exec format error: unknown`:                                                  `126 container c of web cannot run "x": it is for another kind of machine, or a script without #!`,
		runc + `chdir to cwd ("/a") set in config.json failed: no such file or directory: unknown`:   `1 running "x" in container c of web: chdir to cwd ("/a") set in config.json failed: no such file or directory`,
		"error executing command in container: container is in CONTAINER_EXITED state":               `1 running "x" in container c of web: container is in CONTAINER_EXITED state`,
		"podd ended; the pods run on":                                                                "1 podd ended; the pods run on",
	} {
		var talk strings.Builder
		code := report(execError(errors.New(said), "c", "web", "x"), Streams{Err: &talk})
		got, ok := strings.CutPrefix(talk.String(), "podd: ")
		wantCode, wantText, _ := strings.Cut(want, " ")
		if !ok || got != wantText+"\n" || wantCode != map[int]string{1: "1", 126: "126", 127: "127"}[code] {
			t.Errorf("%q: %d %q, want %q", said, code, got, want)
		}
	}
	if err := execError(&stream.ExitError{Code: 3}, "c", "web", "x"); err.Error() != "command terminated with exit code 3" {
		t.Error(err)
	}
	if execError(nil, "c", "web", "x") != nil {
		t.Error("nothing is an error")
	}
}
