package manifest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Supply is what the objects beside a pod hold for it: those it refers to, of
// its own source and namespace. Immutable. A nil Supply holds nothing.
type Supply struct {
	ConfigMaps map[string]*v1.ConfigMap // by name
	Secrets    map[string]*v1.Secret
	Claims     map[string]Claim
	// Missing says what is not there that the pod cannot start without, and
	// where that was looked for; "" for nothing.
	Missing string
	// Files, Env, Pull and Mount tell one content of what is read for each role
	// from another, also in another life of podd. Without the salt they were made
	// with they tell nothing of the content.
	Files, Env, Pull, Mount, Ephemeral string

	pod *Pod // whose references they are
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

// SupplyOf looks up what a pod refers to; nil when it refers to nothing. Where
// it comes to the same as before for this pod, before itself is the answer.
func SupplyOf(p *Pod, set *Set, salt string, before *Supply) *Supply {
	used := Uses(p)
	if len(used) == 0 && !showsItself(p) {
		return nil
	}
	own := set.Objects[p.Origin.Source]
	s := &Supply{Missing: missing(p, used, set), pod: p}
	for _, u := range used {
		if c := own.ConfigMaps[u.Object.NamespacedName]; c != nil && u.Object.Kind == "ConfigMap" {
			put(&s.ConfigMaps, c.Name, c)
		}
		if c := own.Secrets[u.Object.NamespacedName]; c != nil && u.Object.Kind == "Secret" {
			put(&s.Secrets, c.Name, c)
		}
		if c := own.Claims[u.Object.NamespacedName]; c != nil && u.Object.Kind == kindClaim {
			if bound, lack := own.Binding(c); lack == "" {
				put(&s.Claims, c.Name, bound)
			}
		}
	}
	sameUse := before != nil && before.pod == p && s.Missing == before.Missing
	if sameUse && maps.Equal(s.ConfigMaps, before.ConfigMaps) && maps.Equal(s.Secrets, before.Secrets) && maps.Equal(s.Claims, before.Claims) {
		return before
	}
	s.Files, s.Env = s.version(salt, used, ForFiles)+ownText(p), s.version(salt, used, ForEnv)
	s.Pull, s.Mount = s.version(salt, used, ForPull), s.version(salt, used, ForMount)
	s.Ephemeral = s.version(salt, used, ForEphemeral)
	if sameUse && s.Files == before.Files && s.Env == before.Env && s.Pull == before.Pull && s.Mount == before.Mount && s.Ephemeral == before.Ephemeral {
		return before
	}
	return s
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
	}
	if len(done) == 0 {
		return ""
	}
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
