//go:build e2e

package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// TestSlices checks the cgroup driver systemd. Each pod must have a slice with the limits of the pod,
// and the slice must keep these limits when systemd reloads its configuration. The containers must be
// scopes in the slice. When the pods are removed, systemd must not list their slices any more.
func TestSlices(t *testing.T) {
	apply(t, map[string]string{
		"burstable": pod("burstable", "", container("burstable", forever, "requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 300m, memory: 48Mi}")),
		"exact":     pod("exact", "", container("exact", forever, "limits: {cpu: 200m, memory: 32Mi}")),
		"idle":      pod("idle", "", container("idle", forever, "")),
	})
	pods := untilReady(t, "burstable", "exact", "idle")
	// A reload may make systemd write its own limits again, which must be equal to those of podd.
	if _, err := system("systemctl daemon-reload"); err != nil {
		t.Fatal(err)
	}
	now, err := getInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pod, class string
		files      map[string]string
	}{
		{"burstable", "kubepods-burstable", map[string]string{"cpu.weight": "4", "cpu.max": "30000 100000", "memory.max": "50331648"}},
		{"exact", "kubepods", map[string]string{"cpu.weight": "8", "cpu.max": "20000 100000", "memory.max": "33554432"}},
		{"idle", "kubepods-besteffort", map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "memory.max": "max"}},
	} {
		at := slice(tt.class, pods[tt.pod].Pod)
		for file, want := range tt.files {
			text, err := os.ReadFile(filepath.Join(at, file))
			if got := strings.TrimSpace(string(text)); err != nil || got != want {
				t.Errorf("%s of %s: got %q, error %v; want %q", file, tt.pod, got, err, want)
			}
		}
		for _, id := range []string{now.running[tt.pod], now.running[tt.pod+"/"+tt.pod]} {
			if _, err := os.Stat(filepath.Join(at, "cri-containerd-"+id+".scope")); err != nil {
				t.Errorf("scope of pod %s: got error %v, want it to exist", tt.pod, err)
			}
		}
		if state, err := system("systemctl is-active " + filepath.Base(at)); err != nil {
			t.Errorf("slice of %s: got %s, error %v; want active", tt.pod, state, err)
		}
	}
	remove(t, "burstable", "exact", "idle")
	untilClean(t)
}

// slice returns the cgroup of a pod of a QoS class.
func slice(class string, pod *v1.Pod) string {
	name := class + "-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice"
	if class != "kubepods" {
		class = "kubepods.slice/" + class
	}
	return filepath.Join("/sys/fs/cgroup", class+".slice", name)
}

// cgroupFile reads a file in the cgroup of a container or, if container is "", in the cgroup of
// the pod.
func cgroupFile(t testing.TB, class string, p *server.PodView, container, file string) string {
	t.Helper()
	at := slice(class, p.Pod)
	if container != "" {
		now, err := getInventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at = filepath.Join(at, "cri-containerd-"+now.running[trimNode(p.Pod.Name)+"/"+container]+".scope")
	}
	text, err := os.ReadFile(filepath.Join(at, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
