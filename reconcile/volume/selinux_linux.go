package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"podd/manifest/refs"
	"podd/reconcile/volume/selinux"
)

// A LabelResult is the result of mounting a volume of a pod with an SELinux label.
type LabelResult struct {
	Plugin string // the kubelet's name of the volume plugin, such as "kubernetes.io/iscsi"
	// AccessMode is the kubelet's abbreviation of the access mode: "RWX", "ROX", "RWO" or "RWOP", or
	// "inline" for a volume in a pod.
	AccessMode string
	// Err is the reason why the volume cannot be mounted with a label; nil if it is mounted with a label.
	Err *selinux.Error
	// IsErrorIgnored reports whether the volume is mounted without a label, despite Err.
	IsErrorIgnored bool
}

// mountWithLabel calls mount with the SELinux label of a volume, and reports the result.
func (p *podDir) mountWithLabel(v *v1.Volume, l selinux.Volume, mount func(selinux.Mount) error) error {
	m, err := p.decideLabel(l)
	if err == nil {
		err = checkLabel(m.Context)
	}
	if err == nil {
		err = mount(m)
	}
	p.reportLabel(v, l, m, err)
	return err
}

// decideLabel returns the SELinux label of the mount of a volume.
func (p *podDir) decideLabel(l selinux.Volume) (selinux.Mount, error) {
	if !p.root.SELinux.Applies(l) {
		return selinux.Mount{}, nil
	}
	return p.root.SELinux.Decide(&p.pod.Object.Spec, l)
}

// checkLabel returns a *selinux.Error if the SELinux policy of the host does not contain a label. The error
// of a mount would not describe this cause. The label "" is valid.
func checkLabel(label string) error {
	if label == "" {
		return nil
	}
	err := os.WriteFile("/sys/fs/selinux/context", []byte(label), 0)
	if errors.Is(err, unix.EINVAL) {
		return &selinux.Error{Kind: selinux.InvalidLabel, Text: fmt.Sprintf("the SELinux policy of the host does not contain the label %q; "+
			"install the policy for containers (package container-selinux), correct seLinuxOptions, or set seLinuxChangePolicy: Recursive", label)}
	}
	return nil
}

// reportLabel calls OnLabel if the result of a mount concerns the label: if err is an error about the
// label, if such an error was ignored and the volume has no label, or if the volume is mounted with a
// label. m is the decision about the label.
func (p *podDir) reportLabel(v *v1.Volume, l selinux.Volume, m selinux.Mount, err error) {
	if p.root.OnLabel == nil || !p.root.SELinux.IsEnabled() {
		return
	}
	plugin, _ := p.plugin(v)
	r := LabelResult{Plugin: plugin, AccessMode: accessMode(l.AccessModes)}
	if r.IsErrorIgnored = !p.root.SELinux.Applies(l); r.IsErrorIgnored {
		_, err = p.root.SELinux.Decide(&p.pod.Object.Spec, l)
	}
	r.Err, _ = errors.AsType[*selinux.Error](err)
	if r.Err != nil || err == nil && m.Context != "" {
		p.root.OnLabel(r)
	}
}

// accessMode returns LabelResult.AccessMode of a volume with several access modes.
func accessMode(modes []v1.PersistentVolumeAccessMode) string {
	for _, m := range []struct {
		mode v1.PersistentVolumeAccessMode
		text string
	}{{v1.ReadWriteMany, "RWX"}, {v1.ReadOnlyMany, "ROX"}, {v1.ReadWriteOnce, "RWO"}, {v1.ReadWriteOncePod, "RWOP"}} {
		if slices.Contains(modes, m.mode) {
			return m.text
		}
	}
	return "inline"
}

// csiLabelVolume returns the parameters of the decision about the SELinux label of a CSI volume. A volume
// that is already published is excluded, because its mount is kept.
func (p *podDir) csiLabelVolume(v *v1.Volume, parameters *refs.CSIVolume) selinux.Volume {
	l := selinux.Volume{Name: v.Name, IsExcluded: true}
	s := parameters.DriverSpec
	supportsLabel := s != nil && s.SELinuxMount != nil && *s.SELinuxMount && !parameters.Block
	if !supportsLabel || !p.root.SELinux.IsEnabled() || p.root.CSI.PublishedPath(p.pod.UID, v.Name) != "" {
		return l
	}
	l.IsExcluded = hasOwnLabel(parameters.MountOptions)
	if c := p.content.Claim(v); c != nil && c.Volume != nil {
		l.AccessModes = c.Volume.Spec.AccessModes
	} else if parameters.Volume != "" { // the translation of an in-tree volume
		l.AccessModes = []v1.PersistentVolumeAccessMode{parameters.AccessMode}
	}
	return l
}

// hasOwnLabel reports whether mount options contain an SELinux label that excludes podd's label.
func hasOwnLabel(options []string) bool {
	return selinux.ExcludesContext(strings.Join(options, ","))
}

// Relabelable returns the names of the volumes in whose mounts the SELinux label of a file can be changed.
// volumes contains the host paths of the volumes. Volumes outside Root are not in the result. Relabelable
// reads only the mount table, because an access to a mount may hang.
func (d Dir) Relabelable(volumes map[string]string) (map[string]bool, error) {
	root, err := filepath.EvalSymlinks(d.Root) // the table contains paths without symbolic links
	if err != nil {
		return nil, err
	}
	table, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for name, path := range volumes {
		if under, err := filepath.Rel(d.Root, path); err == nil && filepath.IsLocal(under) && isRelabelable(table, filepath.Join(root, under)) {
			all[name] = true
		}
	}
	return all, nil
}

// isRelabelable reports whether the mount that contains path stores labels and is writable.
func isRelabelable(table []*mountinfo.Info, path string) bool {
	at := &mountinfo.Info{}
	for _, m := range table {
		contains := m.Mountpoint == path || strings.HasPrefix(path, strings.TrimSuffix(m.Mountpoint, "/")+"/")
		if contains && len(m.Mountpoint) >= len(at.Mountpoint) { // of two mounts at one path, the later one is on top
			at = m
		}
	}
	isReadOnly := func(options string) bool { return slices.Contains(strings.Split(options, ","), "ro") }
	return (selinux.StoresLabels(at.Options) || selinux.StoresLabels(at.VFSOptions)) && !isReadOnly(at.Options) && !isReadOnly(at.VFSOptions)
}
