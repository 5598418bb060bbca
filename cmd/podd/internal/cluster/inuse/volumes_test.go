package inuse

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// TestVolumes checks three properties for random sequences of changes and lost requests. The new
// status names every volume that is desired or on this node. It names no other volume if the list of
// desired volumes is complete. IsReported returns true only for volumes that the status in the API
// server names.
func TestVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		handles := []string{"a", "b", "c"}
		drawHandles := func(what string) (all []string) {
			for _, h := range handles {
				if rapid.Bool().Draw(t, what+" "+h) {
					all = append(all, h)
				}
			}
			return all
		}
		nameOf := func(h string) v1.UniqueVolumeName { return refs.UniqueVolumeName("d", h) }
		var u Volumes
		var status []v1.UniqueVolumeName // volumesInUse in the API server
		var desired, onNode []string
		isComplete := false // whether desired contains all desired volumes
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				w := Desired{Names: map[v1.UniqueVolumeName]bool{}, DriversWithoutAttachment: map[string]bool{}, IsComplete: rapid.Bool().Draw(t, "complete")}
				desired, isComplete = drawHandles("desired"), w.IsComplete
				for _, h := range desired {
					w.Names[nameOf(h)] = true
				}
				u.SetDesired(w)
			case 1: // podd uses a volume on this node only after its report
				onNode = slices.DeleteFunc(drawHandles("on node"), func(h string) bool {
					reported, _ := u.IsReported(nameOf(h))
					return !reported && !slices.Contains(onNode, h)
				})
			default:
				var uses []csi.VolumeID
				for _, h := range onNode {
					uses = append(uses, csi.VolumeID{Driver: "d", Handle: h})
				}
				names, _ := u.Names(status, uses, nil)
				// Before the first call of SetDesired, DriversWithoutAttachment is nil.
				for _, h := range slices.Concat(desired, onNode) {
					if u.desired.DriversWithoutAttachment != nil && !slices.Contains(names, nameOf(h)) {
						t.Fatalf("new status: got volumes %v; want a list that contains %s, because it is desired or on this node", names, h)
					}
				}
				for _, h := range handles {
					if isComplete && !slices.Contains(desired, h) && !slices.Contains(onNode, h) && slices.Contains(names, nameOf(h)) {
						t.Fatalf("new status: got volumes %v; want a list without %s, because it is neither desired nor on this node", names, h)
					}
				}
				switch rapid.IntRange(0, 2).Draw(t, "result") {
				case 0: // the request is lost
				case 1: // the response is lost
					status = names
				case 2:
					status = names
					u.SetReported(names)
				}
			}
			for _, h := range handles {
				if reported, _ := u.IsReported(nameOf(h)); reported && !slices.Contains(status, nameOf(h)) {
					t.Fatalf("isReported(%s): got true, want false, because the status contains only %v", h, status)
				}
			}
		}
	})
}
