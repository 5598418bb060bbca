package validate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
	"podd/manifest/supported"
)

// MaxEphemeralBytes is the maximum size of all ephemeral containers of one pod as JSON. It is
// necessary because the runtime returns the whole JSON whenever podd lists containers.
const MaxEphemeralBytes = 64 << 10

// MaxEphemeralContainers is the maximum number of ephemeral containers of one pod, because
// each is stored until the pod is deleted.
const MaxEphemeralContainers = 64

// EphemeralContainers validates the ephemeral containers of a pod with this spec. The defaults of
// the containers must have been set.
func EphemeralContainers(spec *v1.PodSpec, list []v1.EphemeralContainer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) > MaxEphemeralContainers {
		return append(errs, field.TooMany(path, len(list), MaxEphemeralContainers))
	}
	otherNames, size := map[string]bool{}, 0
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		otherNames[c.Name] = true
	}
	names, volumes := map[string]bool{}, volumesByName(spec.Volumes)
	for name := range otherNames {
		names[name] = true
	}
	for i := range list {
		c, at := &list[i], path.Index(i)
		errs = append(errs, validateContainer((*v1.Container)(&c.EphemeralContainerCommon), !manifest.HasUserNamespace(spec), volumes, names, at)...)
		if target := c.TargetContainerName; target != "" && !otherNames[target] {
			errs = append(errs, field.NotFound(at.Child("targetContainerName"), target))
		}
		errs = append(errs, forbidForEphemeral(&c.EphemeralContainerCommon, at)...)
		text, unsupportedErrs := encodeEphemeral(c, at)
		size, errs = size+len(text), append(errs, unsupportedErrs...)
	}
	if size > MaxEphemeralBytes {
		errs = append(errs, field.TooLong(path, "", MaxEphemeralBytes))
	}
	return errs
}

const forbiddenForEphemeral = "cannot be set for an ephemeral container"

// allowedEphemeralFields lists the fields that an ephemeral container may have.
var allowedEphemeralFields = []string{
	"name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices",
	"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty",
}

// forbidForEphemeral refuses subPath and all fields that are not in allowedEphemeralFields, as
// Kubernetes does.
func forbidForEphemeral(c *v1.EphemeralContainerCommon, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for v, i := reflect.ValueOf(c).Elem(), 0; i < v.NumField(); i++ {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(allowedEphemeralFields, name) && !v.Field(i).IsZero() {
			errs = append(errs, field.Forbidden(path.Child(name), forbiddenForEphemeral))
		}
	}
	for i, m := range c.VolumeMounts {
		at := path.Child("volumeMounts").Index(i)
		if m.SubPath != "" {
			errs = append(errs, field.Forbidden(at.Child("subPath"), forbiddenForEphemeral))
		}
		if m.SubPathExpr != "" {
			errs = append(errs, field.Forbidden(at.Child("subPathExpr"), forbiddenForEphemeral))
		}
	}
	return errs
}

// encodeEphemeral returns the container as JSON. It returns errors for fields that podd does not
// support in any container.
func encodeEphemeral(c *v1.EphemeralContainer, path *field.Path) ([]byte, field.ErrorList) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	var tree map[string]any
	if err := utiljson.Unmarshal(text, &tree); err != nil {
		return nil, field.ErrorList{field.InternalError(path, err)}
	}
	maps.DeleteFunc(tree, func(key string, _ any) bool { // omit the fields that forbidForEphemeral refuses
		return !slices.Contains(allowedEphemeralFields, key) && key != "targetContainerName"
	})
	var errs field.ErrorList
	for _, p := range supported.CheckEphemeralContainer(tree, path.String()) {
		if p.Severity == manifest.Error {
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: p.FieldPath, BadValue: "", Detail: p.Message})
		}
	}
	return text, errs
}
