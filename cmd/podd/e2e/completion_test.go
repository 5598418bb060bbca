//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestCompletion: a bash completes the names of what runs.
func TestCompletion(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("main")), shell("other", serve("other"))))
	d.untilApplied("web")
	for line, want := range map[string]string{
		"exec w":          "web",
		"logs web -c ":    "main other",
		"get pods -n def": "default",
		"describe node ":  d.host,
		"cp we":           "web:",
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", `
			source <("$1" completion bash)
			COMP_LINE="$1 $2" COMP_POINT=$((${#1} + ${#2} + 1))
			read -ra COMP_WORDS <<<"$1 $2"
			[[ $2 == *' ' ]] && COMP_WORDS+=('')
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			_podd; echo "${COMPREPLY[*]}"`, "bash", binary, line)
		cmd.Env = append(os.Environ(), "PODD_RUN_DIR="+d.runDir())
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("podd %s: %q, want %q; %v", line, got, want, err)
		}
	}
}
