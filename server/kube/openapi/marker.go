package openapi

import (
	"reflect"
	"strings"
)

const (
	core = "io.k8s.api.core.v1."
	meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
)

// mergingOf is how two versions of a field are made one. Of a list the tags for
// strategic merge patches tell it, and server-side apply follows them but for
// listTypes and listKeys.
func mergingOf(t reflect.Type, f reflect.StructField, name string) Merging {
	field := fieldName(t, name)
	m := Merging{
		PatchStrategy: f.Tag.Get("patchStrategy"),
		PatchMergeKey: f.Tag.Get("patchMergeKey"),
		MapType:       mapTypes[field],
	}
	if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() == reflect.Uint8 {
		return m
	}
	m.ListType = listType(field, m)
	if m.ListType == "map" {
		m.ListMapKeys = listKeys[field]
		if m.ListMapKeys == nil {
			m.ListMapKeys = []string{m.PatchMergeKey}
		}
	}
	return m
}

func listType(field string, m Merging) string {
	own, merged := listTypes[field], strings.Contains(m.PatchStrategy, "merge")
	switch {
	case own != "":
		return own
	case merged && m.PatchMergeKey != "":
		return "map"
	case merged:
		return "set"
	}
	return "atomic"
}

// The tables below hold what is said of a field or type by a comment (+listType,
// +listMapKey, +mapType, +optional, +required, +default) and differs from what
// its tags say. A field stands with the type that declares it.

var listTypes = map[string]string{
	core + "ContainerRestartRuleOnExitCodes.values": "set",
	core + "PodStatus.hostIPs":                      "atomic",
	core + "ResourceRequirements.claims":            "map",
	core + "ResourceStatus.resources":               "map",
}

var listKeys = map[string][]string{
	core + "Container.ports":                   {"containerPort", "protocol"},
	core + "EphemeralContainerCommon.ports":    {"containerPort", "protocol"},
	core + "PodSpec.topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	core + "ResourceRequirements.claims":       {"name"},
	core + "ResourceStatus.resources":          {"resourceID"},
	core + "ServiceSpec.ports":                 {"port", "protocol"},
}

// mapTypes are those of types and of fields.
var mapTypes = map[string]string{
	core + "ConfigMapKeySelector":          "atomic",
	core + "FileKeySelector":               "atomic",
	core + "LocalObjectReference":          "atomic",
	core + "NodeSelector":                  "atomic",
	core + "NodeSelectorTerm":              "atomic",
	core + "ObjectFieldSelector":           "atomic",
	core + "ObjectReference":               "atomic",
	core + "PersistentVolumeSpec.claimRef": "granular",
	core + "PodSpec.nodeSelector":          "atomic",
	core + "ResourceFieldSelector":         "atomic",
	core + "ScopeSelector":                 "atomic",
	core + "SecretKeySelector":             "atomic",
	core + "SecretReference":               "atomic",
	core + "ServiceSpec.selector":          "atomic",
	core + "TypedLocalObjectReference":     "atomic",
	meta + "LabelSelector":                 "atomic",
	meta + "OwnerReference":                "atomic",
}

// required says it of fields whose omitempty says the contrary.
var required = map[string]bool{
	core + "AzureFilePersistentVolumeSource.secretNamespace": false,
	core + "ContainerImage.names":                            false,
	core + "ContainerRestartRule.action":                     true,
	core + "ContainerRestartRuleOnExitCodes.operator":        true,
	core + "Event.reportingComponent":                        false,
	core + "Event.reportingInstance":                         false,
	core + "GRPCAction.service":                              false,
	core + "NodeRuntimeHandler.name":                         false,
	core + "PodCertificateProjection.keyType":                true,
	core + "PodCertificateProjection.signerName":             true,
	core + "ProjectedVolumeSource.sources":                   false,
	core + "TypedLocalObjectReference.apiGroup":              false,
	core + "TypedObjectReference.apiGroup":                   false,
}

// defaults of fields that are keys of a list: an entry without one has this.
var defaults = map[string]any{
	core + "ContainerPort.protocol":    "TCP",
	core + "LocalObjectReference.name": "",
	core + "ServicePort.protocol":      "TCP",
}
