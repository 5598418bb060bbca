// Package verify decides whether a pod may use an image that is already on the node (KEP-2535). An
// image that podd pulled with the credentials of a pod is available only to pods that have the same
// credentials, because a registry would not give the image to other pods.
//
//	pull policy ─▶ verification policy ─▶ record of the image ─▶ use, pull or refuse
//
// Decide reads nothing: package record stores the records, and package pull carries out decisions.
package verify

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// A State is the state of the records of an image.
type State int

const (
	// Preloaded means that there is no record: podd has not pulled the image.
	Preloaded State = iota
	// Interrupted means that podd began to pull the image, and that the result was not recorded.
	Interrupted
	// Recorded means that there is a record.
	Recorded
	// Unreadable means that there is a file about the image that cannot be read.
	Unreadable
)

// Records contains the stored facts about the pulls of an image.
type Records struct {
	State State
	// Credentials contains the credentials with which the image was pulled, by the repository from
	// which it was pulled. It is empty unless State is Recorded.
	Credentials map[string]kubelet.ImagePullCredentials
}

// Input contains the facts for a decision.
type Input struct {
	// Image is the name of the image in the pod.
	Image      string
	PullPolicy v1.PullPolicy
	// IsPresent reports whether the image is on the node.
	IsPresent bool
	// Names contains the names of the present image that the runtime lists.
	Names []string
	// Policy is nil if a pod may use every image that is on the node.
	Policy  *Policy
	Records Records
	// Secrets contains the credentials of the pod's imagePullSecrets that apply to the image.
	Secrets []kubelet.ImagePullSecret
	// ServiceAccount is the service account whose token podd can pass to a credential provider for
	// the image, or nil.
	ServiceAccount *kubelet.ImagePullServiceAccount
}

// An Action is the consequence of a decision.
type Action int

const (
	// Use means that the pod uses the present image.
	Use Action = iota
	// Pull means that the image must be pulled with the pod's credentials.
	Pull
	// Refuse means that the pod must not start, because its pull policy does not allow a pull.
	Refuse
)

// A Result is the result of a verification, as in the label of the kubelet's metric
// imagemanager_image_mustpull_checks_total.
type Result string

// The results of a verification.
const (
	PolicyAllowed    Result = "credentialPolicyAllowed"
	RecordFound      Result = "credentialRecordFound"
	MustAuthenticate Result = "mustAuthenticate"
	CheckFailed      Result = "error"
)

// A Decision is the result of Decide.
type Decision struct {
	Action Action
	// Result is "" if there was nothing to verify.
	Result Result
	// SecretToRecord is a Secret to add to the record, or nil. It gives access to the image,
	// but is not yet in the record in this version. After it was added, the pod keeps its
	// access when either the name or the content of the Secret changes.
	SecretToRecord *kubelet.ImagePullSecret
}

// Decide decides whether a pod may use the image that is on the node, or must pull an image.
func Decide(in Input) Decision {
	switch {
	case in.PullPolicy == v1.PullAlways:
		return Decision{Action: Pull}
	case !in.IsPresent:
		return Decision{Action: in.pullOrRefuse()}
	case in.Policy == nil:
		return Decision{Action: Use}
	}
	result, secretToRecord := in.verify()
	d := Decision{Result: result, SecretToRecord: secretToRecord}
	if result == MustAuthenticate || result == CheckFailed {
		d.Action = in.pullOrRefuse()
	}
	return d
}

// DecideOffline decides whether a pod may use the image on the node after a pull has failed because
// the registry is unreachable. The action is Use or Pull. The pull policy must not be Never.
//
// An image with an unreadable record is treated as preloaded, because a damaged file must not
// prevent a node without a network from starting its pods. A kubelet does not start such a pod.
func DecideOffline(in Input) Decision {
	in.PullPolicy = v1.PullIfNotPresent
	if in.Records.State == Unreadable {
		in.Records = Records{State: Preloaded}
	}
	return Decide(in)
}

// pullOrRefuse returns the action if the pod cannot use an image on the node.
func (in Input) pullOrRefuse() Action {
	if in.PullPolicy == v1.PullNever {
		return Refuse
	}
	return Pull
}

// requiresCredentials reports whether the policy requires the verification of credentials.
func (in Input) requiresCredentials() bool {
	wasPulled := in.Records.State == Interrupted || in.Records.State == Recorded && !in.isPreloadedName()
	return in.Policy.requiresCredentials(Repository(in.Image), wasPulled)
}

// verify compares the credentials of the pod with the record of the image.
func (in Input) verify() (result Result, secretToRecord *kubelet.ImagePullSecret) {
	credentials := in.Records.Credentials[Repository(in.Image)]
	switch {
	case in.Records.State == Unreadable: // as in the kubelet, whatever the policy is
		return CheckFailed, nil
	case !in.requiresCredentials():
		return PolicyAllowed, nil
	case credentials.NodePodsAccessible:
		return RecordFound, nil
	}
	for i, s := range in.Secrets {
		if !matchesAny(s, credentials.KubernetesSecrets) {
			continue
		}
		if isNewVersion(s, credentials.KubernetesSecrets) {
			secretToRecord = &in.Secrets[i]
		}
		return RecordFound, secretToRecord
	}
	if in.ServiceAccount != nil && slices.Contains(credentials.KubernetesServiceAccounts, *in.ServiceAccount) {
		return RecordFound, nil
	}
	return MustAuthenticate, nil
}

// matchesAny reports whether a recorded Secret has the same credentials as s or is the same object.
// A Secret that was changed after the pull is still the same object, as in the kubelet.
func matchesAny(s kubelet.ImagePullSecret, recordedSecrets []kubelet.ImagePullSecret) bool {
	return slices.ContainsFunc(recordedSecrets, func(r kubelet.ImagePullSecret) bool {
		return r.CredentialHash != "" && r.CredentialHash == s.CredentialHash || isSameSecret(r, s)
	})
}

// isNewVersion reports whether s is not yet recorded and there is room for it. A Secret whose content
// is recorded gives access without its own entry, and its entry must not displace the Secret of a pull.
func isNewVersion(s kubelet.ImagePullSecret, recordedSecrets []kubelet.ImagePullSecret) bool {
	if slices.Contains(recordedSecrets, s) {
		return false
	}
	return len(recordedSecrets) < MaxCredentials || slices.ContainsFunc(recordedSecrets, func(r kubelet.ImagePullSecret) bool { return isSameSecret(r, s) })
}

// isSameSecret reports whether a and b are the same object.
func isSameSecret(a, b kubelet.ImagePullSecret) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name
}
