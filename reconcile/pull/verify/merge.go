package verify

import (
	"cmp"
	"maps"
	"slices"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/manifest/order"
)

// The limits of a record. Without limits, a namespace that is created again and again would let the
// record of an image grow. If a limit is exceeded, an entry is removed, and the pod whose credentials
// it contains must pull the image again.
const (
	// MaxCredentials is the maximum number of Secrets, and of service accounts, of a repository. As in
	// the kubelet, Decide adds no Secrets beyond this limit; a pull replaces an entry.
	MaxCredentials = 100
	// MaxRepositories is the maximum number of repositories of an image.
	MaxRepositories = 20
)

// Merge adds the credentials with which an image was pulled from a repository to the recorded
// credentials, and reports whether this changed them. It does not modify recorded. The zero value of
// added means that the credentials are unknown.
func Merge(recorded map[string]kubelet.ImagePullCredentials, repository string, added kubelet.ImagePullCredentials) (merged map[string]kubelet.ImagePullCredentials, changed bool) {
	before, isRecorded := recorded[repository]
	after := mergeCredentials(before, added)
	if isRecorded && equalCredentials(before, after) {
		return recorded, false
	}
	merged = maps.Clone(recorded)
	if merged == nil {
		merged = map[string]kubelet.ImagePullCredentials{}
	}
	merged[repository] = after
	for _, other := range slices.Sorted(maps.Keys(merged)) {
		if len(merged) > MaxRepositories && other != repository {
			delete(merged, other)
		}
	}
	return merged, true
}

// mergeCredentials returns the credentials in a and b. If every pod of the node may use the image,
// the other credentials are not needed.
func mergeCredentials(a, b kubelet.ImagePullCredentials) kubelet.ImagePullCredentials {
	if a.NodePodsAccessible || b.NodePodsAccessible {
		return kubelet.ImagePullCredentials{NodePodsAccessible: true}
	}
	for _, s := range b.KubernetesSecrets {
		a.KubernetesSecrets = addSecret(a.KubernetesSecrets, s)
	}
	for _, s := range b.KubernetesServiceAccounts {
		a.KubernetesServiceAccounts = addServiceAccount(a.KubernetesServiceAccounts, s)
	}
	return a
}

// equalCredentials reports whether a and b contain the same credentials.
func equalCredentials(a, b kubelet.ImagePullCredentials) bool {
	return a.NodePodsAccessible == b.NodePodsAccessible && slices.Equal(a.KubernetesSecrets, b.KubernetesSecrets) &&
		slices.Equal(a.KubernetesServiceAccounts, b.KubernetesServiceAccounts)
}

// addSecret returns all with s, sorted. s replaces an earlier version of the same Secret.
func addSecret(all []kubelet.ImagePullSecret, s kubelet.ImagePullSecret) []kubelet.ImagePullSecret {
	if slices.Contains(all, s) {
		return all
	}
	others := make([]kubelet.ImagePullSecret, 0, len(all)+1)
	for _, o := range all {
		if !isSameSecret(o, s) {
			others = append(others, o)
		}
	}
	others = makeRoom(others, func(o kubelet.ImagePullSecret) bool { return o.Namespace == s.Namespace && o.Name == s.Name })
	others = append(others, s)
	order.Slice(others, func(a, b kubelet.ImagePullSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return others
}

// addServiceAccount returns all with s, sorted.
func addServiceAccount(all []kubelet.ImagePullServiceAccount, s kubelet.ImagePullServiceAccount) []kubelet.ImagePullServiceAccount {
	if slices.Contains(all, s) {
		return all
	}
	others := makeRoom(slices.Clone(all), func(o kubelet.ImagePullServiceAccount) bool { return o.Namespace == s.Namespace && o.Name == s.Name })
	others = append(others, s)
	order.Slice(others, func(a, b kubelet.ImagePullServiceAccount) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return others
}

// makeRoom removes elements of all until it has room for one more. It removes an element for which
// isStale returns true first, because an object with the same name replaced it.
func makeRoom[T any](all []T, isStale func(T) bool) []T {
	for len(all) >= MaxCredentials {
		i := max(slices.IndexFunc(all, isStale), 0)
		all = slices.Delete(all, i, i+1)
	}
	return all
}
