package metrics

import (
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// tellVolumes: a sandbox is made when all volumes of its pod are there, and they
// stay for as long as it lives.
func tellVolumes(v *server.View, tell teller) {
	wanted, present := map[string]int{}, map[string]int{}
	for _, p := range v.Pods {
		for i := range p.Pod.Spec.Volumes {
			kind := pluginOf(&p.Pod.Spec.Volumes[i])
			if p.Pod.DeletionTimestamp == nil && p.Pod.Status.Phase != v1.PodSucceeded && p.Pod.Status.Phase != v1.PodFailed {
				wanted[kind]++
			}
			if p.Sandbox != "" {
				present[kind]++
			}
		}
	}
	for state, counts := range map[string]map[string]int{"desired_state_of_world": wanted, "actual_state_of_world": present} {
		for kind, n := range counts {
			tell(volumes, float64(n), kind, state)
		}
	}
}

// pluginOf is a kubelet's name for what serves a volume.
func pluginOf(v *v1.Volume) string {
	switch s := &v.VolumeSource; {
	case s.EmptyDir != nil:
		return "kubernetes.io/empty-dir"
	case s.HostPath != nil:
		return "kubernetes.io/host-path"
	case s.ConfigMap != nil:
		return "kubernetes.io/configmap"
	case s.Secret != nil:
		return "kubernetes.io/secret"
	case s.Projected != nil:
		return "kubernetes.io/projected"
	case s.DownwardAPI != nil:
		return "kubernetes.io/downward-api"
	case s.NFS != nil:
		return "kubernetes.io/nfs"
	case s.CSI != nil:
		return "kubernetes.io/csi:" + s.CSI.Driver
	case s.Image != nil:
		return "kubernetes.io/image"
	}
	return "kubernetes.io/local-volume" // of a claim, a directory of this machine
}
