package cgroup

import (
	"path/filepath"
	"testing"

	"podd/reconcile/render"
)

// TestAllPods_Driver checks that after a change of the driver, the cgroup of the new driver is measured as
// soon as it exists, although the cgroup of the earlier driver remains.
func TestAllPods_Driver(t *testing.T) {
	root, points := newTestRoot(t)
	driver := driverCgroupfs
	all := AllPods{Root: root, Driver: func() string { return driver }}
	create := func(path string, mebibytes int64) {
		t.Helper()
		if err := Create(render.Cgroup{Path: path, Memory: mebibytes << 20}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(mebibytes int64) {
		t.Helper()
		if _, limit, err := all.Measure(); err != nil || limit != mebibytes<<20 {
			t.Errorf("got limit %d and error %v, want %d and no error", limit, err, mebibytes<<20)
		}
	}
	create(root+"/kubepods", 128)
	expect(128)
	driver = driverSystemd
	expect(128) // the cgroup of the new driver does not exist yet
	slice := AllPodsPaths(root, driver)[0]
	t.Cleanup(func() {
		for _, point := range points {
			removeForce(t, filepath.Join(point, filepath.Dir(slice)))
		}
	})
	create(slice, 32)
	expect(32)
	driver = driverCgroupfs
	expect(128)
}
