//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanBeside: beside a podd that runs no flag is needed, and of a manifest
// only what that changes is told.
func TestPlanBeside(t *testing.T) {
	t.Parallel()
	d := begin(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	out, _ := d.verb("plan")
	if !strings.Contains(out, "default/web-"+d.host+"\n  pod: run -> run") {
		t.Errorf("podd plan says\n%s", out)
	}
	more := filepath.Join(d.dir, "more.yaml")
	if err := os.WriteFile(more, []byte(text(d, d.pod("other", shell("main", serve("other"))))), 0o644); err != nil {
		t.Fatal(err)
	}
	out, talk := d.verb("plan", more)
	if !strings.Contains(out, "default/other-"+d.host) || strings.Contains(out, "web") || talk != "" {
		t.Errorf("podd plan of a manifest says\n%s%s", out, talk)
	}
}
