//go:build vm

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// expected lists the pods that must run after the next boot, one a line.
var expected = filepath.Join(notes, "expected")

// expect has the next boot wait for these pods.
func expect(t testing.TB, names ...string) {
	t.Helper()
	if err := os.WriteFile(expected, []byte(strings.Join(names, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	unix.Sync()
}

// TestStart starts what the first power cut meets: every class, several
// containers, an init container, and one that has finished.
func TestStart(t *testing.T) {
	both := container("first", forever, "requests: {cpu: 10m}") + container("second", forever, "")
	apply(t, map[string]string{
		"web":   pod("web", "", container("web", forever, "")),
		"two":   pod("two", "  initContainers:\n"+container("init", "exit 0", ""), both),
		"exact": pod("exact", "", container("exact", forever, "limits: {cpu: 200m, memory: 32Mi}")),
		"job":   pod("job", "  restartPolicy: Never\n", container("job", "exit 0", "")),
	})
	untilReady(t, "web", "two", "exact", "job")
	expect(t, "web", "two", "exact", "job")
}

// TestAfterCut: systemd has started podd, and what was expected runs, each
// container started once in this boot, and nothing is left of the last one. What
// had finished has not run again.
func TestAfterCut(t *testing.T) {
	text, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(text))
	untilClean(t, names...)
	now, err := look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name := range now.runs {
		_, container, ok := strings.Cut(name, "/")
		if !ok {
			continue
		}
		if _, n := starts(t, container); n != 1 {
			t.Errorf("%s started %d times in this boot", name, n)
		}
	}
	if all, _ := starts(t, "job"); all != 1 {
		t.Errorf("the job that had finished ran %d times", all)
	}
}

// TestBreakManifest breaks one: what runs is the last good version.
func TestBreakManifest(t *testing.T) {
	apply(t, map[string]string{"web": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: "})
	eventually(t, "podd has seen the broken manifest", func() error {
		out, err := system("/payload/podd ps")
		if err == nil && !strings.Contains(out, "refused") {
			err = errors.New(out)
		}
		return err
	})
	untilReady(t, "web", "two", "exact", "job")
	expect(t, "web", "two", "exact", "job")
}

// TestChurn has pods come and go, and waits for none of it.
func TestChurn(t *testing.T) {
	remove(t, "two", "exact")
	texts := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		texts[name] = pod(name, "", container(name, forever, ""))
	}
	apply(t, texts)
	expect(t, "web", "job", "a", "b", "c")
}
