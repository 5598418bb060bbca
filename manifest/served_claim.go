package manifest

import (
	"strings"
	"sync"
)

// noClass is said of what only a cluster could have done.
const noClass = "there is no cluster that would have a storage driver change the volume; remove it"

// servedClaimFields is the served table of a PersistentVolumeClaim.
var servedClaimFields = []row{
	{"apiVersion", served, ""},
	{"kind", served, ""},
	{"metadata", served, ""},
	{"status", served, ""}, // ignored, as that of a pod

	{"spec.accessModes", served, ""},
	{"spec.selector", served, ""},
	{"spec.resources", served, ""},
	{"spec.volumeName", served, ""},
	{"spec.storageClassName", served, ""},
	{"spec.volumeMode", served, ""},
	{"spec.dataSource", refused, noFilling},
	{"spec.dataSourceRef", refused, noFilling},
	{"spec.volumeAttributesClassName", refused, noClass},
}

// servedVolumeFields is that of a PersistentVolume, but for the sources that a
// volume of a pod can have as well: podd says the same of both.
var servedVolumeFields = []row{
	{"apiVersion", served, ""},
	{"kind", served, ""},
	{"metadata", served, ""},
	{"status", served, ""},

	{"spec.accessModes", served, ""},
	{"spec.capacity", served, ""},
	{"spec.claimRef", served, ""},
	{"spec.storageClassName", served, ""},
	{"spec.volumeMode", served, ""},
	{"spec.hostPath", served, ""},
	{"spec.local", served, ""},
	{"spec.nfs", served, ""},
	{"spec.persistentVolumeReclaimPolicy", served, ""},
	{"spec.nodeAffinity", served, ""},
	{"spec.mountOptions", served, ""}, // of nfs; see validateMountOptions
	{"spec.volumeAttributesClassName", refused, noClass},
}

// servedObjects are the rules of what has a served table beside the pods.
var servedObjects = sync.OnceValue(func() map[string]*rule {
	claim, volume := &rule{}, &rule{}
	for _, r := range servedClaimFields {
		claim.add(r)
	}
	for _, r := range servedVolumeFields {
		volume.add(r)
	}
	for _, r := range servedFields {
		name, isVolume := strings.CutPrefix(r.path, "spec.volumes[].")
		if isVolume && r.verdict == refused && !strings.Contains(name, ".") {
			volume.add(row{"spec." + name, refused, r.note})
		}
	}
	return map[string]*rule{kindClaim: claim, kindVolume: volume}
})
