package config

import "reflect"

// Support is how podd treats a setting of the kubelet.
type Support int

const (
	// Ignored settings have no effect. If they are set to anything but their default, podd
	// warns.
	Ignored Support = iota
	// Served settings have an effect.
	Served
	// ServedInCluster settings have an effect with --kubeconfig. Otherwise they are Ignored.
	ServedInCluster
)

// A Field is a field of KubeletConfiguration.
type Field struct {
	Path    string // for example "authentication.anonymous.enabled"
	Support Support
}

// Fields returns the fields of KubeletConfiguration in the order of the type. Only fields
// that are not structs are included.
func Fields() []Field {
	var all []Field
	k := reflect.ValueOf(defaults()).Elem()
	leaves(k, k, "", func(path string, _, _ reflect.Value) {
		all = append(all, Field{path, supportOf(path)})
	})
	return all
}

func supportOf(path string) Support {
	switch {
	case servedFields[path]:
		return Served
	case clusterFields[path]:
		return ServedInCluster
	}
	return Ignored
}

// A KubeletFlag is a flag of the kubelet that Flags does not have. It has the effect of
// its field, and none without a field.
type KubeletFlag struct{ Name, Field string }

// KubeletFlags returns the flags of the kubelet that Flags does not have.
func KubeletFlags() []KubeletFlag {
	all := make([]KubeletFlag, len(kubeletFlags))
	for i, f := range kubeletFlags {
		all[i] = KubeletFlag{f.name, f.field}
	}
	return all
}
