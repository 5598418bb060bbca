package refs

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	certificates "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
)

// A Resolved contains the objects to which a pod refers, from the source and namespace of the
// pod. It is immutable. A nil Resolved contains no objects.
type Resolved struct {
	ConfigMaps map[string]*v1.ConfigMap // by name
	Secrets    map[string]*v1.Secret
	Claims     map[string]Claim
	// Blocker is the reason why the pod cannot be set up; the zero value if it can be set up.
	Blocker
	// These are digests of the objects for files, variables, image pulls, mounts and ephemeral
	// containers; "" if there are none. A digest changes when the content of an object changes, but
	// not when podd is restarted. A user who does not have the salt learns nothing about the
	// content from a digest. FilesDigest also changes when CSI drivers must be called again while
	// the pod runs.
	FilesDigest, EnvDigest, PullDigest, MountDigest, EphemeralDigest string

	pod *manifest.Pod // the pod that has these references

	missingObjects              map[manifest.ObjectRef]manifest.MissingObject // objects that an API server has not returned; empty for other sources
	tokens                      map[string][]byte                             // by name
	certificates                map[string]*manifest.PodCertificate           // by name
	trustBundles                map[manifest.ObjectRef][]*certificates.ClusterTrustBundle
	services, apiServerServices *manifest.Services    // Services of the pod's namespace, and Services of the namespace of apiServerService
	csiVolumes                  map[string]*CSIVolume // by name of the pod's volume
	chapSecrets                 map[string]*v1.Secret // by name of the pod's volume
}

func newResolved(p *manifest.Pod) *Resolved {
	return &Resolved{
		ConfigMaps: map[string]*v1.ConfigMap{}, Secrets: map[string]*v1.Secret{}, Claims: map[string]Claim{},
		pod: p, missingObjects: map[manifest.ObjectRef]manifest.MissingObject{}, tokens: map[string][]byte{}, certificates: map[string]*manifest.PodCertificate{}, trustBundles: map[manifest.ObjectRef][]*certificates.ClusterTrustBundle{}, csiVolumes: map[string]*CSIVolume{}, chapSecrets: map[string]*v1.Secret{},
	}
}

// A Blocker is the reason why a pod cannot be set up. The zero value means that it can be set up.
type Blocker struct {
	// MissingMessage describes the missing object and where podd has searched for it; "" if no
	// object is missing.
	MissingMessage string
	// Volume is the name of the pod's volume that needs the object; "" if no volume needs it.
	Volume string
	// EndsByItself reports whether the object will exist without an action of a user, or the lookup
	// is in progress. Such a Blocker is not an error.
	EndsByItself bool
	// Reason is the waiting reason in the status of the containers; "" means ContainerCreating.
	Reason string
	// Remedy tells users what to do if the object can never exist; "" if it can still be created.
	Remedy string
	// AttachLimitMessage is the message of a pod that fails because the node has reached a limit of
	// attached volumes; "" if the pod waits. Even if it is set, the pod waits for AttachTimeout after its
	// admission. MissingMessage is also set.
	AttachLimitMessage string
}

// ConfigMap returns the ConfigMap with this name, or nil if there is none.
func (s *Resolved) ConfigMap(name string) *v1.ConfigMap {
	if s == nil {
		return nil
	}
	return s.ConfigMaps[name]
}

// Secret returns the Secret with this name, or nil if there is none.
func (s *Resolved) Secret(name string) *v1.Secret {
	if s == nil {
		return nil
	}
	return s.Secrets[name]
}

// Claim returns the claim with this name and the volume of the claim. It returns nil if there is no
// such claim or if it cannot be bound.
func (s *Resolved) Claim(name string) *Claim {
	if s == nil {
		return nil
	}
	if c, ok := s.Claims[name]; ok {
		return &c
	}
	return nil
}

// Token returns the token of a projected volume, or nil if there is none.
func (s *Resolved) Token(t *v1.ServiceAccountTokenProjection) []byte {
	if s == nil {
		return nil
	}
	return s.tokens[TokenRef(s.pod.Object, t).Name]
}

// PodCertificate returns the certificate for one source of a projected volume, or nil if there is
// none. The parameter index is the index of this source.
func (s *Resolved) PodCertificate(volume string, index int) *manifest.PodCertificate {
	if s == nil {
		return nil
	}
	return s.certificates[PodCertificateRef(s.pod.Object, volume, index).Name]
}

// MissingObject returns the reason why an object in the namespace of the pod is missing. The object
// must be missing.
func (s *Resolved) MissingObject(kind, name string) manifest.MissingObject {
	ref := manifest.ObjectRef{Kind: kind, NamespacedName: types.NamespacedName{Name: name}}
	if s != nil && s.pod != nil {
		ref.Namespace = s.pod.Key.Namespace
	}
	return s.missingObject(ref)
}

