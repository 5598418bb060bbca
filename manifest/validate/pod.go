// Package validate checks pods, ConfigMaps, Secrets, claims, PersistentVolumes and
// ClusterTrustBundles by the rules of Kubernetes. Where noted, it applies rules of a node without
// a cluster. Objects must have their defaults (package defaults). Errors never contain values of
// variables or secrets.
package validate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest"
)

// Options describe the source of a pod and its node.
type Options struct {
	// IsFromAPI reports whether the pod comes from an API server. If so, the API server has validated
	// the pod, and podd adds no suffix to the name of the pod.
	IsFromAPI bool
	// NodeName is the node's name; "" allows any spec.nodeName.
	NodeName string
	// NameSuffix is the suffix, including its dash, that package decode appends to the names of
	// pods.
	NameSuffix string
}

// Pod validates a pod before its name gets the suffix. It checks the fields that podd
// supports; package supported rejects all other fields.
func Pod(pod *v1.Pod, o Options) field.ErrorList {
	errs := Meta(&pod.ObjectMeta)
	errs = append(errs, validateStaticMeta(pod, o)...)
	errs = append(errs, validatePodAnnotations(pod)...)
	return append(errs, validateSpec(&pod.Spec, o, field.NewPath("spec"))...)
}

// Meta validates the metadata that all objects have.
func Meta(meta *metav1.ObjectMeta) field.ErrorList {
	return validateMeta(meta, func(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) })
}

// validateMeta validates the metadata of an object. checkName returns messages about an invalid
// name.
func validateMeta(meta *metav1.ObjectMeta, checkName func(name string) []string) field.ErrorList {
	path := field.NewPath("metadata")
	var errs field.ErrorList
	switch {
	case meta.Name == "" && meta.GenerateName != "":
		errs = append(errs, field.Required(path.Child("name"), "podd generates no names from generateName"))
	case meta.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	default:
		errs = append(errs, invalidErrors(path.Child("name"), meta.Name, checkName(meta.Name))...)
	}
	if meta.Namespace != "" {
		errs = append(errs, invalidErrors(path.Child("namespace"), meta.Namespace, apivalidation.NameIsDNSLabel(meta.Namespace, false))...)
	}
	errs = append(errs, validateLabels(meta.Labels, path.Child("labels"))...)
	errs = append(errs, validateFinalizers(meta.Finalizers, path.Child("finalizers"))...)
	return append(errs, validateAnnotations(meta.Annotations, path.Child("annotations"))...)
}

// validateLabels validates labels like ValidateLabels of apimachinery. The paths of its errors
// also contain the key.
func validateLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		errs = append(errs, invalidErrors(path.Key(key), key, validation.IsQualifiedName(key))...)
		errs = append(errs, invalidErrors(path.Key(key), labels[key], validation.IsValidLabelValue(labels[key]))...)
	}
	return errs
}

// validateAnnotations validates annotations. Their keys may have capitals.
func validateAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		errs = append(errs, invalidErrors(path.Key(key), key, validation.IsQualifiedName(strings.ToLower(key)))...)
	}
	if err := apivalidation.ValidateAnnotationsSize(annotations); err != nil {
		errs = append(errs, field.Forbidden(path, err.Error()))
	}
	return errs
}

// validateStaticMeta validates the fields that form a pod's identity on this node.
func validateStaticMeta(pod *v1.Pod, o Options) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata")
	if pod.UID != "" && !manifest.IsSafeUID(pod.UID) {
		errs = append(errs, field.Invalid(path.Child("uid"), string(pod.UID), "must consist of 1 to 63 letters, digits and dashes, because it becomes a directory name"))
	}
	if o.IsFromAPI {
		return errs
	}
	at := path.Child("annotations").Key(manifest.AnnotationRestartOnChange)
	if v, ok := pod.Annotations[manifest.AnnotationRestartOnChange]; ok && v != "true" && v != "false" {
		errs = append(errs, field.Invalid(at, v, `must be "true" or "false"`))
	}
	fullName := pod.Name + o.NameSuffix
	if len(pod.Name) <= validation.DNS1123SubdomainMaxLength && len(fullName) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.Invalid(path.Child("name"), pod.Name, fmt.Sprintf("is too long: %d characters with the node's name appended (limit %d)", len(fullName), validation.DNS1123SubdomainMaxLength)))
	}
	if _, ok := pod.Annotations[manifest.AnnotationConfigMirror]; ok {
		errs = append(errs, field.Forbidden(path.Child("annotations").Key(manifest.AnnotationConfigMirror), "marks a mirror pod, and podd does not run mirror pods; remove this annotation"))
	}
	return errs
}

