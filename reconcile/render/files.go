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
	"podd/manifest/refs"
)

// A File is a file in a volume that podd writes.
type File struct {
	Data []byte
	Mode uint32 // permission bits
	// Owner is the user ID of the owner; nil means root.
	Owner *int64
}

// ErrMissing is wrapped by errors about a missing object or key.
var ErrMissing = errors.New("does not exist")

// Volumes provides the content of a pod's volumes.
type Volumes interface {
	// Files returns the files of a volume that podd writes, by path in the volume. The
	// error wraps ErrMissing if an object is missing.
	Files(v *v1.Volume) (map[string]File, error)
	// Claim returns the claim of a volume with a persistentVolumeClaim, or of an
	// ephemeral volume of a pod from an API server; nil if there is none.
	Claim(v *v1.Volume) *refs.Claim
	// CSI returns the parameters for the driver of a CSI volume or of a claim's volume;
	// nil if they are unknown.
	CSI(v *v1.Volume) *refs.CSIVolume
	// CHAPSecret returns the Secret with the CHAP credentials of an iSCSI disk; nil if there is
	// none.
	CHAPSecret(v *v1.Volume) *v1.Secret
}

// PodVolumes implements Volumes for a pod and the objects that it refers to. It modifies neither.
type PodVolumes struct {
	Pod  *manifest.Pod
	Refs *refs.Resolved // may be nil
	Node Node
}

var _ Volumes = PodVolumes{}

// Claim implements Volumes.
func (c PodVolumes) Claim(v *v1.Volume) *refs.Claim {
	return c.Refs.Claim(ClaimName(c.Pod, v))
}

// CSI implements Volumes.
func (c PodVolumes) CSI(v *v1.Volume) *refs.CSIVolume { return c.Refs.CSI(v) }

// CHAPSecret implements Volumes.
func (c PodVolumes) CHAPSecret(v *v1.Volume) *v1.Secret { return c.Refs.CHAPSecret(v) }

// ClaimName returns the name of the claim of a volume; "" if the volume is not a claim.
func ClaimName(p *manifest.Pod, v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil && p.Traits.HasEphemeralClaims:
		return refs.EphemeralClaimName(p.Object, v.Name)
	}
	return ""
}

