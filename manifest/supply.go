package manifest

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

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Supply is what the objects beside a pod hold for it: those it refers to, of
// its own source and namespace. Immutable. A nil Supply holds nothing.
type Supply struct {
	ConfigMaps map[string]*v1.ConfigMap // by name
	Secrets    map[string]*v1.Secret
	Claims     map[string]Claim
	// Wait is what the pod is not set up without.
	Wait
	// Files, Env, Pull and Mount tell one content of what is read for each role
	// from another, also in another life of podd. Without the salt they were made
	// with they tell nothing of the content. Where drivers are to be called again while
	// the pod runs, Files tells of that, too.
	Files, Env, Pull, Mount, Ephemeral string

	pod *Pod // whose references they are

	lacks         map[ObjectRef]Lack // of an API server's; nil for others
	tokens        map[string][]byte  // by name
	services, api *Services          // of the pod's namespace, and of the API server's
	csi           map[string]*CSI    // by the pod's volume
}

// Wait is what keeps a pod from being set up; zero: nothing.
type Wait struct {
	// Missing says what is not there that the pod cannot start without, and
	// where that was looked for; "" for nothing.
	Missing string
	// Volume is the one that lacks it; "" when it is no volume.
	Volume string
	// Soon says that it is being looked up, which is no trouble.
	Soon bool
	// Reason is what the containers wait for; "": that they are created.
	Reason string
}

// ConfigMap is the object of a name; nil when there is none.
func (s *Supply) ConfigMap(name string) *v1.ConfigMap {
	if s == nil {
		return nil
	}
	return s.ConfigMaps[name]
}

// Secret likewise.
func (s *Supply) Secret(name string) *v1.Secret {
	if s == nil {
		return nil
	}
	return s.Secrets[name]
}

// Claim is the claim of a name with what it is bound to; nil when there is none.
func (s *Supply) Claim(name string) *Claim {
	if s == nil {
		return nil
	}
	if c, ok := s.Claims[name]; ok {
		return &c
	}
	return nil
}

// Token is the one of a projected volume; nil when there is none.
func (s *Supply) Token(t *v1.ServiceAccountTokenProjection) []byte {
	if s == nil {
		return nil
	}
	return s.tokens[TokenOf(s.pod.Spec, t).Name]
}

// Lack is why an object is not there, which it is not.
func (s *Supply) Lack(kind, name string) Lack {
	if s == nil || s.pod == nil || s.pod.Origin.Kind != KindAPI {
		return Lack{Absent: true, Why: fmt.Sprintf("%s %q is not there", kind, name)}
	}
	if lack, ok := s.lacks[ObjectRef{kind, types.NamespacedName{Namespace: s.pod.Key.Namespace, Name: name}}]; ok {
		return lack
	}
	return Lack{Why: fmt.Sprintf("%s %q is being looked up", kind, name)}
}

// Same says that a pod that was given one has nothing to try anew with the other.
func (s *Supply) Same(o *Supply) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s == o || samePod(s.pod, o.pod) && s.sameText(o) && maps.Equal(s.lacks, o.lacks)
}

// samePod: a pod of an API server reads the same for as long as it lives.
func samePod(a, b *Pod) bool {
	return a == b || a != nil && b != nil && a.Origin.Kind == KindAPI && b.Origin.Kind == KindAPI && a.UID == b.UID
}

func (s *Supply) sameText(o *Supply) bool {
	return s.Wait == o.Wait && s.Files == o.Files && s.Env == o.Env && s.Pull == o.Pull && s.Mount == o.Mount && s.Ephemeral == o.Ephemeral
}

// SupplyOf looks up what a pod refers to; nil when it refers to nothing. Where
// it comes to the same as before for this pod, before itself is the answer.
func SupplyOf(p *Pod, set *Set, salt string, before *Supply) *Supply {
	used := Uses(p)
	ofCluster := p != nil && p.Origin.Kind == KindAPI
	if len(used) == 0 && !showsItself(p) && !ofCluster {
		return nil
	}
	own := set.Objects[p.Origin.Source]
	s := &Supply{pod: p}
	if ofCluster {
		all := append(slices.Clip(used), own.DriverUses(p.Spec)...)
		s.Wait = own.waits(p, all, set.Node)
		s.ask(own.Cluster, all)
		s.drive(&own, set.Node, before)
	} else {
		s.Wait = missing(p, used, set)
	}
	for _, u := range used {
		s.take(&own, u.Object)
	}
	known := before != nil && samePod(before.pod, p)
	if known && before.pod == p && s.Wait == before.Wait && s.sameObjects(before) {
		return before
	}
	s.Files, s.Env = s.version(salt, used, ForFiles)+ownText(p), s.version(salt, used, ForEnv)
	if calls := s.calls(); calls != nil {
		s.Files += keyed(salt, calls)
	}
	s.Pull, s.Mount = s.version(salt, used, ForPull), s.version(salt, used, ForMount)
	s.Ephemeral = s.version(salt, used, ForEphemeral)
	if known && s.sameText(before) && s.sameLookups(before) {
		return before
	}
	return s
}

