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
	"podd/runtime/safepath"
)

// A kind is a kind of volume.
type kind interface {
	// serves reports whether a volume is of this kind.
	serves(v *v1.Volume) bool
	// source returns the name of the kind's field, such as "hostPath".
	source() string
	// prepare creates the volume unless it exists, and returns its path on the host. With
	// an error it returns the path or export that the error is about.
	prepare(ctx context.Context, p *place, v *v1.Volume) (string, error)
	// check returns the error of a prepare that cannot succeed, as far as this can be
	// determined without changes. p.dir is nil.
	check(p *place, v *v1.Volume) (string, error)
}

// kinds has all kinds. Their order is irrelevant, because a volume has one source.
var kinds = []kind{emptyDir{}, hostPath{}, configMap, secret, downwardAPI, projected, nfs{}, claimed{}, ephemeral{}, csiVolume{}, image{}}

// A place is a pod for which volumes are prepared or checked.
type place struct {
	all    Dir
	pod    *manifest.Pod
	of     render.Volumes
	dir    *safepath.Dir // directory of the pod; nil in check
	path   string        // path of the directory of the pod
	node   int64         // Dir.Memory
	claims string        // Dir.Claims
	ended  []types.UID   // see Dir.Check
}

// An Error is the error for a volume that could not be prepared.
type Error struct {
	Pod    types.NamespacedName
	Volume string
	// Path is the host path or the export that the error is about, or "".
	Path string
	// Field is the path of the field, such as "spec.volumes[0].hostPath".
	Field string
	// Err is the cause and the remedy.
	Err error
}

func (e *Error) Error() string {
	at := ""
	if e.Path != "" {
		at = e.Path + ": "
	}
	return fmt.Sprintf("preparing volume %q of pod %s: %s%v", e.Volume, e.Pod, at, e.Err)
}

// MountFailure returns the volume and the reason for the event.
func (e *Error) MountFailure() (volume, why string) {
	if s, is := errors.AsType[*csi.StepError](e.Err); is {
		return s.Volume, e.Err.Error()
	}
	if e.Path != "" {
		return e.Volume, e.Path + ": " + e.Err.Error()
	}
	return e.Volume, e.Err.Error()
}

// MountStep returns the kubelet's name of the operation that failed, which usually is
// "MountVolume.SetUp".
func (e *Error) MountStep() string {
	if s, is := errors.AsType[*csi.StepError](e.Err); is {
		return s.Step
	}
	return "MountVolume.SetUp"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Prepare creates the directory of a pod and its volumes, and returns the host path of each
// volume by name. of may be nil if no volume is a claim or has files that podd writes. If
// the pod was prepared before, only files that have changed are updated, those of one
// volume atomically. The error joins an *Error for every volume that failed. Volumes exist
// until Remove, also after an error.
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
	return forEachVolume(ctx, pod, func(k kind, v *v1.Volume) (string, error) { return k.prepare(ctx, p, v) })
}

// Check returns the errors that Prepare would return for the volumes of a pod after the
// pods in ended, which are earlier versions of it, have been removed. It changes nothing.
func (d Dir) Check(ctx context.Context, pod *manifest.Pod, of render.Volumes, ended []types.UID) error {
	p := d.place(pod, of)
	p.ended = ended
	_, err := forEachVolume(ctx, pod, func(k kind, v *v1.Volume) (string, error) { return k.check(p, v) })
	return err
}

func (d Dir) place(pod *manifest.Pod, of render.Volumes) *place {
	return &place{all: d, pod: pod, of: of, path: filepath.Join(d.Root, string(pod.UID)), node: d.Memory, claims: d.Claims}
}

// forEachVolume calls do for each volume of a pod and returns the results by name. The
// error joins those of all volumes.
func forEachVolume(ctx context.Context, pod *manifest.Pod, do func(kind, *v1.Volume) (string, error)) (map[string]string, error) {
	paths := make(map[string]string, len(pod.Spec.Spec.Volumes))
	var failed []error
	for i := range pod.Spec.Spec.Volumes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := &pod.Spec.Spec.Volumes[i]
		path, err := prepareOne(pod, i, v, do)
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

func prepareOne(pod *manifest.Pod, i int, v *v1.Volume, do func(kind, *v1.Volume) (string, error)) (string, error) {
	e := &Error{Pod: pod.Key, Volume: v.Name, Field: fmt.Sprintf("spec.volumes[%d]", i)}
	if len(validation.IsDNS1123Label(v.Name)) > 0 { // it becomes a path
		e.Field += ".name"
		e.Err = errors.New("the name must be a DNS label: lower case letters, digits and '-'")
		return "", e
	}
	for _, k := range kinds {
		if !k.serves(v) {
			continue
		}
		path, err := do(k, v)
		if err == nil {
			return path, nil
		}
		e.Field += "." + k.source()
		e.Path, e.Err = path, err
		return "", e
	}
	e.Err = errors.New("podd does not support this kind of volume; use another")
	return "", e
}

// openPlugin opens volumes/<plugin> of the pod and creates it with mode if it is missing.
func (p *place) openPlugin(plugin string, mode uint32) (*safepath.Dir, error) {
	if _, err := p.dir.Mkdir(volumesDir, dirMode, -1); err != nil {
		return nil, err
	}
	if _, err := p.dir.Mkdir(filepath.Join(volumesDir, plugin), mode, -1); err != nil {
		return nil, err
	}
	return p.dir.Sub(filepath.Join(volumesDir, plugin))
}
