package render

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podd/manifest"
)

// File is one file of a volume that podd writes.
type File struct {
	Data []byte
	Mode uint32 // permission bits
	// Owner is the user whose it is; nil: root.
	Owner *int64
}

// ErrMissing is within the error of whatever needs an object, or a key of one,
// that is not there.
var ErrMissing = errors.New("is not there")

// Volumes tells what is in the volumes of a pod.
type Volumes interface {
	// Files are those of a volume that podd writes, by their path in it; an error
	// with ErrMissing in it is about an object that is not there.
	Files(v *v1.Volume) (map[string]File, error)
	// Claim is that of a volume with a persistentVolumeClaim, or of an ephemeral one
	// that a cluster made a claim for; nil: there is none.
	Claim(v *v1.Volume) *manifest.Claim
	// CSI is what the driver of a volume, a claim's too, is told of it; nil: not known.
	CSI(v *v1.Volume) *manifest.CSI
}

// Content is what the volumes of a pod are made from. Nothing of it is written
// to.
type Content struct {
	Pod    *manifest.Pod
	Supply *manifest.Supply // may be nil
	Node   Node
}

// IsWritten says that a volume's files are podd's to write.
func IsWritten(v *v1.Volume) bool { return isProjected(&v.VolumeSource) }

var _ Volumes = Content{}

// Claim implements Volumes.
func (c Content) Claim(v *v1.Volume) *manifest.Claim {
	return c.Supply.Claim(ClaimName(c.Pod, v))
}

// CSI implements Volumes.
func (c Content) CSI(v *v1.Volume) *manifest.CSI { return c.Supply.CSI(v) }

// ClaimName is of the claim that a volume is; "" for others.
func ClaimName(p *manifest.Pod, v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil && p.Origin.Kind == manifest.KindAPI:
		return manifest.EphemeralClaim(p.Spec, v.Name)
	}
	return ""
}

