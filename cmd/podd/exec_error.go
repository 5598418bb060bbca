package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"podd/cmd/podd/internal/stream"
)

// Codes of a command that did not start, as shells and podman exec have them.
const (
	codeCannotRun = 126
	codeNotFound  = 127
)

// notStarted are what runc and crun say of a program that they cannot start,
// whatever the runtime puts before. The first that matches is it; %[1]s is the
// container, %[2]q the program.
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
	{regexp.MustCompile(`(?i)exec .*: exec format error`), codeCannotRun, "%[1]s cannot run %[2]q: it is for another kind of machine, or a script without #!"},
}

// aroundExec is what runtimes put before the reason, and what containerd puts
// behind.
var aroundExec = regexp.MustCompile(`^(?:Internal error occurred: |error executing command in container: |rpc error: code = \w+ desc = |failed to exec in container: |failed to start exec "[0-9a-f]+": |failed to create exec "[0-9a-f]+": |OCI runtime exec failed: |exec failed: |unable to start container process: |error during container init: )+`)

// execError says in one line why a command did not start, with the code that
// podman exec has for it. Others stay.
func execError(err error, container, word, program string) error {
	if exit := (*stream.ExitError)(nil); err == nil || errors.As(err, &exit) {
		return err
	}
	text := err.Error()
	around := aroundExec.FindString(text)
	if around == "" {
		return err
	}
	for _, row := range notStarted {
		if row.said.MatchString(text) && !strings.Contains(text, "chdir to cwd") {
			return exitWith(row.code, fmt.Errorf(row.says, fmt.Sprintf("container %s of %s", container, word), program))
		}
	}
	reason := strings.TrimSuffix(strings.TrimPrefix(text, around), ": unknown")
	return fmt.Errorf("running %q in container %s of %s: %s", program, container, word, plain(reason))
}
