package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"podd/cmd/podd/internal/cli/printer"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/stream"
)

// Exit codes of a command that could not be started, as in shells and podman exec.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

// notStarted matches the errors of runc and crun for a program that they cannot start.
// The first match is used; its format gets the container as %[1]s and the program as
// %[2]q.
var notStarted = []struct {
	said *regexp.Regexp
	code int
	says string
}{
	{regexp.MustCompile(`(?i)executable file .*not found in \$PATH`), codeNotFound, "%[1]s has no program %[2]q in its $PATH"},
	{regexp.MustCompile(`exec: ".*": (stat|open) .*: no such file or directory`), codeNotFound, "%[1]s has no %[2]q"},
	{regexp.MustCompile(`open executable: No such file or directory`), codeNotFound, "%[1]s has no %[2]q"},
	{regexp.MustCompile(`(?i)exec[ :].*no such file or directory`), codeNotFound, "%[1]s has no %[2]q, or not the interpreter that it names"},
	{regexp.MustCompile(`(?i)(exec: ".*"|exec \S+|open executable): permission denied`), codeCannotRun, "%[1]s may not run %[2]q: permission denied"},
	{regexp.MustCompile(`(?i)(exec: ".*"|exec \S+|open executable): is a directory`), codeCannotRun, "%[1]s cannot run %[2]q: it is a directory"},
	{regexp.MustCompile(`(?i)exec .*: exec format error`), codeCannotRun, "%[1]s cannot run %[2]q: it is for another architecture, or a script without #!"},
}

// aroundExec matches the prefixes that runtimes add to the reason.
var aroundExec = regexp.MustCompile(`^(?:Internal error occurred: |error executing command in container: |rpc error: code = \w+ desc = |failed to exec in container: |failed to start exec "[0-9a-f]+": |failed to create exec "[0-9a-f]+": |OCI runtime exec failed: |exec failed: |unable to start container process: |error during container init: )+`)

// execError returns a one-line error for a command that could not be started, with podman
// exec's exit code. It returns other errors unchanged.
func execError(err error, container, word, program string) error {
	if ended := (*stream.ExitError)(nil); err == nil || errors.As(err, &ended) {
		return err
	}
	text := err.Error()
	around := aroundExec.FindString(text)
	if around == "" {
		return err
	}
	for _, row := range notStarted {
		if row.said.MatchString(text) && !strings.Contains(text, "chdir to cwd") {
			return exit.With(row.code, fmt.Errorf(row.says, fmt.Sprintf("container %s of %s", container, word), program))
		}
	}
	reason := strings.TrimSuffix(strings.TrimPrefix(text, around), ": unknown")
	return fmt.Errorf("running %q in container %s of %s: %s", program, container, word, printer.Escape(reason))
}

// crioNoProgram is how CRI-O reports on standard error that a command has no program.
var crioNoProgram = regexp.MustCompile(`exec failed: unable to start container process: exec: \\?".*": (executable file not found in \$PATH|stat .*: no such file or directory)`)

// reportsMissingProgram reports whether a command ended as CRI-O ends one that has no
// program: with code 255 and runc's error on standard error. A program may end like
// that, too, so only an error message may depend on it.
func reportsMissingProgram(code int, stderr []byte) bool {
	return code == 255 && crioNoProgram.Match(stderr)
}