func (s *Resolved) missingObject(ref manifest.ObjectRef) manifest.MissingObject {
	if s == nil || s.pod == nil || !s.pod.Traits.HasRefsFromServer {
		return manifest.MissingObject{DoesNotExist: true, Message: fmt.Sprintf("%s %q does not exist", ref.Kind, ref.Name)}
	}
	if missingObject, ok := s.missingObjects[ref]; ok {
		return missingObject
	}
	return manifest.MissingObject{Message: fmt.Sprintf("%s %q is being looked up", ref.Kind, ref.Name)}
}

// EqualForStart reports whether s and o have the same effect on a start of the pod. If it returns
// true and a start with o has failed, a start with s would fail in the same way.
func (s *Resolved) EqualForStart(o *Resolved) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s == o || samePod(s.pod, o.pod) && s.hasSameDigests(o) && maps.Equal(s.missingObjects, o.missingObjects)
}

// samePod reports whether a and b are pods that refer to the same objects. Two pods do so if they
// are the same pointer, or if both have the trait KeepsVersion and the same UID.
func samePod(a, b *manifest.Pod) bool {
	return a == b || a != nil && b != nil && a.Traits.KeepsVersion && b.Traits.KeepsVersion && a.UID == b.UID
}

// hasSameDigests reports whether the Blocker and all digests of s and o are equal.
func (s *Resolved) hasSameDigests(o *Resolved) bool {
	return s.Blocker == o.Blocker && s.FilesDigest == o.FilesDigest && s.EnvDigest == o.EnvDigest && s.PullDigest == o.PullDigest && s.MountDigest == o.MountDigest && s.EphemeralDigest == o.EphemeralDigest
}

// Resolve looks up the objects to which a pod refers. It returns nil if the pod has no references.
// The parameter previous is the previous result for the pod, or nil. If nothing has changed,
// Resolve returns the previous result. The parameter salt has the same meaning as for ResolveSet.
func Resolve(p *manifest.Pod, set *manifest.Set, salt string, previous *Resolved) *Resolved {
	return newResolver(set).resolve(p, salt, previous)
}

func (r *resolver) resolve(p *manifest.Pod, salt string, previous *Resolved) *Resolved {
	podRefs, allRefs := List(p), r.list(p)
	if len(allRefs) == 0 && !hasMutableMetadataFiles(p) && (p == nil || !p.Traits.HasRefsFromServer) {
		return nil
	}
	sourceLookup := r.lookupFor(p.Origin.Source)
	s := newResolved(p)
	if p.Traits.HasRefsFromServer {
		s.Blocker = sourceLookup.blocker(p, allRefs, r.set.Node)
		s.addLookups(&sourceLookup.cluster, allRefs)
	} else {
		s.Blocker = r.blocker(p, allRefs)
	}
	s.addCSI(sourceLookup, r.set.Node, previous)
	s.addCHAP(sourceLookup)
	for _, u := range podRefs {
		s.addObject(sourceLookup, u.Object)
		if u.TrustBundle != nil {
			s.trustBundles[u.Object] = sourceLookup.trustBundles(u.Object)
		}
	}
	isSamePod := previous != nil && samePod(previous.pod, p)
	if isSamePod && previous.pod == p && s.Blocker == previous.Blocker && s.hasSameObjects(previous) {
		return previous
	}
	s.FilesDigest, s.EnvDigest = s.digest(salt, podRefs, forFiles)+metadataDigest(p), s.digest(salt, podRefs, forEnv)
	if driverCalls := s.encodeDriverCalls(); driverCalls != nil {
		s.FilesDigest += keyedDigest(salt, driverCalls)
	}
	s.PullDigest, s.MountDigest = s.digest(salt, podRefs, forPull), s.digest(salt, podRefs, forMount)
	s.EphemeralDigest = s.digest(salt, podRefs, forEphemeral)
	if isSamePod && s.hasSameDigests(previous) && s.hasSameLookups(previous) {
		return previous
	}
	return s
}

// addObject adds the object to which ref refers, if sourceLookup finds the object.
func (s *Resolved) addObject(sourceLookup *lookup, ref manifest.ObjectRef) {
	switch ref.Kind {
	case manifest.ConfigMapKind:
		if c := sourceLookup.ConfigMaps[ref.NamespacedName]; c != nil {
			s.ConfigMaps[c.Name] = c
		}
	case manifest.SecretKind:
		if c := sourceLookup.Secrets[ref.NamespacedName]; c != nil {
			s.Secrets[c.Name] = c
		}
	case manifest.ClaimKind:
		if c := sourceLookup.Claims[ref.NamespacedName]; c != nil {
			if bound, reason := sourceLookup.bind(c); reason == "" {
				s.Claims[c.Name] = bound
			}
		}
	}
}

// addLookups adds the Services, tokens and certificates that an API server has returned, and the
// reasons why objects are missing.
func (s *Resolved) addLookups(c *manifest.Cluster, refs []Ref) {
	s.services, s.apiServerServices = c.Services[s.pod.Key.Namespace], c.Services[apiServerService.Namespace]
	for _, u := range refs {
		if token, ok := c.Tokens[u.Object.NamespacedName]; ok && u.Object.Kind == manifest.TokenKind && u.role == forFiles {
			s.tokens[u.Object.Name] = token.Text
		}
		if certificate := c.PodCertificates[u.Object.NamespacedName]; certificate != nil && u.Object.Kind == manifest.CertificateKind {
			s.certificates[u.Object.Name] = certificate
		}
		if missingObject, ok := c.Missing[u.Object]; ok {
			s.missingObjects[u.Object] = missingObject
		}
	}
}