// Files implements Volumes. The error contains the name of the object, key or field, and never its
// content.
func (c PodVolumes) Files(v *v1.Volume) (map[string]File, error) {
	f := &fileBuilder{PodVolumes: c, files: map[string]File{}}
	var err error
	switch {
	case v.ConfigMap != nil:
		f.mode = *v.ConfigMap.DefaultMode
		err = f.addObject("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		f.mode = *v.Secret.DefaultMode
		err = f.addObject("Secret", v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.DownwardAPI != nil:
		f.mode = *v.DownwardAPI.DefaultMode
		err = f.addDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		f.mode = *v.Projected.DefaultMode
		err = f.addProjected(v.Name, v.Projected.Sources)
	}
	if err == nil {
		err = f.checkPaths()
	}
	if err != nil {
		return nil, err
	}
	return f.files, nil
}

// A fileBuilder collects the files of a volume.
type fileBuilder struct {
	PodVolumes
	mode  int32 // for files without a mode in the manifest
	files map[string]File
}

func (f *fileBuilder) addProjected(volume string, sources []v1.VolumeProjection) error {
	for i := range sources {
		s := &sources[i]
		var err error
		switch {
		case s.ConfigMap != nil:
			err = f.addObject("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = f.addObject("Secret", s.Secret.Name, s.Secret.Items, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = f.addDownward(s.DownwardAPI.Items)
		case s.ServiceAccountToken != nil:
			err = f.addToken(s.ServiceAccountToken)
		case s.ClusterTrustBundle != nil:
			err = f.addTrustBundle(s.ClusterTrustBundle)
		case s.PodCertificate != nil:
			err = f.addPodCertificate(s.PodCertificate, f.Refs.PodCertificate(volume, i))
		default:
			// An API server removes the type of a source if the feature gate of this type is disabled.
			err = errors.New("the source has no type that podd supports; remove this source, or enable its feature gate in the API server")
		}
		if err != nil {
			return fmt.Errorf("sources[%d]: %w", i, err)
		}
	}
	return nil
}

// addObject adds a file for each key in items, or for each key of the object if items is empty.
func (f *fileBuilder) addObject(kind, name string, items []v1.KeyToPath, optional *bool) error {
	data, found := byteData(f.Refs, kind, name)
	if !found {
		return missingObjectError(f.Refs, kind, name, optional)
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

// missingObjectError returns the error for a missing object. It returns nil if the object is
// optional.
func missingObjectError(s *refs.Resolved, kind, name string, optional *bool) error {
	reason := s.MissingObject(kind, name)
	if reason.DoesNotExist && isTrue(optional) {
		return nil
	}
	return missingError(reason.Message)
}

// A missingError is an error with its own message that matches ErrMissing.
type missingError string

func (e missingError) Error() string        { return string(e) }
func (e missingError) Is(target error) bool { return target == ErrMissing }

// addToken adds the file with a token of the pod's service account.
func (f *fileBuilder) addToken(t *v1.ServiceAccountTokenProjection) error {
	text := f.Refs.Token(t)
	if text == nil {
		return missingError("the token of service account " + strconv.Quote(f.Pod.Object.Spec.ServiceAccountName) + " has not been issued yet")
	}
	f.addCredential(t.Path, text)
	return nil
}

// addTrustBundle adds the file with the certificates of ClusterTrustBundles. The file is empty if
// the source is optional and selects no bundle.
func (f *fileBuilder) addTrustBundle(b *v1.ClusterTrustBundleProjection) error {
	anchors, found := f.Refs.TrustAnchors(b)
	if !found {
		reason := f.Refs.MissingTrustBundle(b)
		if !reason.DoesNotExist || !isTrue(b.Optional) {
			return missingError(reason.Message)
		}
	}
	f.addCredential(b.Path, anchors)
	return nil
}

// addPodCertificate adds the files with a private key and its certificate.
func (f *fileBuilder) addPodCertificate(s *v1.PodCertificateProjection, c *manifest.PodCertificate) error {
	if c == nil {
		return missingError("the certificate of signer " + strconv.Quote(s.SignerName) + " has not been issued yet")
	}
	for name, data := range map[string][]byte{s.KeyPath: c.Key, s.CertificateChainPath: c.Chain, s.CredentialBundlePath: slices.Concat(c.Key, c.Chain)} {
		if name != "" {
			f.addCredential(name, data)
		}
	}
	return nil
}

// addCredential adds a file with the mode and owner that the kubelet gives to files with
// credentials. The owner is the common user of the containers, because if root owned the file with
// mode 0600, only root could read it. If the pod has an fsGroup, the group can read the file, too.
func (f *fileBuilder) addCredential(name string, data []byte) {
	file := File{Data: data, Mode: uint32(f.mode), Owner: commonUser(&f.Pod.Object.Spec)}
	s := f.Pod.Object.Spec.SecurityContext
	if file.Owner != nil || s != nil && s.FSGroup != nil {
		file.Mode = 0o600
	}
	f.files[path.Clean(name)] = file
}

// commonUser returns the runAsUser of all containers. It returns nil if they have different users
// or one of them has no runAsUser.
func commonUser(spec *v1.PodSpec) *int64 {
	var user *int64
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			runs := effectiveSecurity(spec, &list[i]).RunAsUser
			if runs == nil || user != nil && *user != *runs {
				return nil
			}
			user = runs
		}
	}
	return user
}

func (f *fileBuilder) add(name string, data []byte, mode *int32) {
	file := File{Data: data, Mode: uint32(f.mode)}
	if mode != nil {
		file.Mode = uint32(*mode)
	}
	f.files[path.Clean(name)] = file
}

// byteData returns all keys of an object as bytes. found is false if the object is missing.
func byteData(s *refs.Resolved, kind, name string) (data map[string][]byte, found bool) {
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

func (f *fileBuilder) addDownward(items []v1.DownwardAPIVolumeFile) error {
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

func (f *fileBuilder) downwardValue(item *v1.DownwardAPIVolumeFile) (string, error) {
	in := &ContainerInput{Pod: f.Pod, Node: f.Node}
	switch {
	case item.FieldRef != nil && item.FieldRef.FieldPath == "metadata.labels":
		return formatMap(f.Pod.Object.Labels), nil
	case item.FieldRef != nil && item.FieldRef.FieldPath == "metadata.annotations":
		return formatMap(f.Pod.Object.Annotations), nil
	case item.FieldRef != nil:
		return fieldValue(in, item.FieldRef)
	case item.ResourceFieldRef != nil:
		return resourceValue(in, item.ResourceFieldRef)
	}
	return "", errors.New("the item has neither fieldRef nor resourceFieldRef")
}

// formatMap formats labels or annotations like the downward API: a sorted list of lines
// key="value".
func formatMap(m map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("%v=%q", key, m[key]))
	}
	return strings.Join(lines, "\n")
}

// checkPaths returns an error if a file is the parent directory of another file.
func (f *fileBuilder) checkPaths() error {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, isFile := f.files[dir]; isFile {
				return fmt.Errorf("%q is the path of a file and the parent directory of %q; change one of the two paths", dir, name)
			}
		}
	}
	return nil
}
