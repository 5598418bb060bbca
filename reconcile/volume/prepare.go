package volume

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"podd/manifest"
	"podd/reconcile/render"
	"podd/reconcile/volume/csi"
	"podd/runtime/safepath"
)

// A volumeType prepares the volumes of one type, such as hostPath.
type volumeType interface {
	// matches reports whether a volume is of this type.
	matches(v *v1.Volume) bool
	// prepare creates the volume if it does not exist, and returns its path on the host. If prepare
	// fails, path is the host path or NFS export for the error message, or "".
	prepare(ctx context.Context, p *podDir, v *v1.Volume) (path string, err error)
	// check returns the error that prepare would return, if podd can find the error without a
	// change on disk. path is the path for the error message. In this call, p.dir is nil.
	check(p *podDir, v *v1.Volume) (path string, err error)
}

// volumeTypes contains all volume types. Their order has no effect, because a volume has exactly
// one type.
var volumeTypes = []volumeType{emptyDir{}, hostPath{}, configMapType, secretType, downwardAPIType, projectedType, nfsType{}, iscsiVolume{}, fcVolume{}, claimVolume{}, ephemeralVolume{}, csiVolume{}, imageVolume{}}

// A podDir is the directory of a pod while its volumes are prepared or checked.
type podDir struct {
	root        Dir
	pod         *manifest.Pod
	content     render.Volumes // may be nil; see Dir.Prepare
	dir         *safepath.Dir  // the open directory; nil in volumeType.check
	path        string
	removedUIDs []types.UID // UIDs of pods that count as removed; see Dir.Check
}

// An Error is the error for a volume that could not be prepared.
type Error struct {
	Pod    types.NamespacedName
	Volume string
	// Path is the host path or NFS export that failed, or "".
	Path string
	// Err is the cause and the remedy.
	Err error
}

func (e *Error) Error() string {
	location := ""
	if e.Path != "" {
		location = e.Path + ": "
	}
	return fmt.Sprintf("preparing volume %q of pod %s: %s%v", e.Volume, e.Pod, location, e.Err)
}

// MountFailure returns the name of the volume and the message for the event, as in the kubelet.
func (e *Error) MountFailure() (volume, message string) {
	if s, ok := errors.AsType[*csi.StepError](e.Err); ok {
		return s.Volume, e.Err.Error()
	}
	if e.Path != "" {
		return e.Volume, e.Path + ": " + e.Err.Error()
	}
	return e.Volume, e.Err.Error()
}

// MountStep returns the name of the operation that failed, as in the kubelet. It usually is
// "MountVolume.SetUp".
func (e *Error) MountStep() string {
	if s, ok := errors.AsType[*csi.StepError](e.Err); ok {
		return s.Step
	}
	return "MountVolume.SetUp"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Prepare creates the directory of a pod and its volumes, and returns the host path of each
// volume by name. content may be nil if no volume is a claim or has files that podd writes.
//
// If the pod was prepared before, Prepare updates only files that have changed. The files of
// one volume are replaced atomically. The error joins an *Error for every volume that failed.
// Volumes exist until Release or Remove, even if Prepare returns an error.
func (d Dir) Prepare(ctx context.Context, pod *manifest.Pod, content render.Volumes) (map[string]string, error) {
	if err := checkUID(pod.UID); err != nil {
		return nil, fmt.Errorf("preparing pod %s: %w", pod.Key, err)
	}
	dir, err := d.openPodDir(pod.UID)
	if err != nil {
		return nil, fmt.Errorf("preparing the directory of pod %s: %w", pod.Key, err)
	}
	defer dir.Close()
	p := d.newPodDir(pod, content)
	p.dir = dir
	return forEachVolume(ctx, pod, func(t volumeType, v *v1.Volume) (string, error) { return p.prepareVolume(ctx, t, v) })
}

// prepareVolume calls t.prepare for a volume and reports the operation.
func (p *podDir) prepareVolume(ctx context.Context, t volumeType, v *v1.Volume) (string, error) {
	began := time.Now()
	path, err := t.prepare(ctx, p, v)
	name := OperationMount
	plugin, block := p.plugin(v)
	if block {
		name = operationMap
	}
	p.root.reportOperation(Operation{PodUID: p.pod.UID, Volume: v.Name, Plugin: plugin, Name: name}, began, err)
	return path, err
}

// Check returns the errors that Prepare would return for the volumes of a pod, if podd can find them
// without a change on disk. The pods with a UID in removedUIDs, which are earlier versions of the
// pod, count as removed.
func (d Dir) Check(ctx context.Context, pod *manifest.Pod, content render.Volumes, removedUIDs []types.UID) error {
	p := d.newPodDir(pod, content)
	p.removedUIDs = removedUIDs
	_, err := forEachVolume(ctx, pod, func(t volumeType, v *v1.Volume) (string, error) { return t.check(p, v) })
	return err
}

func (d Dir) newPodDir(pod *manifest.Pod, content render.Volumes) *podDir {
	return &podDir{root: d, pod: pod, content: content, path: filepath.Join(d.Root, string(pod.UID))}
}

// forEachVolume calls do for each volume of a pod and returns the paths by name. If do failed
// for any volume, forEachVolume returns the joined errors and no paths.
func forEachVolume(ctx context.Context, pod *manifest.Pod, do func(volumeType, *v1.Volume) (string, error)) (map[string]string, error) {
	paths := make(map[string]string, len(pod.Object.Spec.Volumes))
	var errs []error
	for i := range pod.Object.Spec.Volumes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := &pod.Object.Spec.Volumes[i]
		path, err := callForVolume(pod, v, do)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		paths[v.Name] = path
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return paths, nil
}

func callForVolume(pod *manifest.Pod, v *v1.Volume, do func(volumeType, *v1.Volume) (string, error)) (string, error) {
	e := &Error{Pod: pod.Key, Volume: v.Name}
	if len(validation.IsDNS1123Label(v.Name)) > 0 { // the name becomes a directory name
		e.Err = errors.New("the name must be a DNS label: lower case letters, digits and '-'")
		return "", e
	}
	for _, t := range volumeTypes {
		if !t.matches(v) {
			continue
		}
		path, err := do(t, v)
		if err == nil {
			return path, nil
		}
		e.Path, e.Err = path, err
		return "", e
	}
	e.Err = errors.New("podd does not support this volume type; use a supported type, such as emptyDir, hostPath or nfs")
	return "", e
}

// openPluginDir opens the directory volumes/<plugin> of the pod. If the directory does not exist,
// openPluginDir creates it with this mode. The caller must close the result.
func (p *podDir) openPluginDir(plugin string, mode uint32) (*safepath.Dir, error) {
	if _, err := p.dir.Mkdir(volumesDir, dirMode, -1); err != nil {
		return nil, err
	}
	if _, err := p.dir.Mkdir(filepath.Join(volumesDir, plugin), mode, -1); err != nil {
		return nil, err
	}
	return p.dir.Sub(filepath.Join(volumesDir, plugin))
}
