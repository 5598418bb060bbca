package validate

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/lazyregexp"
)

// envFieldPaths lists the fields to which a fieldRef of an environment variable may refer, in
// addition to single labels and annotations.
var envFieldPaths = []string{
	"metadata.name", "metadata.namespace", "metadata.uid",
	"spec.nodeName", "spec.serviceAccountName",
	"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
}

// downwardFieldPaths lists the fields to which a fieldRef of a file may refer, in addition to
// single labels and annotations.
var downwardFieldPaths = []string{
	"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
}

// resourcePaths lists the resources to which a resourceFieldRef may refer, in addition to huge
// pages.
var resourcePaths = []string{
	"limits.cpu", "limits.ephemeral-storage", "limits.memory",
	"requests.cpu", "requests.ephemeral-storage", "requests.memory",
}

// byteDivisors lists the divisors for amounts in bytes.
var byteDivisors = strings.Fields("1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei")

var subscriptPattern = lazyregexp.New(`^metadata\.(labels|annotations)\['(.*)'\]$`)

// validateEnv validates variables. volumes contains the pod's volumes by name. Errors never contain
// values of variables.
func validateEnv(vars []v1.EnvVar, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range vars {
		v, at := &vars[i], path.Index(i)
		if v.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, invalidErrors(at.Child("name"), v.Name, validation.IsRelaxedEnvVarName(v.Name))...)
		}
		errs = append(errs, forbidNUL(at.Child("value"), v.Value)...)
		if v.ValueFrom != nil {
			errs = append(errs, validateEnvSource(v, volumes, at.Child("valueFrom"))...)
		}
	}
	return errs
}

func validateEnvSource(v *v1.EnvVar, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	source := v.ValueFrom
	sourceCount := 0
	for _, isSet := range []bool{source.FieldRef != nil, source.ResourceFieldRef != nil, source.ConfigMapKeyRef != nil, source.SecretKeyRef != nil, source.FileKeyRef != nil} {
		if isSet {
			sourceCount++
		}
	}
	switch {
	case sourceCount == 0:
		errs = append(errs, field.Invalid(path, "", "has no source; set fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef or fileKeyRef"))
	case v.Value != "":
		errs = append(errs, field.Invalid(path, "", "cannot be combined with value; remove one"))
	case sourceCount > 1:
		errs = append(errs, field.Invalid(path, "", "has several sources; remove all but one"))
	}
	if source.FieldRef != nil {
		errs = append(errs, validateFieldRef(source.FieldRef, envFieldPaths, path.Child("fieldRef"))...)
	}
	if source.ResourceFieldRef != nil {
		errs = append(errs, validateResourceRef(source.ResourceFieldRef, path.Child("resourceFieldRef"))...)
	}
	if ref := source.ConfigMapKeyRef; ref != nil {
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := source.SecretKeyRef; ref != nil {
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if source.FileKeyRef != nil {
		errs = append(errs, validateFileKeyRef(source.FileKeyRef, volumes, path.Child("fileKeyRef"))...)
	}
	return errs
}

// validateFileKeyRef validates a reference to a variable in a file of an emptyDir volume.
func validateFileKeyRef(ref *v1.FileKeySelector, volumes map[string]*v1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("volumeName")
	if ref.VolumeName == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, invalidErrors(at, ref.VolumeName, validation.IsDNS1123Label(ref.VolumeName))...)
	}
	switch v := volumes[ref.VolumeName]; {
	case v == nil:
		errs = append(errs, field.NotFound(at, ref.VolumeName))
	case v.EmptyDir == nil:
		errs = append(errs, field.Invalid(at, ref.VolumeName, "must be the name of an emptyDir volume"))
	}
	if ref.Path == "" {
		errs = append(errs, field.Required(path.Child("path"), ""))
	}
	errs = append(errs, forbidParent(ref.Path, path.Child("path"))...)
	if ref.Key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalidErrors(path.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key))...)
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	errs := validateObjectName(name, path.Child("name"))
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalidErrors(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// validateEnvFrom validates references to ConfigMaps and Secrets whose keys all become
// variables.
func validateEnvFrom(list []v1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		e, at := &list[i], path.Index(i)
		if e.Prefix != "" {
			errs = append(errs, invalidErrors(at.Child("prefix"), e.Prefix, validation.IsRelaxedEnvVarName(e.Prefix))...)
		}
		switch {
		case e.ConfigMapRef == nil && e.SecretRef == nil:
			errs = append(errs, field.Forbidden(at, "has no source; set configMapRef or secretRef"))
		case e.ConfigMapRef != nil && e.SecretRef != nil:
			errs = append(errs, field.Forbidden(at, "has several sources; remove all but one"))
		}
		if e.ConfigMapRef != nil {
			errs = append(errs, validateObjectName(e.ConfigMapRef.Name, at.Child("configMapRef", "name"))...)
		}
		if e.SecretRef != nil {
			errs = append(errs, validateObjectName(e.SecretRef.Name, at.Child("secretRef", "name"))...)
		}
	}
	return errs
}

func validateFieldRef(ref *v1.ObjectFieldSelector, allowedPaths []string, path *field.Path) field.ErrorList {
	at := path.Child("fieldPath")
	if ref.APIVersion != "v1" {
		return field.ErrorList{field.NotSupported(path.Child("apiVersion"), ref.APIVersion, []string{"v1"})}
	}
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if m := subscriptPattern().FindStringSubmatch(ref.FieldPath); m != nil {
		key := m[2]
		if m[1] == "annotations" {
			key = strings.ToLower(key) // unlike IsQualifiedName, annotations allow capitals in the prefix
		}
		return invalidErrors(at, ref.FieldPath, validation.IsQualifiedName(key))
	}
	if ref.FieldPath == "spec.host" && slices.Contains(allowedPaths, "spec.nodeName") { // the former name of spec.nodeName
		return nil
	}
	return validateOneOf(at, ref.FieldPath, allowedPaths...)
}

func validateResourceRef(ref *v1.ResourceFieldSelector, path *field.Path) field.ErrorList {
	isHugePages := strings.HasPrefix(ref.Resource, "limits."+v1.ResourceHugePagesPrefix) || strings.HasPrefix(ref.Resource, "requests."+v1.ResourceHugePagesPrefix)
	switch {
	case ref.Resource == "":
		return field.ErrorList{field.Required(path.Child("resource"), "")}
	case !isHugePages && !slices.Contains(resourcePaths, ref.Resource):
		return field.ErrorList{field.NotSupported(path.Child("resource"), ref.Resource, resourcePaths)}
	case ref.Divisor.IsZero():
		return nil
	}
	divisors := byteDivisors
	if strings.HasSuffix(ref.Resource, ".cpu") {
		divisors = []string{"1", "1m"}
	}
	if d := ref.Divisor; !slices.Contains(divisors, d.String()) {
		return field.ErrorList{field.Invalid(path.Child("divisor"), d.String(), fmt.Sprintf("the divisor of %s must be one of %s", ref.Resource, strings.Join(divisors, ", ")))}
	}
	return nil
}
