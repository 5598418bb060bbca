//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPlan_RunningDaemon checks that podd plan needs no flags while podd is running, and that
// it prints only the changes caused by the given manifest.
func TestPlan_RunningDaemon(t *testing.T) {
	t.Parallel()
	d := startDaemon(t)
	d.apply(d.pod("web", shell("main", serve("web"))))
	d.untilApplied("web")
	out, _ := d.verb("plan")
	if !strings.Contains(out, "default/web-"+d.host+"\n  pod: Run -> run") {
		t.Errorf("podd plan: got\n%s, want that %s keeps running", out, "default/web-"+d.host)
	}
	more := filepath.Join(d.dir, "more.yaml")
	if err := os.WriteFile(more, []byte(manifestText(d, d.pod("other", shell("main", serve("other"))))), 0o644); err != nil {
		t.Fatal(err)
	}
	edited := filepath.Join(d.dir, "edited.yaml")
	larger := d.pod("web", shell("main", serve("web")))
	larger.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")}
	if err := os.WriteFile(edited, []byte(manifestText(d, larger)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _ := d.verb("plan", edited); !strings.Contains(out, "default/web-"+d.host+"\n  replaces the running version: the QoS class would change from BestEffort to Burstable") {
		t.Errorf("podd plan of an edit: got\n%s, want that web is replaced because of its QoS class", out)
	}
	out, stderr := d.verb("plan", more)
	if !strings.Contains(out, "default/other-"+d.host) || strings.Contains(out, "web") || stderr != "" {
		t.Errorf("podd plan of a new manifest: got\n%s\nand stderr %q, want only the pod other and no stderr", out, stderr)
	}
}
