package cgroup

import (
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestPodPath(t *testing.T) {
	for _, test := range []struct{ parent, driver, uid, want string }{
		{"/kubepods/burstable/podab-1", driverCgroupfs, "ab-1", "/kubepods/burstable/podab-1"},
		{"/kubepods/podab-1", "", "ab-1", "/kubepods/podab-1"},
		{"/podd/kubepods/podab-1", driverCgroupfs, "ab-1", "/podd/kubepods/podab-1"},
		{"kubepods-burstable-podab_1.slice", driverSystemd, "ab-1", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_1.slice"},
		{"kubepods-podab_1.slice", driverSystemd, "ab-1", "/kubepods.slice/kubepods-podab_1.slice"},
		{"/kubepods.slice/kubepods-podab_1.slice", driverSystemd, "ab-1", "/kubepods.slice/kubepods-podab_1.slice"},
		// rejected parents
		{"/kubepods/podab-1", driverCgroupfs, "other", ""},
		{"/kubepods", driverCgroupfs, "ab-1", ""},
		{"/", driverCgroupfs, "ab-1", ""},
		{"", driverCgroupfs, "ab-1", ""},
		{"kubepods/podab-1", driverCgroupfs, "ab-1", ""},
		{"/kubepods/../podab-1", driverCgroupfs, "ab-1", ""},
		{"/kubepods/podab-1/", driverCgroupfs, "ab-1", ""},
		{"/kubepods/pod../..", driverCgroupfs, "../..", ""},
		{"kubepods-podab_1", driverSystemd, "ab-1", ""},
		{"kubepods--podab_1.slice", driverSystemd, "ab-1", ""},
		{".slice", driverSystemd, "ab-1", ""},
		{"system.slice", driverSystemd, "ab-1", ""},
	} {
		got, err := podPath(test.parent, test.driver, types.UID(test.uid))
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("podPath(%q, %q, %q) = %q, %v; want %q", test.parent, test.driver, test.uid, got, err, test.want)
		}
	}
}

// TestPodPathProperties checks that podPath accepts a path that contains the UID of the pod, for
// each of the two drivers. Every path that podPath returns must be absolute and in its shortest
// form.
func TestPodPathProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uid := types.UID(rapid.StringMatching(`[A-Za-z0-9-]{1,63}`).Draw(t, "uid"))
		at, err := podPath("/kubepods/pod"+string(uid), driverCgroupfs, uid)
		if err != nil || path.Dir(at) != "/kubepods" {
			t.Fatalf("cgroupfs: got %q (error %v), want a directory of /kubepods", at, err)
		}
		name := "kubepods-besteffort-pod" + strings.ReplaceAll(string(uid), "-", "_") + ".slice"
		at, err = podPath(name, driverSystemd, uid)
		if err != nil || path.Dir(at) != "/kubepods.slice/kubepods-besteffort.slice" {
			t.Fatalf("systemd: got %q (error %v), want a directory of /kubepods.slice/kubepods-besteffort.slice", at, err)
		}
		for _, driver := range []string{driverCgroupfs, driverSystemd} {
			parent := rapid.String().Draw(t, "parent")
			if at, err := podPath(parent, driver, uid); err == nil && (!path.IsAbs(at) || path.Clean(at) != at || path.Dir(at) == at) {
				t.Fatalf("%s, parent %q: got path %q, want a clean absolute path that is not /, or an error", driver, parent, at)
			}
		}
	})
}
