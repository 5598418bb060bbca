package supported

import "sync"

// unsupportedInCluster is the message for unsupported fields of pods of a cluster.
const unsupportedInCluster = "is not supported for pods of a cluster"

// windowsOnlyInCluster is the message for fields that only a Windows node supports. A kubelet on
// Linux also runs pods with these fields, because a pod may be written for Linux and Windows nodes.
const windowsOnlyInCluster = "has no effect, because this node runs Linux"

// clusterFields lists the rows that replace rows of podFields for pods of an API server. They
// differ because the cluster has already scheduled these pods, and podd can look up objects in the
// cluster.
var clusterFields = []row{
	{"metadata.finalizers", supported, ""},
	{"metadata.generateName", supported, ""},
	{"spec.serviceAccountName", supported, ""},
	{"spec.serviceAccount", supported, ""},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", supported, ""},
	{"spec.affinity.podAffinity", supported, ""},
	{"spec.affinity.podAntiAffinity", supported, ""},
	{"spec.topologySpreadConstraints", supported, ""},
	{"spec.schedulingGates", supported, ""},     // a pod is bound to a node only after its gates were removed
	{"spec.os.name", supported, ""},             // checked by admission
	{"spec.ephemeralContainers", supported, ""}, // the API server allows a user only to add ephemeral containers
	{"spec.securityContext.windowsOptions", acceptedWithWarning, windowsOnlyInCluster},
	{"spec.resourceClaims", refusedWithNote, unsupportedInCluster},
	{"spec.resources.claims", refusedWithNote, unsupportedInCluster},
	{"spec.volumes[].projected.sources[].serviceAccountToken", supported, ""},
	{"spec.volumes[].projected.sources[].serviceAccountToken.user", refusedWithNote, gateDisabled},
	{"spec.volumes[].projected.sources[].podCertificate", supported, ""},
	{"spec.volumes[].projected.sources[].podCertificate.user", refusedWithNote, gateDisabled},
	{"spec.volumes[].ephemeral", supported, ""}, // the cluster creates the claim
	// In a cluster, CSI drivers provide the in-tree volumes of cloud providers; see package intree.
	{"spec.volumes[].awsElasticBlockStore", supported, ""},
	{"spec.volumes[].azureDisk", supported, ""},
	{"spec.volumes[].azureFile", supported, ""},
	{"spec.volumes[].cinder", supported, ""},
	{"spec.volumes[].gcePersistentDisk", supported, ""},
	{"spec.volumes[].portworxVolume", supported, ""},
	{"spec.volumes[].vsphereVolume", supported, ""},
}

var clusterContainerFields = []row{
	{"resources.claims", refusedWithNote, unsupportedInCluster},
	{"securityContext.windowsOptions", acceptedWithWarning, windowsOnlyInCluster},
}

var clusterRules = sync.OnceValue(func() *rule {
	root := newPodRules()
	for _, r := range clusterFields {
		root.replaceSubtree(r)
	}
	for _, list := range containerPrefixes {
		for _, r := range clusterContainerFields {
			r.path = list + r.path
			root.replaceSubtree(r)
		}
	}
	return root
})

// replaceSubtree adds a row whose verdict also applies to all fields below its field. It removes the
// rows of the fields below.
func (r *rule) replaceSubtree(rw row) {
	r.add(rw).fields = nil
}
