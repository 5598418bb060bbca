package cli

import (
	"errors"
	"strings"
	"testing"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/stream"
)

// TestExecError checks the errors and exit codes of podd exec for the errors that runtimes return if a
// program cannot be started. Each wanted text is the exit code, a space and the error.
func TestExecError(t *testing.T) {
	const containerd = `Internal error occurred: error executing command in container: failed to exec in container: failed to start exec "` +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `": OCI runtime exec failed: exec failed: `
	const runc = containerd + "unable to start container process: "
	for text, want := range map[string]string{
		runc + `exec: "x": executable file not found in $PATH: unknown`:                              `127 container c of web has no program "x" in its $PATH`,
		runc + `error during container init: exec: "x": executable file not found in $PATH: unknown`: `127 container c of web has no program "x" in its $PATH`,
		containerd + "executable file `x` not found in $PATH: No such file or directory: unknown":    `127 container c of web has no program "x" in its $PATH`,
		runc + `exec: "x": stat x: no such file or directory: unknown`:                               `127 container c of web has no "x"`,
		runc + `exec x: no such file or directory: unknown`:                                          `127 container c of web does not have "x", or its interpreter`,
		runc + `exec: "x": permission denied: unknown`:                                               `126 container c of web may not run "x": permission denied`,
		containerd + "open executable: Permission denied: unknown":                                   `126 container c of web may not run "x": permission denied`,
		runc + `exec: "x": is a directory: unknown`:                                                  `126 container c of web cannot run "x": it is a directory`,
		runc + `exec x: exec format error: unknown`:                                                  `126 container c of web cannot run "x": it is a program for another architecture, or a script without #!`,
		runc + `chdir to cwd ("/a") set in config.json failed: no such file or directory: unknown`:   `1 running "x" in container c of web: chdir to cwd ("/a") set in config.json failed: no such file or directory`,
		"error executing command in container: container is in CONTAINER_EXITED state":               `1 running "x" in container c of web: container is in CONTAINER_EXITED state`,
		"podd stopped; its pods keep running":                                                        "1 podd stopped; its pods keep running",
	} {
		var stderr strings.Builder
		code := exit.Report(execError(errors.New(text), "c", "web", "x"), &stderr)
		got, ok := strings.CutPrefix(stderr.String(), "podd: ")
		wantCode, wantText, _ := strings.Cut(want, " ")
		if !ok || got != wantText+"\n" || wantCode != map[int]string{1: "1", 126: "126", 127: "127"}[code] {
			t.Errorf("%q: got exit code %d, error %q; want %q", text, code, got, want)
		}
	}
	if err := execError(&stream.ExitError{Code: 3}, "c", "web", "x"); err.Error() != "command terminated with exit code 3" {
		t.Errorf("exit code 3: got error %v, want \"command terminated with exit code 3\"", err)
	}
	if err := execError(nil, "c", "web", "x"); err != nil {
		t.Errorf("no error: got %v, want nil", err)
	}
}

// TestReportsMissingProgram checks which exit codes and outputs of an exec mean that CRI-O did not find
// the program.
func TestReportsMissingProgram(t *testing.T) {
	const crio = `time="2026-11-23T04:42:10Z" level=error msg="exec failed: unable to start container process: exec: \"tar\": executable file not found in $PATH"`
	for _, test := range []struct {
		code   int
		stderr string
		want   bool
	}{
		{255, crio, true},
		{255, strings.Replace(crio, "executable file not found in $PATH", "stat /bin/tar: no such file or directory", 1), true},
		{1, crio, false},
		{255, "tar: x: no such file or directory", false},
		{255, "", false},
	} {
		if got := reportsMissingProgram(test.code, []byte(test.stderr)); got != test.want {
			t.Errorf("exit code %d, stderr %q: got %v, want %v", test.code, test.stderr, got, test.want)
		}
	}
}
