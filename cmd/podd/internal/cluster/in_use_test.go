package cluster

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"podd/manifest/refs"
	"podd/reconcile/volume/csi"
)

// Whatever is wanted, here, sent and answered: a volume that is said to be reported is
// one that the cluster's status names, and that it goes on to name while anybody wants
// it. What is here is named, and what nobody has is not, once all is known.
func TestInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		handles := []string{"a", "b", "c"}
		some := func(what string) (all []string) {
			for _, h := range handles {
				if rapid.Bool().Draw(t, what+" "+h) {
					all = append(all, h)
				}
			}
			return all
		}
		nameOf := func(h string) v1.UniqueVolumeName { return refs.UniqueVolume("d", h) }
		var u volumesInUse
		var status []v1.UniqueVolumeName // the cluster's
		var wanted, here []string
		whole := false
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				w := desiredVolumes{names: map[v1.UniqueVolumeName]bool{}, unattached: map[string]bool{}, isComplete: rapid.Bool().Draw(t, "whole")}
				wanted, whole = some("wants"), w.isComplete
				for _, h := range wanted {
					w.names[nameOf(h)] = true
				}
				u.setDesired(w)
			case 1: // only what is reported may come here
				here = slices.DeleteFunc(some("here"), func(h string) bool { is, _ := u.isReported(nameOf(h)); return !is && !slices.Contains(here, h) })
			default:
				var uses []csi.Use
				for _, h := range here {
					uses = append(uses, csi.Use{Driver: "d", Handle: h})
				}
				seen := status
				names, _ := u.names(seen, uses)
				for _, h := range slices.Concat(wanted, here) {
					if u.desired.unattached != nil && !slices.Contains(names, nameOf(h)) {
						t.Fatalf("%s is wanted or here, and the status is to name %v", h, names)
					}
				}
				for _, h := range handles {
					if whole && !slices.Contains(wanted, h) && !slices.Contains(here, h) && slices.Contains(names, nameOf(h)) {
						t.Fatalf("nobody has %s, and the status is to name %v", h, names)
					}
				}
				switch rapid.IntRange(0, 2).Draw(t, "answer") {
				case 0: // lost on its way
				case 1: // only the answer was
					status = names
				case 2:
					status = names
					u.setReported(names)
				}
			}
			for _, h := range handles {
				if is, _ := u.isReported(nameOf(h)); is && !slices.Contains(status, nameOf(h)) {
					t.Fatalf("%s is said to be reported, the status names %v", h, status)
				}
			}
		}
	})
}
