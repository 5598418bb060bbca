package config

import (
	"maps"
	"reflect"
	"slices"
)

// Support describes whether podd supports a setting of the kubelet.
type Support int

const (
	// Ignored means that the setting has no effect. podd warns about it.
	Ignored Support = iota
	// Supported means that the setting has an effect. Some of its values may be rejected.
	Supported
	// SupportedInCluster means that the setting has an effect with --kubeconfig. Without it, podd
	// warns about the setting.
	SupportedInCluster
	// Rejected means that podd does not start if the setting is set.
	Rejected
)

// A Field is a field of KubeletConfiguration.
type Field struct {
	Path    string // field path, for example "authentication.anonymous.enabled"
	Support Support
}

// Fields returns the fields of KubeletConfiguration in the order of the type. For a field that
// is a struct, it returns the fields of that struct instead.
func Fields() []Field {
	var fields []Field
	k := reflect.ValueOf(newDefaults()).Elem()
	visitFields(k, k, "", func(path string, _, _ reflect.Value) {
		fields = append(fields, Field{path, fieldSupport(path)})
	})
	return fields
}

// fieldSupport returns the Support of the field at a path.
func fieldSupport(path string) Support {
	switch {
	case supportedFields[path]:
		return Supported
	case clusterFields[path]:
		return SupportedInCluster
	case rejectedFields[path] != "":
		return Rejected
	}
	return Ignored
}

// A KubeletFlag is a flag of the kubelet that Flags does not contain. The flag has the effect of
// Field, a path in KubeletConfiguration. If Field is "", the flag is ignored with a warning. Reason is
// then the last part of the warning. Name has no dashes in front.
type KubeletFlag struct {
	Name, Field, Reason string
}

// KubeletFlags returns the flags of the kubelet that Flags does not contain.
func KubeletFlags() []KubeletFlag {
	flags := make([]KubeletFlag, len(kubeletFlags))
	for i, f := range kubeletFlags {
		flags[i] = KubeletFlag{Name: f.name, Field: f.field}
		if group := findIgnored("", "--"+f.name); group >= 0 {
			flags[i].Reason = ignoredSettings[group].reason
		}
	}
	return flags
}

// FormerFlags are flags of earlier kubelets that podd accepts. Names has no dashes in front, and is
// sorted. Replacement is a clause that names the replacement of the flags. If the kubelet has renamed
// a flag, Current is the new name.
type FormerFlags struct {
	Names                []string
	Current, Replacement string
}

// AllFormerFlags returns all flags of earlier kubelets that podd accepts, first the renamed flags.
func AllFormerFlags() (releases []FormerFlags) {
	for _, name := range slices.Sorted(maps.Keys(renamedFlags)) {
		releases = append(releases, FormerFlags{Names: []string{name}, Current: renamedFlags[name]})
	}
	for _, g := range formerFlags {
		names := slices.Concat(g.flags, g.boolFlags)
		slices.Sort(names)
		releases = append(releases, FormerFlags{Names: names, Replacement: g.replacement})
	}
	return releases
}
