//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCompletion checks that bash completes the names of running pods, containers and nodes.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", serve("other"))))
	d.untilApplied("web")
	for line, want := range map[string]string{
		"exec w":          "web",
		"logs web -c ":    "main other",
		"get pods -n def": "default",
		"describe node ":  d.host,
		"cp we":           "web:",
	} {
		// Completion prints nothing if podd does not respond in time.
		d.eventually("podd "+line+" is completed", func() error {
			if got, err := d.completions(line); err != nil || got != want {
				return fmt.Errorf("got completions %q, want %q; error %w", got, want, err)
			}
			return nil
		})
	}
}

// completions returns the completions that bash offers for a podd command line.
func (d *daemon) completions(line string) (string, error) {
	cmd := exec.CommandContext(d.t.Context(), "bash", "-c", `
		source <("$1" completion bash)
		COMP_LINE="$1 $2" COMP_POINT=$((${#1} + ${#2} + 1))
		read -ra COMP_WORDS <<<"$1 $2"
		[[ $2 == *' ' ]] && COMP_WORDS+=('')
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_podd; echo "${COMPREPLY[*]}"`, "bash", binary, line)
	cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
