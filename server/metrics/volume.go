package metrics

import (
	v1 "k8s.io/api/core/v1"

	"podd/server"
)

// collectVolumes emits the number of desired and of existing volumes. It assumes that all volumes
// of a pod exist while the pod has a sandbox.
func collectVolumes(v *server.View, emit emitter) {
	desired, present := map[string]int{}, map[string]int{}
	for _, p := range v.Pods {
		for i := range p.Pod.Spec.Volumes {
			kind := pluginName(&p.Pod.Spec.Volumes[i])
			if p.Pod.DeletionTimestamp == nil && p.Pod.Status.Phase != v1.PodSucceeded && p.Pod.Status.Phase != v1.PodFailed {
				desired[kind]++
			}
			if p.SandboxID != "" {
				present[kind]++
			}
		}
	}
	for state, counts := range map[string]map[string]int{"desired_state_of_world": desired, "actual_state_of_world": present} {
		for kind, n := range counts {
			emit(volumeCountDesc, float64(n), kind, state)
		}
	}
}

// pluginName returns the kubelet's name for the plugin of a volume.
func pluginName(v *v1.Volume) string {
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
	case s.ISCSI != nil:
		return "kubernetes.io/iscsi"
	case s.FC != nil:
		return "kubernetes.io/fc"
	case s.CSI != nil:
		return "kubernetes.io/csi:" + s.CSI.Driver
	case s.Image != nil:
		return "kubernetes.io/image"
	}
	return "kubernetes.io/local-volume" // a PersistentVolumeClaim that is bound to a directory of the host
}