// hasSameObjects reports whether s and o contain the same objects. It compares pointers, because an
// unchanged object keeps its pointer.
func (s *Resolved) hasSameObjects(o *Resolved) bool {
	return maps.Equal(s.ConfigMaps, o.ConfigMaps) && maps.Equal(s.Secrets, o.Secrets) && maps.Equal(s.Claims, o.Claims) &&
		maps.EqualFunc(s.trustBundles, o.trustBundles, slices.Equal) && s.hasSameLookups(o)
}

// hasSameLookups reports whether s and o contain the same results of lookups at an API server.
func (s *Resolved) hasSameLookups(o *Resolved) bool {
	return s.services == o.services && s.apiServerServices == o.apiServerServices && maps.Equal(s.missingObjects, o.missingObjects) &&
		maps.EqualFunc(s.tokens, o.tokens, bytes.Equal) && maps.Equal(s.certificates, o.certificates) && maps.Equal(s.csiVolumes, o.csiVolumes) && maps.Equal(s.chapSecrets, o.chapSecrets)
}

// hasMutableMetadataFiles reports whether files in the volumes of the pod may contain labels and
// annotations that can change while the pod runs.
func hasMutableMetadataFiles(p *manifest.Pod) bool {
	if p == nil || !p.Traits.UpdatesMetadataInPlace {
		return false
	}
	return slices.ContainsFunc(p.Object.Spec.Volumes, func(v v1.Volume) bool {
		return v.DownwardAPI != nil || v.Projected != nil &&
			slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool { return s.DownwardAPI != nil })
	})
}

// metadataDigest returns a digest of the labels and annotations; "" if hasMutableMetadataFiles is
// false.
func metadataDigest(p *manifest.Pod) string {
	if !hasMutableMetadataFiles(p) {
		return ""
	}
	return manifest.Digest("own", p.Object.Labels, p.Object.Annotations)
}

// digest returns a digest of the objects to which those refs refer that have the given role; "" if
// there are none. The digest includes the names of missing objects.
func (s *Resolved) digest(salt string, refs []Ref, role role) string {
	mac := hmac.New(sha256.New, []byte(salt))
	var hashedObjects []manifest.ObjectRef
	for _, u := range refs {
		if u.role != role || u.TrustBundle == nil && slices.Contains(hashedObjects, u.Object) {
			continue
		}
		hashedObjects = append(hashedObjects, u.Object)
		writeTexts(mac, []byte(u.Object.Kind), []byte(u.Object.Name))
		if u.TrustBundle != nil {
			anchors, _ := s.TrustAnchors(u.TrustBundle)
			writeTexts(mac, anchors)
		}
		if c := s.ConfigMap(u.Object.Name); c != nil && u.Object.Kind == manifest.ConfigMapKind {
			writeMap(mac, c.Data)
			writeMap(mac, c.BinaryData)
		}
		if c := s.Secret(u.Object.Name); c != nil && u.Object.Kind == manifest.SecretKind {
			writeMap(mac, c.Data)
			if role == forPull { // include the type, because it determines how the data are parsed
				writeTexts(mac, []byte(c.Type))
			}
		}
		if c := s.Claim(u.Object.Name); c != nil && u.Object.Kind == manifest.ClaimKind {
			writeTexts(mac, c.encode())
		}
		if u.Object.Kind == manifest.TokenKind {
			writeTexts(mac, s.tokens[u.Object.Name])
		}
		if c := s.certificates[u.Object.Name]; c != nil && u.Object.Kind == manifest.CertificateKind {
			writeTexts(mac, c.Key, c.Chain)
		}
	}
	if role == forMount {
		for _, volume := range slices.Sorted(maps.Keys(s.csiVolumes)) {
			writeTexts(mac, []byte(volume), s.csiVolumes[volume].encode())
		}
		for _, volume := range slices.Sorted(maps.Keys(s.chapSecrets)) {
			writeTexts(mac, []byte(volume))
			writeMap(mac, s.chapSecrets[volume].Data)
		}
	}
	if len(hashedObjects) == 0 && (role != forMount || len(s.csiVolumes)+len(s.chapSecrets) == 0) {
		return ""
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func keyedDigest(salt string, text []byte) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// writeTexts writes each text to h, preceded by its length, so that different lists of texts have
// different hashes. Without the lengths, ("ab", "c") and ("a", "bc") would be equal.
func writeTexts(h hash.Hash, texts ...[]byte) {
	for _, text := range texts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
	}
}

func writeMap[V string | []byte](h hash.Hash, m map[string]V) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(m))))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		writeTexts(h, []byte(key), []byte(m[key]))
	}
}
