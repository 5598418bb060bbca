package manifest

// Traits define how podd treats a pod, where this depends on the kind of the pod's source. Package
// decode sets them; other packages read the Traits of a pod instead of the kind of its source. The
// zero value means a pod of a file or URL, as a kubelet runs its static pods.
type Traits struct {
	// RunsOnce means that the pod never runs again after it has finished, has failed, or was
	// stopped by a shutdown of the node. A controller creates another pod instead. If a kubelet
	// already runs a pod with RunsOnce and a restart policy other than Always, podd takes over the
	// sandbox of the kubelet, because the policy may forbid a second run. Without RunsOnce, a
	// finished pod runs again after a change of its cpu or memory. A pod that was stopped by a
	// shutdown runs again after the shutdown.
	RunsOnce bool
	// KeepsVersion means that the UID identifies the version: no edit of the pod and no
	// change of an object that it refers to makes a new version. Without KeepsVersion, an
	// edit replaces the pod, and so does a change of its objects if the pod has
	// AnnotationRestartOnChange.
	KeepsVersion bool
	// UpdatesMetadataInPlace means that edits of labels and annotations are applied to the running
	// pod. podd also updates those files of the pod that contain labels or annotations. Without
	// UpdatesMetadataInPlace, an edit of labels or annotations is a new version.
	UpdatesMetadataInPlace bool
	// FailsIfRejected means that the pod fails if admission rejects it, because the pod can run
	// on another node. Admission makes the checks of a kubelet, in the same order and with the
	// same reasons and messages (pkg/kubelet/lifecycle/predicate.go). It admits these pods
	// after all other pods, in the order of their creation times. It checks an admitted pod
	// again only if the pod requests more resources, or if the pod has stopped while podd did
	// not run. Without FailsIfRejected, a rejected pod waits until it can run.
	FailsIfRejected bool
	// IsPreemptible means that the pod may be stopped to make room for a critical pod. A
	// preemptible pod is itself critical only if its priority is not lower than the value of
	// system-cluster-critical (IsCriticalPod in pkg/kubelet/types/pod_update.go). Without
	// IsPreemptible, the pod is always critical, as a static pod is for a kubelet.
	IsPreemptible bool
	// HasStateAtSource means that the source stores the pod's status and ephemeral containers:
	//
	//   - If podd has no state of the pod, it continues with the stored phase, start time and
	//     restart counts.
	//   - Only the source can add ephemeral containers.
	//   - The status has the same content as the status of a kubelet, and includes exit codes
	//     even after the deletion of the pod.
	//
	// Without HasStateAtSource, podd's journal stores the state, podd's own API adds ephemeral
	// containers, and the status also contains the message of a waiting pod.
	HasStateAtSource bool
	// DeletedOnlyBySource means that a pod is deleted only by a request to its source. The source
	// accepts another pod with the same name only after the deletion. So if the source has a pod
	// with another UID, the earlier pod was deleted, and the new pod replaces it at once. If podd
	// has not yet read from the source whether a running pod is still desired, the resources of the
	// pod stay reserved. Without DeletedOnlyBySource, a pod of the same name is an edit: the
	// earlier version keeps running until the new one can start.
	DeletedOnlyBySource bool
	// HasRefsFromServer means that an API server returns the objects that the pod refers to. They
	// include tokens, RuntimeClasses and claims that the cluster has bound. Without
	// HasRefsFromServer, the pod uses objects in manifests of the same source only, and podd binds
	// the claims.
	HasRefsFromServer bool
	// HasEphemeralClaims means that a controller creates a PersistentVolumeClaim for each
	// generic ephemeral volume. Without HasEphemeralClaims, such a volume is a directory that
	// is removed with the pod.
	HasEphemeralClaims bool
}

// KindTraits returns the traits of pods from a kind of source: KindFile, KindURL or KindAPI.
// Sandboxes record the kind (AnnotationConfigSource), so the traits of a pod are available even if
// its source does not contain the pod any more.
func KindTraits(kind string) Traits {
	if kind != KindAPI {
		return Traits{}
	}
	return Traits{
		RunsOnce: true, KeepsVersion: true, UpdatesMetadataInPlace: true, FailsIfRejected: true, IsPreemptible: true,
		HasStateAtSource: true, DeletedOnlyBySource: true, HasRefsFromServer: true, HasEphemeralClaims: true,
	}
}
