package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/stream"
)

// These are the exit codes of podd if a command cannot be started, as in shells and podman exec.
const (
	exitCodeCannotRun = 126
	exitCodeNotFound  = 127
)

// startFailures contains regular expressions for the errors that runc and crun return if they cannot
// start a program. podd uses the first expression that matches. message is a format, in which %[1]s is
// the container and %[2]q is the program. This file compiles expressions only when a command fails,
// because the daemon also links this package and would otherwise keep them in memory.
var startFailures = []struct {
	pattern string
	code    int
	message string
}{
	{`(?i)executable file .*not found in \$PATH`, exitCodeNotFound, "%[1]s has no program %[2]q in its $PATH"},
	{`exec: ".*": (stat|open) .*: no such file or directory`, exitCodeNotFound, "%[1]s has no %[2]q"},
	{`open executable: No such file or directory`, exitCodeNotFound, "%[1]s has no %[2]q"},
	{`(?i)exec[ :].*no such file or directory`, exitCodeNotFound, "%[1]s does not have %[2]q, or its interpreter"},
	{`(?i)(exec: ".*"|exec \S+|open executable): permission denied`, exitCodeCannotRun, "%[1]s may not run %[2]q: permission denied"},
	{`(?i)(exec: ".*"|exec \S+|open executable): is a directory`, exitCodeCannotRun, "%[1]s cannot run %[2]q: it is a directory"},
	{`(?i)exec .*: exec format error`, exitCodeCannotRun, "%[1]s cannot run %[2]q: it is a program for another architecture, or a script without #!"},
}

// runtimePrefixes matches the texts with which runtimes prefix the reason of an error.
const runtimePrefixes = `^(?:Internal error occurred: |error executing command in container: |rpc error: code = \w+ desc = |failed to exec in container: |failed to start exec "[0-9a-f]+": |failed to create exec "[0-9a-f]+": |OCI runtime exec failed: |exec failed: |unable to start container process: |error during container init: )+`

// execError returns a one-line error for a command that could not be started, with the exit code
// of podman exec. It returns all other errors unchanged.
func execError(err error, container, podArg, program string) error {
	if exitErr := (*stream.ExitError)(nil); err == nil || errors.As(err, &exitErr) {
		return err
	}
	text := err.Error()
	prefix := regexp.MustCompile(runtimePrefixes).FindString(text)
	if prefix == "" {
		return err
	}
	for _, f := range startFailures {
		if regexp.MustCompile(f.pattern).MatchString(text) && !strings.Contains(text, "chdir to cwd") {
			return exit.NewError(f.code, fmt.Errorf(f.message, fmt.Sprintf("container %s of %s", container, podArg), program))
		}
	}
	reason := strings.TrimSuffix(strings.TrimPrefix(text, prefix), ": unknown")
	return fmt.Errorf("running %q in container %s of %s: %s", program, container, podArg, printer.Escape(reason))
}

// crioProgramNotFound matches the message that CRI-O writes to stderr if the program of a command
// does not exist.
const crioProgramNotFound = `exec failed: unable to start container process: exec: \\?".*": (executable file not found in \$PATH|stat .*: no such file or directory)`

// reportsMissingProgram reports whether the result of a command is CRI-O's result for a program
// that does not exist: exit code 255 and an error of runc on stderr. Callers may use the return
// value only to choose an error message, because an existing program can have the same result.
func reportsMissingProgram(code int, stderr []byte) bool {
	return code == 255 && regexp.MustCompile(crioProgramNotFound).Match(stderr)
}
