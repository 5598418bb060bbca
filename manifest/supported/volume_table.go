package supported

import (
	"strings"
	"sync"

	"podd/manifest"
)

// noAttributesClass is the message for volumeAttributesClassName.
const noAttributesClass = "volume attributes classes require a cluster; remove this field"

// Messages for fields of CSI volumes that only a cluster can use.
const (
	noController    = "podd runs no CSI controller, so nothing would use this Secret; remove this field"
	noNodeExpansion = "podd does not expand volumes without a cluster, because only the controller of the driver can start an expansion; remove this field"
	noDriverTokens  = "there is no cluster to issue tokens for the driver; remove this field if the driver works without them"
)

// claimFields is the table for PersistentVolumeClaims.
var claimFields = []row{
	{"apiVersion", supported, ""},
	{"kind", supported, ""},
	{"metadata", supported, ""},
	{"status", supported, ""}, // accepted and ignored, like the status of a pod

	{"spec.accessModes", supported, ""},
	{"spec.selector", supported, ""},
	{"spec.resources", supported, ""},
	{"spec.volumeName", supported, ""},
	{"spec.storageClassName", supported, ""},
	{"spec.volumeMode", supported, ""},
	{"spec.dataSource", refusedWithNote, noInitialContent},
	{"spec.dataSourceRef", refusedWithNote, noInitialContent},
	{"spec.volumeAttributesClassName", refusedWithNote, noAttributesClass},
}

// volumeFields is the table for PersistentVolumes. It does not contain the unsupported sources
// that volumes of pods can have too, because objectRules copies them from the table for pods.
var volumeFields = []row{
	{"apiVersion", supported, ""},
	{"kind", supported, ""},
	{"metadata", supported, ""},
	{"status", supported, ""},

	{"spec.accessModes", supported, ""},
	{"spec.capacity", supported, ""},
	{"spec.claimRef", supported, ""},
	{"spec.storageClassName", supported, ""},
	{"spec.volumeMode", supported, ""},
	{"spec.hostPath", supported, ""},
	{"spec.local", supported, ""},
	{"spec.nfs", supported, ""},
	{"spec.iscsi", supported, ""},
	{"spec.fc", supported, ""},
	{"spec.csi", supported, ""},
	{"spec.csi.controllerPublishSecretRef", refusedWithNote, noController},
	{"spec.csi.controllerExpandSecretRef", refusedWithNote, noController},
	{"spec.csi.nodeExpandSecretRef", refusedWithNote, noNodeExpansion},
	{"spec.persistentVolumeReclaimPolicy", supported, ""},
	{"spec.nodeAffinity", supported, ""},
	{"spec.mountOptions", supported, ""}, // not for local and hostPath; see validateMountOptions
	{"spec.volumeAttributesClassName", refusedWithNote, noAttributesClass},
}

// driverFields is the table for CSIDrivers.
var driverFields = []row{
	{"apiVersion", supported, ""},
	{"kind", supported, ""},
	{"metadata", supported, ""},

	{"spec.attachRequired", supported, ""},
	{"spec.podInfoOnMount", supported, ""},
	{"spec.volumeLifecycleModes", supported, ""},
	{"spec.fsGroupPolicy", supported, ""},
	{"spec.requiresRepublish", supported, ""},
	{"spec.seLinuxMount", supported, ""},
	{"spec.storageCapacity", acceptedWithWarning, schedulerOnly},
	{"spec.preventPodSchedulingIfMissing", acceptedWithWarning, schedulerOnly},
	{"spec.nodeAllocatableUpdatePeriodSeconds", acceptedWithWarning, schedulerOnly},
	{"spec.tokenRequests", refusedWithNote, noDriverTokens},
	{"spec.serviceAccountTokenInSecrets", refusedWithNote, noDriverTokens},
}

// objectRules contains the rules by kind, for kinds other than Pod.
var objectRules = sync.OnceValue(func() map[string]*rule {
	claim, volume, driver := &rule{}, &rule{}, &rule{}
	for _, r := range claimFields {
		claim.add(r)
	}
	for _, r := range driverFields {
		driver.add(r)
	}
	for _, r := range volumeFields {
		volume.add(r)
	}
	for _, r := range podFields {
		name, isVolume := strings.CutPrefix(r.path, "spec.volumes[].")
		if isVolume && r.verdict == refusedWithNote && !strings.Contains(name, ".") {
			volume.add(row{"spec." + name, refusedWithNote, r.note})
		}
	}
	return map[string]*rule{manifest.ClaimKind: claim, manifest.VolumeKind: volume, manifest.CSIDriverKind: driver}
})