// Files implements Volumes. The error names the object, key or field and never
// what is in it.
func (c Content) Files(v *v1.Volume) (map[string]File, error) {
	f := &filler{Content: c, files: map[string]File{}}
	var err error
	switch {
	case v.ConfigMap != nil:
		f.mode = *v.ConfigMap.DefaultMode
		err = f.object("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		f.mode = *v.Secret.DefaultMode
		err = f.object("Secret", v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		f.mode = *v.DownwardAPI.DefaultMode
		err = f.downward(v.DownwardAPI.Items)
	case v.Projected != nil:
		f.mode = *v.Projected.DefaultMode
		err = f.projected(v.Projected.Sources)
	}
	if err == nil {
		err = f.clash()
	}
	if err != nil {
		return nil, err
	}
	return f.files, nil
}

// filler gathers the files of one volume.
type filler struct {
	Content
	mode  int32 // of files that name none
	files map[string]File
}

func (f *filler) projected(sources []v1.VolumeProjection) error {
	for i := range sources {
		s := &sources[i]
		var err error
		switch {
		case s.ConfigMap != nil:
			err = f.object("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = f.object("Secret", s.Secret.Name, s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = f.downward(s.DownwardAPI.Items)
		case s.ServiceAccountToken != nil:
			err = f.token(s.ServiceAccountToken)
		default:
			err = errors.New("only configMap, secret, downwardAPI and serviceAccountToken are served")
		}
		if err != nil {
			return fmt.Errorf("sources[%d]: %w", i, err)
		}
	}
	return nil
}

// object adds every key of an object, or those that items name.
func (f *filler) object(kind, name string, items []v1.KeyToPath, optional *bool) error {
	data, there := dataOf(f.Supply, kind, name)
	if !there {
		return lacking(f.Supply, kind, name, optional)
	}
	if len(items) == 0 {
		for key, bytes := range data {
			f.add(key, bytes, nil)
		}
		return nil
	}
	for _, item := range items {
		bytes, ok := data[item.Key]
		switch {
		case ok:
			f.add(item.Path, bytes, item.Mode)
		case !isTrue(optional):
			return fmt.Errorf("key %q of %s %q %w", item.Key, kind, name, ErrMissing)
		}
	}
	return nil
}

// lacking is the error of an object that is not there, nil where it need not be.
func lacking(s *manifest.Supply, kind, name string, optional *bool) error {
	lack := s.Lack(kind, name)
	if lack.Absent && isTrue(optional) {
		return nil
	}
	return missingError(lack.Why)
}

// missingError is ErrMissing in other words.
type missingError string

func (e missingError) Error() string        { return string(e) }
func (e missingError) Is(target error) bool { return target == ErrMissing }

// token adds one of the pod's service account. Only root could read what is shared
// with nobody, so it is made the pod's user's, or left to the pod's group.
func (f *filler) token(t *v1.ServiceAccountTokenProjection) error {
	text := f.Supply.Token(t)
	if text == nil {
		return missingError("the token of service account " + strconv.Quote(f.Pod.Spec.Spec.ServiceAccountName) + " is not there yet")
	}
	file := File{Data: text, Mode: uint32(f.mode), Owner: commonUser(&f.Pod.Spec.Spec)}
	s := f.Pod.Spec.Spec.SecurityContext
	if file.Owner != nil || s != nil && s.FSGroup != nil {
		file.Mode = 0o600
	}
	f.files[path.Clean(t.Path)] = file
	return nil
}

// commonUser is whom every container says that it runs as; nil where one says
// nothing, or another.
func commonUser(spec *v1.PodSpec) *int64 {
	var user *int64
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			runs := effective(spec, &list[i]).RunAsUser
			if runs == nil || user != nil && *user != *runs {
				return nil
			}
			user = runs
		}
	}
	return user
}

func (f *filler) add(name string, data []byte, mode *int32) {
	file := File{Data: data, Mode: uint32(f.mode)}
	if mode != nil {
		file.Mode = uint32(*mode)
	}
	f.files[path.Clean(name)] = file
}

// dataOf is every key of an object as bytes.
func dataOf(s *manifest.Supply, kind, name string) (data map[string][]byte, there bool) {
	if kind == "Secret" {
		secret := s.Secret(name)
		if secret == nil {
			return nil, false
		}
		return secret.Data, true
	}
	c := s.ConfigMap(name)
	if c == nil {
		return nil, false
	}
	data = make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for key, text := range c.Data {
		data[key] = []byte(text)
	}
	maps.Copy(data, c.BinaryData)
	return data, true
}

func (f *filler) downward(items []v1.DownwardAPIVolumeFile) error {
	for i := range items {
		item := &items[i]
		text, err := f.downwardValue(item)
		if err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
		f.add(item.Path, []byte(text), item.Mode)
	}
	return nil
}

func (f *filler) downwardValue(item *v1.DownwardAPIVolumeFile) (string, error) {
	in := &ContainerInput{Pod: f.Pod, Node: f.Node}
	switch {
	case item.FieldRef != nil && item.FieldRef.FieldPath == "metadata.labels":
		return formatMap(f.Pod.Spec.Labels), nil
	case item.FieldRef != nil && item.FieldRef.FieldPath == "metadata.annotations":
		return formatMap(f.Pod.Spec.Annotations), nil
	case item.FieldRef != nil:
		return fieldValue(in, item.FieldRef)
	case item.ResourceFieldRef != nil:
		return resourceValue(in, item.ResourceFieldRef)
	}
	return "", errors.New("names neither fieldRef nor resourceFieldRef")
}

// formatMap is how the downward API writes labels and annotations: a line
// key="value" each, sorted.
func formatMap(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%v=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// clash finds a file that would have to be a directory as well.
func (f *filler) clash() error {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, isFile := f.files[dir]; isFile {
				return fmt.Errorf("%q would be a file and the directory of %q; change one path", dir, name)
			}
		}
	}
	return nil
}