// take is an object that is there.
func (s *Supply) take(own *Objects, ref ObjectRef) {
	switch ref.Kind {
	case "ConfigMap":
		if c := own.ConfigMaps[ref.NamespacedName]; c != nil {
			put(&s.ConfigMaps, c.Name, c)
		}
	case "Secret":
		if c := own.Secrets[ref.NamespacedName]; c != nil {
			put(&s.Secrets, c.Name, c)
		}
	case kindClaim:
		if c := own.Claims[ref.NamespacedName]; c != nil {
			if bound, lack := own.Binding(c); lack == "" {
				put(&s.Claims, c.Name, bound)
			}
		}
	}
}

// ask is what only an API server has, and why it has not the rest.
func (s *Supply) ask(c *Cluster, used []Use) {
	if c == nil {
		return
	}
	s.services, s.api = c.Services[s.pod.Key.Namespace], c.Services[apiService.Namespace]
	for _, u := range used {
		if token, ok := c.Tokens[u.Object.NamespacedName]; ok && u.Object.Kind == kindToken && u.Role == ForFiles {
			put(&s.tokens, u.Object.Name, token.Text)
		}
		if lack, ok := c.Lacks[u.Object]; ok {
			put(&s.lacks, u.Object, lack)
		}
	}
}

// sameObjects and sameLookups say that two Supplies have the same: what is followed
// keeps its pointer.
func (s *Supply) sameObjects(o *Supply) bool {
	return maps.Equal(s.ConfigMaps, o.ConfigMaps) && maps.Equal(s.Secrets, o.Secrets) && maps.Equal(s.Claims, o.Claims) && s.sameLookups(o)
}

func (s *Supply) sameLookups(o *Supply) bool {
	return s.services == o.services && s.api == o.api && maps.Equal(s.lacks, o.lacks) &&
		maps.EqualFunc(s.tokens, o.tokens, bytes.Equal) && maps.Equal(s.csi, o.csi)
}

// showsItself: labels and annotations of the pod are in its files and may change
// while it runs.
func showsItself(p *Pod) bool {
	if p == nil || !p.Written && p.Origin.Kind != KindAPI {
		return false
	}
	return slices.ContainsFunc(p.Spec.Spec.Volumes, func(v v1.Volume) bool {
		return v.DownwardAPI != nil || v.Projected != nil &&
			slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool { return s.DownwardAPI != nil })
	})
}

// ownText tells what such files have of the pod from what they had.
func ownText(p *Pod) string {
	if !showsItself(p) {
		return ""
	}
	return digest("own", p.Spec.Labels, p.Spec.Annotations)
}

// version digests the objects of one role, "" for none. What is missing counts.
func (s *Supply) version(salt string, used []Use, role Role) string {
	mac := hmac.New(sha256.New, []byte(salt))
	var done []ObjectRef
	for _, u := range used {
		if u.Role != role || slices.Contains(done, u.Object) {
			continue
		}
		done = append(done, u.Object)
		write(mac, []byte(u.Object.Kind), []byte(u.Object.Name))
		if c := s.ConfigMap(u.Object.Name); c != nil && u.Object.Kind == "ConfigMap" {
			writeMap(mac, c.Data)
			writeMap(mac, c.BinaryData)
		}
		if c := s.Secret(u.Object.Name); c != nil && u.Object.Kind == "Secret" {
			writeMap(mac, c.Data)
			if role == ForPull { // the type says how the data are read
				write(mac, []byte(c.Type))
			}
		}
		if c := s.Claim(u.Object.Name); c != nil && u.Object.Kind == kindClaim {
			write(mac, c.text())
		}
		if u.Object.Kind == kindToken {
			write(mac, s.tokens[u.Object.Name])
		}
	}
	if role == ForMount {
		for _, volume := range slices.Sorted(maps.Keys(s.csi)) {
			write(mac, []byte(volume), s.csi[volume].text())
		}
	}
	if len(done) == 0 && (role != ForMount || len(s.csi) == 0) {
		return ""
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

func keyed(salt string, text []byte) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// write adds texts so that no two lists of them come to the same.
func write(h hash.Hash, texts ...[]byte) {
	for _, text := range texts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
	}
}

func writeMap[V string | []byte](h hash.Hash, m map[string]V) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(m))))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		write(h, []byte(key), []byte(m[key]))
	}
}
