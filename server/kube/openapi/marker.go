package openapi

import (
	"reflect"
	"strings"
)

const (
	core = "io.k8s.api.core.v1."
	meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
)

// newMerging returns the merge rules of a field. The rules of a list come from its
// tags for strategic merge patches. Server-side apply uses the same rules unless
// listTypes and listKeys differ.
func newMerging(t reflect.Type, f reflect.StructField, name string) Merging {
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

// The tables below contain the markers in comments of the Go source (+listType,
// +listMapKey, +mapType, +optional, +required, +default) that differ from the struct tags.
// The key of a field begins with the type that declares the field.

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

// mapTypes maps the name of a type or field to its merge rule: "atomic" or "granular".
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

// required overrides whether a field is required, which otherwise depends on
// omitempty.
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

// defaults maps a field that is a key of a list to its default value, which applies to
// entries without the field.
var defaults = map[string]any{
	core + "ContainerPort.protocol":    "TCP",
	core + "LocalObjectReference.name": "",
	core + "ServicePort.protocol":      "TCP",
}
