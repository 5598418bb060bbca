// Package disk converts the volume sources iscsi and fc of pods and PersistentVolumes to validated
// parameters. The texts in a manifest are untrusted, but become arguments of commands and names of
// files. Therefore the functions accept only characters that have no special meaning there. The
// functions are pure.
package disk

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxLUN is the maximum LUN that Kubernetes accepts.
const maxLUN = 255

// DefaultFilesystem is the type of the filesystem if the volume does not set fsType.
const DefaultFilesystem = "ext4"

// filesystems lists the accepted values of fsType.
var filesystems = []string{"btrfs", "ext2", "ext3", DefaultFilesystem, "xfs"}

// ValidateFilesystem validates the field fsType. An empty text is valid.
func ValidateFilesystem(fsType string, at *field.Path) field.ErrorList {
	if fsType == "" || slices.Contains(filesystems, fsType) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, fsType, filesystems)}
}

// forbiddenOptions lists mount options that mount(8) interprets itself. They would change the device,
// the mount point, or the kind of the mount.
var forbiddenOptions = []string{"bind", "rbind", "move", "remount", "loop", "offset", "sizelimit", "encryption", "helper", "uhelper", "user", "users", "owner", "group"}

// ValidateMountOptions validates the mount options of a filesystem on a disk. at is the path of the
// list.
func ValidateMountOptions(options []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range options {
		if strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, `"`) {
			errs = append(errs, field.Invalid(at.Index(i), text, "must not contain control characters or quotation marks"))
		}
		for option := range strings.SplitSeq(text, ",") {
			name, _, _ := strings.Cut(option, "=")
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case option == "":
				errs = append(errs, field.Invalid(at.Index(i), text, "must not be empty"))
			case slices.Contains(forbiddenOptions, name), strings.HasPrefix(name, "x-"), strings.HasPrefix(name, "verity."):
				errs = append(errs, field.Invalid(at.Index(i), text, fmt.Sprintf("must not contain %q, because podd determines the device and the mount point; remove this option", name)))
			}
		}
	}
	return errs
}

// SplitMountOptions splits each element of options at its commas, because an element may contain
// several mount options.
func SplitMountOptions(options []string) []string {
	return strings.Split(strings.Join(options, ","), ",")
}

// validateLUN validates a logical unit number.
func validateLUN(lun int32, at *field.Path) field.ErrorList {
	if lun < 0 || lun > maxLUN {
		return field.ErrorList{field.Invalid(at, lun, fmt.Sprintf("must be between 0 and %d", maxLUN))}
	}
	return nil
}
