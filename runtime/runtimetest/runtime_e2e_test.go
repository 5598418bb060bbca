//go:build e2e

package runtimetest_test

import (
	"testing"

	"podd/runtime/cri"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// TestContractReal tests real runtimes: the newest and the oldest containerd that podd
// supports, and CRI-O.
func TestContractReal(t *testing.T) {
	for _, flavor := range tools.Flavors() {
		t.Run(string(flavor), func(t *testing.T) {
			s := stack.ForTest(t, stack.Options{Flavor: flavor})
			if err := s.OpenDirs(); err != nil {
				t.Fatal(err)
			}
			c, err := cri.Dial(cri.Options{Endpoint: s.Endpoint()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			runtimetest.TestRuntime(t, func(*testing.T) runtimetest.Subject {
				return runtimetest.Subject{
					Client: c, Image: stack.BusyboxImage, HasEvents: flavor != tools.Debian, CgroupParent: s.CgroupParent(),
				}
			})
		})
	}
}
