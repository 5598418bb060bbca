//go:build e2e

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// notes is a directory on the host. When a container starts, it appends a line with the boot ID to
	// the file notes/CONTAINER.
	notes = "/var/lib/machine-test"
	node  = "podd-vm"
)

// trimNode returns the name of a pod without the node name.
func trimNode(name string) string { return strings.TrimSuffix(name, "-"+node) }

// container returns the line of a manifest that defines a container. The container appends a line to
// its file in notes and then runs script.
func container(name, script, resources string) string {
	start := `echo $0 $(cat /proc/sys/kernel/random/boot_id) >>/notes/` + name + `; sync -f /notes; ` + script
	return fmt.Sprintf("  - {name: %s, image: podd.test/busybox:1, command: [sh, -c, %q, %s], resources: {%s}, volumeMounts: [{name: notes, mountPath: /notes}]}\n",
		name, start, name, resources)
}

const forever = "trap 'exit 0' TERM; sleep 36000 & wait"

// pod returns the manifest of a pod. The parameter more contains additional lines of the spec.
func pod(name, more string, containers ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  terminationGracePeriodSeconds: 2\n  volumes: [{name: notes, hostPath: {path: %s, type: DirectoryOrCreate}}]\n%s  containers:\n%s",
		name, notes, more, strings.Join(containers, ""))
}

func file(name string) string { return filepath.Join(manifests, name+".yaml") }

// syncManifests writes the file system of the manifests to the disk. sync(2) would also wait for
// other file systems, such as an NFS mount whose server does not respond.
func syncManifests(t testing.TB) {
	t.Helper()
	dir, err := os.Open(filepath.Dir(manifests))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		t.Fatal(err)
	}
}

// apply writes manifests, by the names of their pods, and syncs them to the disk.
func apply(t testing.TB, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		next := filepath.Join(filepath.Dir(manifests), "next")
		if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file(name)); err != nil {
			t.Fatal(err)
		}
	}
	syncManifests(t)
}

func remove(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	syncManifests(t)
}

// starts returns the number of starts of a container in all boots and in this boot.
func starts(t testing.TB, name string) (all, now int) {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(notes, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n"), strings.Count(string(text), strings.TrimSpace(string(boot)))
}
