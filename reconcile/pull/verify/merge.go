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

// Merge adds the credentials with which an image was pulled from a repository to the image's
// record, which maps repositories to credentials. It does not modify record, but returns a changed
// copy. If record already contains the credentials, Merge returns record, and hasChanged is false.
// The zero value of credentials means that they are unknown.
func Merge(record map[string]kubelet.ImagePullCredentials, repository string, credentials kubelet.ImagePullCredentials) (newRecord map[string]kubelet.ImagePullCredentials, hasChanged bool) {
	oldCredentials, isRecorded := record[repository]
	newCredentials := mergeCredentials(oldCredentials, credentials)
	if isRecorded && equalCredentials(oldCredentials, newCredentials) {
		return record, false
	}
	newRecord = maps.Clone(record)
	if newRecord == nil {
		newRecord = map[string]kubelet.ImagePullCredentials{}
	}
	newRecord[repository] = newCredentials
	for _, otherRepository := range slices.Sorted(maps.Keys(newRecord)) {
		if len(newRecord) > MaxRepositories && otherRepository != repository {
			delete(newRecord, otherRepository)
		}
	}
	return newRecord, true
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

// addSecret returns secrets and s, sorted. s replaces an earlier version of the same Secret.
func addSecret(secrets []kubelet.ImagePullSecret, s kubelet.ImagePullSecret) []kubelet.ImagePullSecret {
	if slices.Contains(secrets, s) {
		return secrets
	}
	result := make([]kubelet.ImagePullSecret, 0, len(secrets)+1)
	for _, o := range secrets {
		if !isSameSecret(o, s) {
			result = append(result, o)
		}
	}
	result = makeRoom(result, func(o kubelet.ImagePullSecret) bool { return o.Namespace == s.Namespace && o.Name == s.Name })
	result = append(result, s)
	order.Slice(result, func(a, b kubelet.ImagePullSecret) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return result
}

// addServiceAccount returns accounts and s, sorted.
func addServiceAccount(accounts []kubelet.ImagePullServiceAccount, s kubelet.ImagePullServiceAccount) []kubelet.ImagePullServiceAccount {
	if slices.Contains(accounts, s) {
		return accounts
	}
	result := makeRoom(slices.Clone(accounts), func(o kubelet.ImagePullServiceAccount) bool { return o.Namespace == s.Namespace && o.Name == s.Name })
	result = append(result, s)
	order.Slice(result, func(a, b kubelet.ImagePullServiceAccount) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return result
}

// makeRoom removes elements of list until another element fits into it. It first removes an element
// for which isStale returns true, because an object with the same name has replaced that element.
func makeRoom[T any](list []T, isStale func(T) bool) []T {
	for len(list) >= MaxCredentials {
		i := max(slices.IndexFunc(list, isStale), 0)
		list = slices.Delete(list, i, i+1)
	}
	return list
}
