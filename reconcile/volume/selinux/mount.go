package selinux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Volume is a volume of a pod.
type Volume struct {
	Name string // name of the volume in the pod
	// AccessModes are the modes of the PersistentVolume, which has at least one. They are nil for a volume
	// in a pod.
	AccessModes []v1.PersistentVolumeAccessMode
	// IsExcluded reports whether podd must not set a label, because the type of the volume does not support
	// labels, or because the mount options of the PersistentVolume contain one.
	IsExcluded bool
}

// A Mount describes how a volume is mounted. The zero value is the Mount of a volume that is mounted
// without a label and that pods with any label may share.
type Mount struct {
	// Context is the label; "" means that the volume is mounted without a label.
	Context string
	// NeedsSameContext reports whether all pods that use the volume must have the same Context.
	NeedsSameContext bool
}

// Option returns the mount option for the label, or "" if there is none. The label is in quotation marks,
// because it may contain commas.
func (m Mount) Option() string {
	if m.Context == "" {
		return ""
	}
	return `context="` + m.Context + `"`
}

// CheckOther returns an error if other pods use the volume and their Context does not allow m. The error
// is an *Error.
func (m Mount) CheckOther(context string) error {
	if !m.NeedsSameContext || m.Context == context {
		return nil
	}
	return &Error{Conflict, fmt.Sprintf("other pods on this node use the volume with %s, but this pod needs %s; "+
		"give all pods that use the volume the same seLinuxOptions, or seLinuxChangePolicy: Recursive", describe(context), describe(m.Context))}
}

func describe(context string) string {
	if context == "" {
		return "no SELinux label for the mount"
	}
	return fmt.Sprintf("the SELinux label %q", context)
}

// An ErrorKind is the kind of an Error.
type ErrorKind int

const (
	InvalidLabel    ErrorKind = iota // the options of a container result in no label
	DifferentLabels                  // containers of the pod need different labels for a volume
	Conflict                         // pods need different labels for a volume
)

// An Error is the reason why a volume cannot be mounted with a label.
type Error struct {
	Kind ErrorKind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Applies reports whether a volume with these access modes is mounted with a label. For other volumes,
// Decide returns a Mount that must not be used, but shows a label or an error that would apply with the
// feature gate SELinuxMount.
func (p Policy) Applies(v Volume) bool {
	return len(v.AccessModes) > 0 && (!p.OnlySinglePod || slices.Equal(v.AccessModes, []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}))
}

// Decide returns how a volume of a pod is mounted. The error is an *Error. Decide ignores ephemeral
// containers, because the volumes of a running pod do not change.
func (p Policy) Decide(pod *v1.PodSpec, v Volume) (Mount, error) {
	if !p.IsEnabled() || v.IsExcluded {
		return Mount{}, nil
	}
	if s := pod.SecurityContext; s != nil && s.SELinuxChangePolicy != nil && *s.SELinuxChangePolicy == v1.SELinuxChangePolicyRecursive {
		return Mount{NeedsSameContext: true}, nil
	}
	var labels []string
	for _, list := range [][]v1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			o := options(pod, &list[i])
			if o == nil || !mounts(&list[i], v.Name) {
				continue
			}
			label, err := p.Label(o)
			if err != nil {
				return Mount{}, err
			}
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	switch len(labels) {
	case 0:
		return Mount{NeedsSameContext: true}, nil
	case 1:
		return Mount{labels[0], true}, nil
	}
	return Mount{}, &Error{DifferentLabels, fmt.Sprintf("the containers that mount the volume have different SELinux labels (%s); "+
		"give them the same seLinuxOptions with a level, or set seLinuxChangePolicy: Recursive", strings.Join(quote(labels), ", "))}
}

// options returns the options of a container, or of its pod if the container has none.
func options(pod *v1.PodSpec, c *v1.Container) *v1.SELinuxOptions {
	if s := c.SecurityContext; s != nil && s.SELinuxOptions != nil {
		return s.SELinuxOptions
	}
	if s := pod.SecurityContext; s != nil {
		return s.SELinuxOptions
	}
	return nil
}

func mounts(c *v1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == volume })
}

// quote returns the labels in quotation marks. The label "" becomes a description.
func quote(labels []string) []string {
	var all []string
	for _, l := range labels {
		if l == "" {
			all = append(all, "a label that the container runtime determines")
			continue
		}
		all = append(all, strconv.Quote(l))
	}
	return all
}

// ContextOption returns the label with which a filesystem is mounted, from its options in the mount
// table, or "".
func ContextOption(options string) string {
	for _, o := range splitOptions(options) {
		if label, found := strings.CutPrefix(o, "context="); found {
			return strings.Trim(label, `"`)
		}
	}
	return ""
}

// ExcludesContext reports whether a filesystem cannot be mounted with a label in addition to the mount
// options, because they contain context or defcontext. The kernel rejects these together with a label.
func ExcludesContext(options string) bool {
	return slices.ContainsFunc(splitOptions(options), func(o string) bool {
		return strings.HasPrefix(o, "context=") || strings.HasPrefix(o, "defcontext=")
	})
}

// StoresLabels reports whether a filesystem can store a label for each file. options are its options in
// the mount table.
func StoresLabels(options string) bool { return slices.Contains(splitOptions(options), "seclabel") }

// splitOptions splits options at the commas outside quotation marks.
func splitOptions(options string) []string {
	isQuoted := false
	return strings.FieldsFunc(options, func(r rune) bool {
		if r == '"' {
			isQuoted = !isQuoted
		}
		return r == ',' && !isQuoted
	})
}
