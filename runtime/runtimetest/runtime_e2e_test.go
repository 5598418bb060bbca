//go:build e2e

package runtimetest_test

import (
	"testing"

	"podd/runtime/cri"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/stack"
	"podd/runtime/runtimetest/stack/tools"
)

// TestContractContainerd holds real runtimes to the contract: the newest and
// the oldest containerd that podd works with.
func TestContractContainerd(t *testing.T) {
	for _, flavor := range []tools.Flavor{tools.Pinned, tools.Debian} {
		t.Run(string(flavor), func(t *testing.T) {
			s := stack.ForTest(t, stack.Options{Flavor: flavor})
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
					Client: c, Image: stack.BusyboxImage, Events: flavor == tools.Pinned, CgroupParent: s.CgroupParent(),
				}
			})
		})
	}
}