// validateSpec validates the fields of the pod spec, and then each container.
func validateSpec(spec *v1.PodSpec, o Options, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateOneOf(path.Child("restartPolicy"), spec.RestartPolicy, v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	if spec.OS != nil && spec.OS.Name == "" {
		errs = append(errs, field.Required(path.Child("os", "name"), "set it to linux, or remove os"))
	}
	if p := spec.PreemptionPolicy; p != nil {
		errs = append(errs, validateOneOf(path.Child("preemptionPolicy"), *p, v1.PreemptLowerPriority, v1.PreemptNever)...)
	}
	if d := spec.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	switch {
	case spec.NodeName == "":
	case o.NodeName == "":
		errs = append(errs, invalidErrors(path.Child("nodeName"), spec.NodeName, apivalidation.NameIsDNSSubdomain(spec.NodeName, false))...)
	case spec.NodeName != o.NodeName:
		errs = append(errs, field.Invalid(path.Child("nodeName"), spec.NodeName, fmt.Sprintf("is not the name of this node, which is %q; remove this field", o.NodeName)))
	}
	errs = append(errs, validateHostname(spec, path)...)
	if share := spec.ShareProcessNamespace; share != nil && *share && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), *share, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	for i, gate := range spec.ReadinessGates {
		errs = append(errs, invalidErrors(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType), validation.IsQualifiedName(string(gate.ConditionType)))...)
	}
	if class := spec.RuntimeClassName; class != nil {
		errs = append(errs, invalidErrors(path.Child("runtimeClassName"), *class, apivalidation.NameIsDNSSubdomain(*class, false))...)
	}
	errs = append(errs, validateUserNamespace(spec, path)...)
	errs = append(errs, validateHostAliases(spec.HostAliases, path.Child("hostAliases"))...)
	if name := spec.ServiceAccountName; name != "" {
		errs = append(errs, invalidErrors(path.Child("serviceAccountName"), name, apivalidation.ValidateServiceAccountName(name, false))...)
	}
	errs = append(errs, validateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	errs = append(errs, validateNodeAffinity(spec.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateTolerations(spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, validateDNS(spec, path)...)
	errs = append(errs, validatePodSecurity(spec, path.Child("securityContext"))...)
	for i, ref := range spec.ImagePullSecrets {
		if ref.Name != "" { // an empty name, which templates can contain, is not a reference
			errs = append(errs, validateObjectName(ref.Name, path.Child("imagePullSecrets").Index(i).Child("name"))...)
		}
	}
	errs = append(errs, validateVolumes(spec, path.Child("volumes"))...)
	errs = append(errs, validatePodResources(spec, path.Child("resources"))...)
	errs = append(errs, validateOverhead(spec, path)...)
	return append(errs, validateContainers(spec, path)...)
}

// invalidErrors returns an Invalid error for each message of a validation function of
// apimachinery.
func invalidErrors(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, m := range messages {
		errs = append(errs, field.Invalid(path, value, m))
	}
	return errs
}

// validateOneOf returns an error if value is not an element of valid.
func validateOneOf[T ~string](path *field.Path, value T, valid ...T) field.ErrorList {
	for _, v := range valid {
		if value == v {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, valid)}
}

// forbidNUL returns an error if s contains a NUL byte, because s becomes a C string.
func forbidNUL(path *field.Path, s string) field.ErrorList {
	if !strings.Contains(s, "\x00") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "", "must not contain a NUL byte")}
}
