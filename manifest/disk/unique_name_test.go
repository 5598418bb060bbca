package disk

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestUniqueName compares the names with those of Kubernetes.
func TestUniqueName(t *testing.T) {
	iscsi := &v1.ISCSIPersistentVolumeSource{TargetPortal: "192.0.2.1:3260", IQN: "iqn.2001-04.com.example:disk", Lun: 3}
	if got, want := UniqueISCSIName(iscsi), "kubernetes.io/iscsi/192.0.2.1:3260:iqn.2001-04.com.example:disk:3"; string(got) != want {
		t.Errorf("iscsi: got %s, want %s", got, want)
	}
	for want, s := range map[string]*v1.FCVolumeSource{
		"kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:0": {TargetWWNs: []string{"50060e801049cfd1", "50060e801049cfd2"}, Lun: new(int32)},
		"kubernetes.io/fc/[3600508b400105e21]":                   {WWIDs: []string{"3600508b400105e21"}},
	} {
		if got := UniqueFCName(s); string(got) != want {
			t.Errorf("fc: got %s, want %s", got, want)
		}
	}
}
