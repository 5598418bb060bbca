package decode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"podd/manifest"
	"podd/manifest/document"
	"podd/manifest/schema"
	"podd/manifest/wording"
)

// templatePaths contains, for each kind that creates pods, the path of its pod template.
var templatePaths = map[string]string{
	"CronJob":               "spec.jobTemplate.spec.template",
	"DaemonSet":             "spec.template",
	"Deployment":            "spec.template",
	"Job":                   "spec.template",
	"PodTemplate":           "template",
	"ReplicaSet":            "spec.template",
	"ReplicationController": "spec.template",
	"StatefulSet":           "spec.template",
}

// decodeItem decodes one object of any kind. The parameter path is the path of the object in its
// document; "" for the document itself. defaultKind is the kind of the object if the object does
// not set its kind, as in a typed list; "" if the object must set its kind.
func (d *decoder) decodeItem(v document.Value, defaultKind, path string) {
	m, ok := v.Tree.(map[string]any)
	if !ok {
		d.refuse(v.Position(), path, fmt.Sprintf("a document must be an object with apiVersion and kind, not %s", schema.TypeName(v.Tree)))
		return
	}
	kind, _ := m["kind"].(string)
	version, _ := m["apiVersion"].(string)
	if kind == "" && m["kind"] == nil {
		kind = defaultKind
	}
	if version == "" && m["apiVersion"] == nil && defaultKind != "" {
		version = versionsOf(kind)[0]
	}
	switch {
	case kind == "":
		d.refuseField(v, path, "kind", "required; podd reads Pod, ConfigMap, Secret, PersistentVolumeClaim, PersistentVolume, ClusterTrustBundle, CSIDriver and lists of them")
	case slices.Contains(versionsOf(kind), version) && d.decodeKind(v, kind, path):
	case isKnownKind(kind) && version == "":
		d.refuseField(v, path, "apiVersion", "required; write "+versionsOf(kind)[0])
	case isKnownKind(kind):
		d.refuseField(v, path, "apiVersion", fmt.Sprintf("%q has no kind %s; write %s", wording.Clip(version, 80), kind, versionsOf(kind)[0]))
	default:
		d.refuseField(v, path, "kind", unsupportedKindMessage(kind))
	}
}

// decodeKind decodes an object of a kind that podd reads. It reports whether podd reads the
// kind.
func (d *decoder) decodeKind(v document.Value, kind, path string) bool {
	switch kind {
	case "Pod":
		d.decodePod(v)
	case "ConfigMap":
		d.decodeConfigMap(v)
	case "Secret":
		d.decodeSecret(v)
	case "PersistentVolumeClaim":
		d.decodeClaim(v)
	case manifest.VolumeKind:
		d.decodeVolume(v)
	case manifest.TrustBundleKind:
		d.decodeTrustBundle(v)
	case manifest.CSIDriverKind:
		d.decodeCSIDriver(v)
	default:
		if !isKnownKind(kind) {
			return false
		}
		items, ok := v.Tree.(map[string]any)["items"]
		// Accept null, because encoding/json writes a nil list as null. Refuse "items:" without a
		// value, because the file may have been cut off there.
		if _, isList := items.([]any); !ok || !isList && (items != nil || !v.HasValue("items")) {
			d.refuseField(v, path, "items", "must be a list; write [] for an empty one")
		}
		if path != "" {
			path += "."
		}
		for i, item := range v.Items("items") {
			d.decodeItem(item, strings.TrimSuffix(kind, "List"), path+"items["+strconv.Itoa(i)+"]")
		}
	}
	return true
}

// versionsOf returns the API versions that podd reads for a kind, or for lists of the kind. podd
// reads both versions of a ClusterTrustBundle, because they have the same fields.
func versionsOf(kind string) []string {
	switch strings.TrimSuffix(kind, "List") {
	case manifest.TrustBundleKind:
		return []string{"certificates.k8s.io/v1", "certificates.k8s.io/v1beta1"}
	case manifest.CSIDriverKind:
		return []string{"storage.k8s.io/v1"}
	}
	return []string{"v1"}
}

// isKnownKind reports whether podd reads a kind, or lists of the kind.
func isKnownKind(kind string) bool {
	switch strings.TrimSuffix(kind, "List") {
	case "", "Pod", "ConfigMap", "Secret", manifest.ClaimKind, manifest.VolumeKind, manifest.TrustBundleKind, manifest.CSIDriverKind:
		return true
	}
	return false
}

// unsupportedKindMessage returns the message for a kind that podd does not read.
func unsupportedKindMessage(kind string) string {
	if path, ok := templatePaths[kind]; ok {
		return kind + " is not supported; write its " + path + " as a Pod"
	}
	if kind == "KubeletConfiguration" {
		return kind + " is not a manifest; move it out of the manifests and use --config=FILE (podd plan --config=FILE checks it)"
	}
	return wording.Clip(kind, 80) + " is not supported; remove this document from the file"
}

// refuseField refuses an object because of one of its fields. The parameter path is the path of the
// object.
func (d *decoder) refuseField(v document.Value, path, field, message string) {
	position, ok := v.KeyPosition(field)
	if !ok {
		position = v.Position()
	}
	if path != "" {
		field = path + "." + field
	}
	d.refuse(position, field, message)
}
