package openapi

import (
	"reflect"
	"strings"
)

const (
	coreModelPrefix = "io.k8s.api.core.v1."
	metaModelPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1."
)

// newMergeRules returns the merge rules of a field. The rules of a list come from its tags for
// strategic merge patches. Server-side apply uses the same rules unless the tables listTypes and
// listKeys contain other rules for the field.
func newMergeRules(t reflect.Type, f reflect.StructField, name string) MergeRules {
	field := fieldName(t, name)
	m := MergeRules{
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

func listType(field string, m MergeRules) string {
	typeFromTable, isMerged := listTypes[field], strings.Contains(m.PatchStrategy, "merge")
	switch {
	case typeFromTable != "":
		return typeFromTable
	case isMerged && m.PatchMergeKey != "":
		return "map"
	case isMerged:
		return "set"
	}
	return "atomic"
}

// The tables below contain the values of comment markers in the Go source of the API types
// (+listType, +listMapKey, +mapType, +optional, +required, +default). They contain only values that
// cannot be derived from the struct tags. The key of a field begins with the type that declares the
// field.

var listTypes = map[string]string{
	coreModelPrefix + "ContainerRestartRuleOnExitCodes.values":        "set",
	coreModelPrefix + "NodeAllocatableResourceClaimStatus.containers": "set",
	coreModelPrefix + "PodStatus.hostIPs":                             "atomic",
	coreModelPrefix + "PodStatus.volumeHealth":                        "map",
	coreModelPrefix + "ResourceRequirements.claims":                   "map",
	coreModelPrefix + "ResourceStatus.resources":                      "map",
	coreModelPrefix + "VolumeMount.bindMountOptions":                  "set",
	"io.k8s.api.storage.v1.CSIDriverSpec.volumeLifecycleModes":        "set",
}

var listKeys = map[string][]string{
	coreModelPrefix + "Container.ports":                     {"containerPort", "protocol"},
	coreModelPrefix + "EphemeralContainerCommon.ports":      {"containerPort", "protocol"},
	coreModelPrefix + "PodStatus.volumeHealth":              {"name"},
	coreModelPrefix + "PodVolumeHealth.healthConditions":    {"status", "reason"},
	coreModelPrefix + "PodSpec.topologySpreadConstraints":   {"topologyKey", "whenUnsatisfiable"},
	coreModelPrefix + "ResourceRequirements.claims":         {"name"},
	coreModelPrefix + "ResourceStatus.resources":            {"resourceID"},
	coreModelPrefix + "ServiceSpec.ports":                   {"port", "protocol"},
	coreModelPrefix + "VolumeHealthStatus.healthConditions": {"status", "reason"},
}

// mapTypes maps the name of a type or field to its merge rule: "atomic" or "granular".
var mapTypes = map[string]string{
	coreModelPrefix + "ConfigMapKeySelector":          "atomic",
	coreModelPrefix + "EvictionResponder":             "atomic",
	coreModelPrefix + "FileKeySelector":               "atomic",
	coreModelPrefix + "LocalObjectReference":          "atomic",
	coreModelPrefix + "NodeSelector":                  "atomic",
	coreModelPrefix + "NodeSelectorTerm":              "atomic",
	coreModelPrefix + "ObjectFieldSelector":           "atomic",
	coreModelPrefix + "ObjectReference":               "atomic",
	coreModelPrefix + "PersistentVolumeSpec.claimRef": "granular",
	coreModelPrefix + "PodSpec.nodeSelector":          "atomic",
	coreModelPrefix + "ResourceFieldSelector":         "atomic",
	coreModelPrefix + "ScopeSelector":                 "atomic",
	coreModelPrefix + "SecretKeySelector":             "atomic",
	coreModelPrefix + "SecretReference":               "atomic",
	coreModelPrefix + "ServiceSpec.selector":          "atomic",
	coreModelPrefix + "TypedLocalObjectReference":     "atomic",
	metaModelPrefix + "LabelSelector":                 "atomic",
	metaModelPrefix + "OwnerReference":                "atomic",
}

// requiredByField contains whether a field is required, for the fields for which this does not follow
// from omitempty.
var requiredByField = map[string]bool{
	coreModelPrefix + "AzureFilePersistentVolumeSource.secretNamespace": false,
	coreModelPrefix + "ContainerImage.names":                            false,
	coreModelPrefix + "ContainerRestartRule.action":                     true,
	coreModelPrefix + "ContainerRestartRuleOnExitCodes.operator":        true,
	coreModelPrefix + "Event.reportingComponent":                        false,
	coreModelPrefix + "Event.reportingInstance":                         false,
	coreModelPrefix + "GRPCAction.service":                              false,
	coreModelPrefix + "NodeRuntimeHandler.name":                         false,
	coreModelPrefix + "PodCertificateProjection.keyType":                true,
	coreModelPrefix + "PodCertificateProjection.signerName":             true,
	coreModelPrefix + "ProjectedVolumeSource.sources":                   false,
	coreModelPrefix + "TypedLocalObjectReference.apiGroup":              false,
	coreModelPrefix + "TypedObjectReference.apiGroup":                   false,
}

// keyDefaults maps a field that is a key of a list to its default value, which applies to
// entries without the field.
var keyDefaults = map[string]any{
	coreModelPrefix + "ContainerPort.protocol":    "TCP",
	coreModelPrefix + "LocalObjectReference.name": "",
	coreModelPrefix + "ServicePort.protocol":      "TCP",
}
