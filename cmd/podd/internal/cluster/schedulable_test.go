package cluster

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// TestFollowSchedulable checks that podd calls OnSchedulable once for each change, even if the cached
// Node is removed for a time because podd opens a new connection to the API server.
func TestFollowSchedulable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []bool
		c := New(Options{NodeName: "n1", OnSchedulable: func(schedulable bool) { got = append(got, schedulable) }})
		ctx, cancel := context.WithCancel(t.Context())
		go c.followSchedulable(ctx)
		synctest.Wait()
		set := func(unschedulable bool) {
			n := &v1.Node{Spec: v1.NodeSpec{Unschedulable: unschedulable}}
			c.nodes.Set(apiserver.Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{{Name: "n1"}: n}})
			synctest.Wait()
		}
		set(false)
		set(true)
		c.nodes.Set(apiserver.Snapshot[*v1.Node]{})
		synctest.Wait()
		set(true)
		set(false)
		cancel()
		if want := []bool{false, true}; !slices.Equal(got, want) {
			t.Errorf("OnSchedulable: got calls %v, want %v", got, want)
		}
	})
}
