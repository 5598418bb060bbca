package render

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// fieldValue returns the value of a pod's field in the downward API. It returns "" for a label or
// annotation that the pod does not have.
func fieldValue(in *ContainerInput, ref *v1.ObjectFieldSelector) (string, error) {
	p := in.Pod
	if path, key, ok := splitSubscript(ref.FieldPath); ok {
		switch path {
		case "metadata.labels":
			return p.Object.Labels[key], nil
		case "metadata.annotations":
			return p.Object.Annotations[key], nil
		}
		return "", fmt.Errorf("fieldRef: %s does not support ['key']", path)
	}
	switch ref.FieldPath {
	case "metadata.name":
		return p.Key.Name, nil
	case "metadata.namespace":
		return p.Key.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "spec.nodeName", "spec.host":
		return in.Node.Name, nil
	case "spec.serviceAccountName":
		return p.Object.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return firstOrEmpty(in.Node.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(in.Node.HostIPs, ","), nil
	case "status.podIP":
		return firstOrEmpty(in.podIPs()), nil
	case "status.podIPs":
		return strings.Join(in.podIPs(), ","), nil
	}
	return "", fmt.Errorf("fieldRef: %s is not a field of the downward API", ref.FieldPath)
}

// splitSubscript splits a field path such as metadata.labels['key'] into path and key. ok is false
// if fieldPath has no subscript.
func splitSubscript(fieldPath string) (path, key string, ok bool) {
	inside, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return "", "", false
	}
	path, key, ok = strings.Cut(inside, "['")
	return path, key, ok && path != ""
}

func firstOrEmpty(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
