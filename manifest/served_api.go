package manifest

import "sync"

// notYet is said of what pods of a cluster may ask for and podd lacks.
const (
	notYet  = "is not served yet for pods of a cluster"
	ungated = "is behind a gate that Kubernetes 1.34 has off"
)

// servedAPI are the rows of the table that pods of an API server have otherwise:
// there is a cluster, which has scheduled them and can be asked.
var servedAPI = []row{
	{"metadata.finalizers", served, ""},
	{"metadata.generateName", served, ""},
	{"spec.serviceAccountName", served, ""},
	{"spec.serviceAccount", served, ""},
	{"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", served, ""},
	{"spec.affinity.podAffinity", served, ""},
	{"spec.affinity.podAntiAffinity", served, ""},
	{"spec.topologySpreadConstraints", served, ""},
	{"spec.schedulingGates", served, ""},     // it is bound, so they are gone
	{"spec.os.name", served, ""},             // admission looks at it
	{"spec.ephemeralContainers", served, ""}, // the API server lets them only be added
	{"spec.hostnameOverride", refused, ungated},
	{"spec.resourceClaims", refused, notYet},
	{"spec.resources.claims", refused, notYet},
	{"spec.volumes[].projected.sources[].serviceAccountToken", served, ""},
	{"spec.volumes[].projected.sources[].clusterTrustBundle", refused, ungated},
	{"spec.volumes[].projected.sources[].podCertificate", refused, ungated},
	{"spec.volumes[].ephemeral", served, ""}, // the cluster makes the claim
	{"spec.volumes[].csi", served, ""},
}

var servedAPIContainers = []row{
	{"env[].valueFrom.fileKeyRef", refused, ungated},
	{"resources.claims", refused, notYet},
}

var apiRules = sync.OnceValue(func() *rule {
	root := rules()
	for _, r := range servedAPI {
		root.replace(r)
	}
	for _, list := range containerRows {
		for _, r := range servedAPIContainers {
			r.path = list + r.path
			root.replace(r)
		}
	}
	return root
})

// replace has a row decide about its field as a whole.
func (r *rule) replace(rw row) {
	r.add(rw).fields = nil
}
