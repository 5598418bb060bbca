//go:build e2e

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// expected is a file with the names of the pods that must run after the next boot, one per
// line.
var expected = filepath.Join(notes, "expected")

// expectAfterBoot records the pods that must run after the next boot.
func expectAfterBoot(t testing.TB, names ...string) {
	t.Helper()
	if err := os.WriteFile(expected, []byte(strings.Join(names, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
}

// TestStart starts the pods that must run again after the first power cut: a pod of each QoS
// class, a pod with several containers, a pod with an init container, and a finished pod.
func TestStart(t *testing.T) {
	both := container("first", forever, "requests: {cpu: 10m}") + container("second", forever, "")
	apply(t, map[string]string{
		"web":   pod("web", "", container("web", forever, "")),
		"two":   pod("two", "  initContainers:\n"+container("init", "exit 0", ""), both),
		"exact": pod("exact", "", container("exact", forever, "limits: {cpu: 200m, memory: 32Mi}")),
		"job":   pod("job", "  restartPolicy: Never\n", container("job", "exit 0", "")),
	})
	untilReady(t, "web", "two", "exact", "job")
	expectAfterBoot(t, "web", "two", "exact", "job")
}

// TestAfterCut checks that systemd has started podd and that the expected pods run. Each
// container must have been started once in this boot, and nothing of the previous boot may be
// left. A finished pod must not run again.
func TestAfterCut(t *testing.T) {
	text, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	untilClean(t, names...)
	now, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name := range now.running {
		_, container, ok := strings.Cut(name, "/")
		if !ok {
			continue
		}
		if _, n := starts(t, container); n != 1 {
			t.Errorf("%s: got %d starts in this boot, want 1", name, n)
		}
	}
	if all, _ := starts(t, "job"); all != 1 {
		t.Errorf("finished job: got %d runs, want 1", all)
	}
}

// TestBreakManifest makes a manifest invalid. The last valid version must run after the next
// boot.
func TestBreakManifest(t *testing.T) {
	apply(t, map[string]string{"web": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: "})
	eventually(t, "podd shows the invalid manifest", func() error {
		out, err := system("/payload/podd ps")
		if err == nil && !strings.Contains(out, "refused") {
			err = errors.New(out)
		}
		return err
	})
	untilReady(t, "web", "two", "exact", "job")
	expectAfterBoot(t, "web", "two", "exact", "job")
}

// TestChurn removes and adds pods just before a power cut, without waiting for podd.
func TestChurn(t *testing.T) {
	remove(t, "two", "exact")
	texts := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		texts[name] = pod(name, "", container(name, forever, ""))
	}
	apply(t, texts)
	expectAfterBoot(t, "web", "job", "a", "b", "c")
}
