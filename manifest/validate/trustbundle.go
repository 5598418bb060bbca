package validate

import (
	"fmt"
	"strings"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/trustbundle"
	"podd/manifest/wording"
)

// TrustBundle validates a ClusterTrustBundle without its metadata.
func TrustBundle(b *certificates.ClusterTrustBundle) field.ErrorList {
	var errs field.ErrorList
	if b.Spec.SignerName != "" {
		errs = validateSignerName(b.Spec.SignerName, field.NewPath("spec", "signerName"))
	}
	if err := trustbundle.Check(b.Spec.TrustBundle); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec", "trustBundle"), "", err.Error()))
	}
	return errs
}

// TrustBundleMeta validates the metadata of a ClusterTrustBundle.
func TrustBundleMeta(b *certificates.ClusterTrustBundle) field.ErrorList {
	return validateMeta(&b.ObjectMeta, func(name string) []string { return checkTrustBundleName(name, b.Spec.SignerName) })
}

// checkTrustBundleName returns messages about an invalid name of a ClusterTrustBundle. If the bundle
// has a signer, the name of the bundle must begin with the name of the signer. Colons replace the
// slashes of the signer's name.
func checkTrustBundleName(name, signer string) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{"must not contain a colon, because the bundle has no signerName"}
		}
		return validation.IsDNS1123Subdomain(name)
	}
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	suffix, found := strings.CutPrefix(name, prefix)
	if !found {
		return []string{fmt.Sprintf("must begin with %q, because the bundle belongs to this signer", wording.Clip(prefix, 80))}
	}
	return validation.IsDNS1123Subdomain(suffix)
}

// signerInName returns the name of the signer that the name of a ClusterTrustBundle contains, or "".
func signerInName(name string) string {
	lastColon := strings.LastIndex(name, ":")
	if lastColon < 0 {
		return ""
	}
	return strings.ReplaceAll(name[:lastColon], ":", "/")
}

// validateTrustBundleSource validates a source of a projected volume.
func validateTrustBundleSource(s *v1.ClusterTrustBundleProjection, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case s.Name != nil && s.SignerName != nil:
		errs = append(errs, field.Forbidden(at, "has both name and signerName; remove one of the fields"))
	case s.Name != nil && *s.Name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case s.Name != nil:
		errs = append(errs, invalidErrors(at.Child("name"), *s.Name, checkTrustBundleName(*s.Name, signerInName(*s.Name)))...)
		if s.LabelSelector != nil {
			errs = append(errs, field.Forbidden(at.Child("labelSelector"), "selects bundles of a signer; remove this field, or set signerName instead of name"))
		}
	case s.SignerName != nil:
		errs = append(errs, validateSignerName(*s.SignerName, at.Child("signerName"))...)
		errs = append(errs, metavalidation.ValidateLabelSelector(s.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, at.Child("labelSelector"))...)
	default:
		errs = append(errs, field.Required(at, "set name or signerName"))
	}
	return append(errs, validateFilePath(s.Path, at.Child("path"))...)
}

// validateSignerName validates the name of a signer, such as "example.com/mesh".
func validateSignerName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if reason := signerNameFault(name); reason != "" {
		return field.ErrorList{field.Invalid(at, wording.Clip(name, 80), reason)}
	}
	return nil
}

// signerNameFault returns the reason why the name of a signer is invalid, or "".
func signerNameFault(name string) string {
	domain, path, found := strings.Cut(name, "/")
	if !found || strings.Contains(path, "/") {
		return "must be a domain and a path, such as example.com/signer"
	}
	labels := strings.Split(domain, ".")
	if len(domain) > validation.DNS1123SubdomainMaxLength || len(labels) < 2 {
		return "must begin with a domain of at least two labels and at most 253 characters"
	}
	for _, label := range labels {
		if faults := validation.IsDNS1123Label(label); len(faults) > 0 {
			return fmt.Sprintf("has the invalid domain label %q: %s", wording.Clip(label, 80), faults[0])
		}
	}
	for _, label := range strings.Split(path, ".") {
		if faults := validation.IsDNS1123Subdomain(label); len(faults) > 0 {
			return fmt.Sprintf("has the invalid path label %q: %s", wording.Clip(label, 80), faults[0])
		}
	}
	if limit := validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 1; len(path) > limit {
		return fmt.Sprintf("has a path of more than %d characters", limit)
	}
	return ""
}
