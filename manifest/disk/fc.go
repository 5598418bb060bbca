package disk

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"podd/manifest/lazyregexp"
)

// An FC identifies a Fibre Channel disk, either by its targets and its LUN, or by its identifiers.
type FC struct {
	// Targets contains the names of the target ports (WWNs): 16 lower-case hexadecimal digits each.
	Targets []string
	LUN     int32
	// WWIDs contains the identifiers of the disk. The names of its links in /dev/disk/by-id contain
	// them. It is empty if Targets is not empty.
	WWIDs []string
}

var (
	wwn = lazyregexp.New(`^[0-9A-Fa-f]{16}$`)
	// wwid allows only characters that udev keeps in the names of links, and spaces, which udev
	// replaces with underscores.
	wwid = lazyregexp.New(`^[A-Za-z0-9#+.:=@_ -]{1,200}$`)
)

// NewFC returns the parameters of an fc source. at is the path of the source. The result is valid
// only if the list of errors is empty.
func NewFC(s *v1.FCVolumeSource, at *field.Path) (FC, field.ErrorList) {
	var d FC
	var errs field.ErrorList
	targets := at.Child("targetWWNs")
	switch {
	case len(s.TargetWWNs) == 0 && len(s.WWIDs) == 0:
		errs = append(errs, field.Required(targets, "specify targetWWNs and lun, or wwids"))
	case len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0:
		errs = append(errs, field.Forbidden(targets, "cannot be combined with wwids; remove one"))
	case len(s.TargetWWNs) > 0 && s.Lun == nil:
		errs = append(errs, field.Required(at.Child("lun"), "specify the LUN of the target"))
	case len(s.TargetWWNs) > 0:
		errs = append(errs, validateLUN(*s.Lun, at.Child("lun"))...)
		d.LUN = *s.Lun
	}
	for i, text := range s.TargetWWNs {
		if !wwn().MatchString(text) {
			errs = append(errs, field.Invalid(targets.Index(i), text, "must have 16 hexadecimal digits, such as 500a0982991b8dc5"))
		}
		d.Targets = appendOnce(d.Targets, strings.ToLower(text))
	}
	for i, text := range s.WWIDs {
		if !wwid().MatchString(text) {
			errs = append(errs, field.Invalid(at.Child("wwids").Index(i), text, "must be the identifier of a disk in /dev/disk/by-id, such as 3600508b400105e210000900000490000"))
		}
		d.WWIDs = appendOnce(d.WWIDs, strings.ReplaceAll(text, " ", "_")) // as udev does
	}
	return d, append(errs, ValidateFilesystem(s.FSType, at.Child("fsType"))...)
}

func appendOnce(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}

// MatchesPath reports whether name is the name of a link to the disk in /dev/disk/by-path. The name
// ends with the target and the LUN, and may begin with the path of the adapter.
func (d FC) MatchesPath(name string) bool {
	for _, target := range d.Targets {
		adapter, found := strings.CutSuffix(name, fmt.Sprintf("fc-0x%s-lun-%d", target, d.LUN))
		if found && (adapter == "" || strings.HasPrefix(adapter, "pci-") && strings.HasSuffix(adapter, "-")) {
			return true
		}
	}
	return false
}

// MatchesID reports whether name is the name of a link to the disk in /dev/disk/by-id.
func (d FC) MatchesID(name string) bool {
	id, found := strings.CutPrefix(name, "scsi-")
	return found && slices.Contains(d.WWIDs, id)
}
