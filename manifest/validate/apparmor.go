package validate

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxAppArmorName is the maximum length of a profile's name in the API.
const maxAppArmorName = 4095

func validateAppArmor(p *v1.AppArmorProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	at := path.Child("localhostProfile")
	errs := validateOneOf(path.Child("type"), p.Type, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined, v1.AppArmorProfileTypeLocalhost)
	switch isLocal := p.Type == v1.AppArmorProfileTypeLocalhost; {
	case len(errs) > 0:
	case !isLocal && p.LocalhostProfile != nil:
		errs = append(errs, field.Forbidden(at, "may be set for type Localhost only"))
	case isLocal && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		errs = append(errs, field.Required(at, "type Localhost requires a profile"))
	case isLocal:
		errs = append(errs, validateAppArmorName(*p.LocalhostProfile, at)...)
	}
	return errs
}

func validateAppArmorName(name string, path *field.Path) field.ErrorList {
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return field.ErrorList{field.Invalid(path, name, "must not be empty, and must not begin or end with white space")}
	case len(name) > maxAppArmorName:
		return field.ErrorList{field.TooLong(path, "", maxAppArmorName)}
	}
	return forbidNUL(path, name)
}

// compareAppArmor returns an error if two AppArmor profiles differ. annotationProfile is the profile
// in an annotation, and fieldProfile is the profile in the field at path. compareAppArmor returns nil
// if one of the profiles is nil.
func compareAppArmor(annotationProfile, fieldProfile *v1.AppArmorProfile, path *field.Path) field.ErrorList {
	const differs = "differs from the annotation; remove the annotation"
	localName := func(p *v1.AppArmorProfile) string {
		if p.LocalhostProfile == nil {
			return ""
		}
		return *p.LocalhostProfile
	}
	switch {
	case annotationProfile == nil || fieldProfile == nil:
		return nil
	case annotationProfile.Type != fieldProfile.Type:
		return field.ErrorList{field.Forbidden(path.Child("type"), differs)}
	case localName(annotationProfile) != localName(fieldProfile):
		return field.ErrorList{field.Forbidden(path.Child("localhostProfile"), differs)}
	}
	return nil
}
