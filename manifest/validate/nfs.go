package validate

import (
	"path"
	"slices"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/disk"
)

func validateNFS(n *v1.NFSVolumeSource, at *field.Path) field.ErrorList {
	errs := forbidControlCharacters(at.Child("path"), n.Path)
	serverPath := at.Child("server")
	switch {
	case n.Server == "":
		errs = append(errs, field.Required(serverPath, "specify its name or address"))
	case strings.ContainsFunc(n.Server, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }):
		errs = append(errs, field.Invalid(serverPath, n.Server, "must be a name or an address"))
	}
	if strings.HasPrefix(n.Server, "-") { // mount.nfs would parse the server as an option
		errs = append(errs, field.Invalid(serverPath, n.Server, "must not begin with -"))
	}
	switch exportPath := at.Child("path"); {
	case n.Path == "":
		errs = append(errs, field.Required(exportPath, "specify the exported path"))
	case !path.IsAbs(n.Path):
		errs = append(errs, field.Invalid(exportPath, n.Path, "must begin with /"))
	}
	return errs
}

// reservedOptions lists mount options that are not allowed. They would change the times at which
// podd retries a mount, the filesystem that podd mounts, or the mount point.
var reservedOptions = []string{"bg", "remount", "bind", "rbind", "move"}

// validateMountOptions validates mount options. podd mounts neither local nor hostPath volumes, so they
// must have none.
func validateMountOptions(spec *v1.PersistentVolumeSpec, at *field.Path) field.ErrorList {
	if len(spec.MountOptions) == 0 {
		return nil
	}
	switch {
	case spec.ISCSI != nil, spec.FC != nil:
		return disk.ValidateMountOptions(spec.MountOptions, at)
	case spec.NFS == nil && spec.CSI == nil:
		return field.ErrorList{field.Forbidden(at, "podd does not mount volumes of this type; mount this volume on the host with these options")}
	}
	var errs field.ErrorList
	for i, text := range spec.MountOptions {
		errs = append(errs, forbidControlCharacters(at.Index(i), text)...)
		if spec.CSI != nil { // the driver validates the options
			continue
		}
		for option := range strings.SplitSeq(text, ",") {
			name, _, _ := strings.Cut(option, "=")
			name = strings.TrimSpace(name)
			switch {
			case option == "":
				errs = append(errs, field.Invalid(at.Index(i), text, "must not be empty"))
			case slices.Contains(reservedOptions, name):
				errs = append(errs, field.Invalid(at.Index(i), text, "must not contain "+name+", because podd mounts the volume and retries by itself; remove this option"))
			}
		}
	}
	return errs
}

// forbidControlCharacters returns an error if text contains control characters.
func forbidControlCharacters(at *field.Path, text string) field.ErrorList {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return field.ErrorList{field.Invalid(at, text, "must not contain control characters")}
	}
	return nil
}
