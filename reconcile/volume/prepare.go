package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
	"podd/runtime/beneath"
)

// kind is one kind of volume.
type kind interface {
	// serves says whether a volume is of this kind.
	serves(v *v1.Volume) bool
	// source is the name of the field it reads, "hostPath".
	source() string
	// prepare makes the volume, unless it is there already, and gives its path
	// on the host. Its errors speak of that path, or of the export that comes
	// with them, and say what to do.
	prepare(ctx context.Context, p *place, v *v1.Volume) (string, error)
	// check makes nothing, and p has no dir; its error is that of a prepare that cannot succeed,
	// as far as can be seen.
	check(p *place, v *v1.Volume) (string, error)
}

// kinds in no particular order: a volume has one source.
var kinds = []kind{emptyDir{}, hostPath{}, configMap, secret, downwardAPI, projected, nfs{}, claimed{}, ephemeral{}, driven{}, image{}}

// place is where the volumes of one pod are prepared.
type place struct {
	all    Dir
	pod    *manifest.Pod
	of     render.Volumes
	dir    *beneath.Dir // of the pod
	path   string
	node   int64       // bytes of memory that pods may have
	claims string      // Dir.Claims
	ended  []types.UID // see Dir.Check
}

// Error is a volume that could not be prepared.
type Error struct {
	Pod    types.NamespacedName
	Volume string
	// Path is the host path or the export of a server concerned, or "".
	Path string
	// Field is the path of the field to look at: "spec.volumes[0].hostPath".
	Field string
	// Err says what is wrong and what to do.
	Err error
}

func (e *Error) Error() string {
	at := ""
	if e.Path != "" {
		at = e.Path + ": "
	}
	return fmt.Sprintf("preparing volume %q of pod %s: %s%v", e.Volume, e.Pod, at, e.Err)
}

// MountFailure is what package event tells of it.
func (e *Error) MountFailure() (volume, why string) {
	if s, is := errors.AsType[*csi.StepError](e.Err); is {
		return s.Volume, e.Err.Error()
	}
	if e.Path != "" {
		return e.Volume, e.Path + ": " + e.Err.Error()
	}
	return e.Volume, e.Err.Error()
}

// MountStep is what of a kubelet's work failed, "MountVolume.SetUp" of most.
func (e *Error) MountStep() string {
	if s, is := errors.AsType[*csi.StepError](e.Err); is {
		return s.Step
	}
	return "MountVolume.SetUp"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Prepare makes the directory of a pod and its volumes, and gives the host
// path of each volume by its name; of may be nil for a pod none of whose volumes
// has files of podd's or is a claim's. A pod prepared before is left as it is, but
// for files that have changed: those of one volume change all at once. The error
// has an *Error for every volume that failed (errors.Join); what was
// prepared stays until Remove.
func (d Dir) Prepare(ctx context.Context, pod *manifest.Pod, of render.Volumes) (map[string]string, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, fmt.Errorf("preparing pod %s: %w", pod.Key, err)
	}
	dir, err := d.make(pod.UID)
	if err != nil {
		return nil, fmt.Errorf("preparing the directory of pod %s: %w", pod.Key, err)
	}
	defer dir.Close()
	p := d.place(pod, of)
	p.dir = dir
	return each(ctx, pod, func(k kind, v *v1.Volume) (string, error) { return k.prepare(ctx, p, v) })
}

// Check makes nothing and tells, with the errors of Prepare, what would keep the
// volumes of a pod from being made, once the pods of ended, which are earlier
// versions of it, have ended.
func (d Dir) Check(ctx context.Context, pod *manifest.Pod, of render.Volumes, ended []types.UID) error {
	p := d.place(pod, of)
	p.ended = ended
	_, err := each(ctx, pod, func(k kind, v *v1.Volume) (string, error) { return k.check(p, v) })
	return err
}

func (d Dir) place(pod *manifest.Pod, of render.Volumes) *place {
	return &place{all: d, pod: pod, of: of, path: filepath.Join(d.Root, string(pod.UID)), node: d.Memory, claims: d.Claims}
}

// each has do give the host path of each volume of a pod, by name.
func each(ctx context.Context, pod *manifest.Pod, do func(kind, *v1.Volume) (string, error)) (map[string]string, error) {
	paths := make(map[string]string, len(pod.Spec.Spec.Volumes))
	var failed []error
	for i := range pod.Spec.Spec.Volumes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := &pod.Spec.Spec.Volumes[i]
		path, err := one(pod, i, v, do)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		paths[v.Name] = path
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return paths, nil
}

func one(pod *manifest.Pod, i int, v *v1.Volume, do func(kind, *v1.Volume) (string, error)) (string, error) {
	fault := &Error{Pod: pod.Key, Volume: v.Name, Field: fmt.Sprintf("spec.volumes[%d]", i)}
	if len(validation.IsDNS1123Label(v.Name)) > 0 { // it becomes a path
		fault.Field += ".name"
		fault.Err = errors.New("the name must be a DNS label: lower case letters, digits and '-'")
		return "", fault
	}
	for _, k := range kinds {
		if !k.serves(v) {
			continue
		}
		path, err := do(k, v)
		if err == nil {
			return path, nil
		}
		fault.Field += "." + k.source()
		fault.Path, fault.Err = path, err
		return "", fault
	}
	fault.Err = errors.New("podd does not serve this kind of volume; use another")
	return "", fault
}

// under opens volumes/<plugin> of the pod, making it with mode when missing.
func (p *place) under(plugin string, mode uint32) (*beneath.Dir, error) {
	if _, err := p.dir.Mkdir(volumesDir, dirMode, -1); err != nil {
		return nil, err
	}
	if _, err := p.dir.Mkdir(filepath.Join(volumesDir, plugin), mode, -1); err != nil {
		return nil, err
	}
	return p.dir.Sub(filepath.Join(volumesDir, plugin))
}
