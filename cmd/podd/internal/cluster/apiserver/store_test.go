package apiserver

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestStore_Find checks that Find returns nil for an object that the snapshot does not contain, and that
// Set closes the channel of an earlier call.
func TestStore_Find(t *testing.T) {
	var s Store[*v1.Node]
	key, n := types.NamespacedName{Name: "n1"}, &v1.Node{}
	got, changed := s.Find(key)
	if got != nil {
		t.Errorf("before Set: got %v, want nil", got)
	}
	select {
	case <-changed:
		t.Error("before Set: the channel is closed")
	default:
	}
	s.Set(Snapshot[*v1.Node]{Items: map[types.NamespacedName]*v1.Node{key: n}})
	select {
	case <-changed:
	default:
		t.Error("after Set: the channel of the earlier call is not closed")
	}
	if got, _ := s.Find(key); got != n {
		t.Errorf("after Set: got %p, want the stored object %p", got, n)
	}
	if got, _ := s.Find(types.NamespacedName{Name: "n2"}); got != nil {
		t.Errorf("another key: got %v, want nil", got)
	}
}
