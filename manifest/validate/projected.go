package validate

import (
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/wording"
)

// Limits of Linux for the names of a volume's files.
const (
	maxFilePath = 4096
	maxFileName = 255
)

func validateConfigMapVolume(c *v1.ConfigMapVolumeSource, fields *field.Path) field.ErrorList {
	errs := validateObjectName(c.Name, fields.Child("name"))
	errs = append(errs, validateMode(c.DefaultMode, fields.Child("defaultMode"))...)
	return append(errs, validateItems(c.Items, fields.Child("items"))...)
}

func validateSecretVolume(s *v1.SecretVolumeSource, fields *field.Path) field.ErrorList {
	errs := validateObjectName(s.SecretName, fields.Child("secretName"))
	errs = append(errs, validateMode(s.DefaultMode, fields.Child("defaultMode"))...)
	return append(errs, validateItems(s.Items, fields.Child("items"))...)
}

func validateDownwardVolume(d *v1.DownwardAPIVolumeSource, fields *field.Path) field.ErrorList {
	errs := validateMode(d.DefaultMode, fields.Child("defaultMode"))
	return append(errs, validateDownwardItems(d.Items, fields.Child("items"))...)
}

func validateProjected(p *v1.ProjectedVolumeSource, fields *field.Path) field.ErrorList {
	errs := validateMode(p.DefaultMode, fields.Child("defaultMode"))
	usedPaths := map[string]bool{}
	addPath := func(p string, at *field.Path) {
		if p == "" {
			return
		}
		if usedPaths[path.Clean(p)] {
			errs = append(errs, field.Duplicate(at.Child("path"), p))
		}
		usedPaths[path.Clean(p)] = true
	}
	for i := range p.Sources {
		s, at := &p.Sources[i], fields.Child("sources").Index(i)
		if n := countProjectionSources(s); n != 1 {
			errs = append(errs, field.Forbidden(at, "has "+[]string{"no source; set configMap, secret, downwardAPI or clusterTrustBundle", "several sources; remove all but one"}[min(n, 1)]))
		}
		if c := s.ConfigMap; c != nil {
			errs = append(errs, validateObjectName(c.Name, at.Child("configMap", "name"))...)
			errs = append(errs, validateItems(c.Items, at.Child("configMap", "items"))...)
			eachItem(c.Items, at.Child("configMap", "items"), addPath)
		}
		if c := s.Secret; c != nil {
			errs = append(errs, validateObjectName(c.Name, at.Child("secret", "name"))...)
			errs = append(errs, validateItems(c.Items, at.Child("secret", "items"))...)
			eachItem(c.Items, at.Child("secret", "items"), addPath)
		}
		if d := s.DownwardAPI; d != nil {
			errs = append(errs, validateDownwardItems(d.Items, at.Child("downwardAPI", "items"))...)
			for j := range d.Items {
				addPath(d.Items[j].Path, at.Child("downwardAPI", "items").Index(j))
			}
		}
		if b := s.ClusterTrustBundle; b != nil {
			errs = append(errs, validateTrustBundleSource(b, at.Child("clusterTrustBundle"))...)
			addPath(b.Path, at.Child("clusterTrustBundle"))
		}
	}
	return errs
}

func countProjectionSources(s *v1.VolumeProjection) (n int) {
	for _, isSet := range []bool{s.ConfigMap != nil, s.Secret != nil, s.DownwardAPI != nil, s.ServiceAccountToken != nil, s.ClusterTrustBundle != nil, s.PodCertificate != nil} {
		if isSet {
			n++
		}
	}
	return n
}

func eachItem(items []v1.KeyToPath, fields *field.Path, visit func(string, *field.Path)) {
	for i := range items {
		visit(items[i].Path, fields.Index(i))
	}
}

func validateItems(items []v1.KeyToPath, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		item, at := &items[i], fields.Index(i)
		if item.Key == "" {
			errs = append(errs, field.Required(at.Child("key"), ""))
		}
		errs = append(errs, validateFilePath(item.Path, at.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownwardItems(items []v1.DownwardAPIVolumeFile, fields *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		item, at := &items[i], fields.Index(i)
		errs = append(errs, validateFilePath(item.Path, at.Child("path"))...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
		if item.FieldRef != nil && item.ResourceFieldRef != nil {
			errs = append(errs, field.Forbidden(at, "has both fieldRef and resourceFieldRef; remove one"))
		}
		switch {
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRef(item.FieldRef, downwardFieldPaths, at.Child("fieldRef"))...)
		case item.ResourceFieldRef != nil && item.ResourceFieldRef.ContainerName == "":
			errs = append(errs, field.Required(at.Child("resourceFieldRef", "containerName"), "specify the container whose resources the file contains"))
		case item.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, at.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(at, "set fieldRef or resourceFieldRef"))
		}
	}
	return errs
}

// validateObjectName validates the name of an object that a pod refers to.
func validateObjectName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return invalidErrors(at, name, validation.IsDNS1123Subdomain(name))
}

func validateMode(mode *int32, at *field.Path) field.ErrorList {
	if mode == nil || *mode >= 0 && *mode <= 0o777 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *mode, "must be between 0 and 0777 in octal (511 in decimal)")}
}

// validateFilePath validates a path within a volume. Names that begin with ".." are
// reserved for the volume's own entries.
func validateFilePath(p string, at *field.Path) field.ErrorList {
	if p == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := forbidNUL(at, p)
	if path.IsAbs(p) {
		errs = append(errs, field.Invalid(at, p, "must be relative, because it is within the volume"))
	}
	steps := strings.Split(p, "/")
	for _, step := range steps {
		if step == ".." {
			return append(errs, field.Invalid(at, p, "must not contain .."))
		}
		if len(step) > maxFileName {
			errs = append(errs, field.Invalid(at, wording.Clip(p, 80), "contains a name of more than 255 bytes"))
		}
	}
	if strings.HasPrefix(steps[0], "..") {
		errs = append(errs, field.Invalid(at, p, "must not begin with .."))
	}
	if path.Clean(p) == "." {
		errs = append(errs, field.Invalid(at, p, "must name a file"))
	}
	if len(p) > maxFilePath {
		errs = append(errs, field.Invalid(at, wording.Clip(p, 80), "is longer than 4096 bytes"))
	}
	return errs
}
