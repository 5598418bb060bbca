// Package event generates the events of pods and of the node. It uses the reasons and
// messages of the kubelet of Kubernetes, because users search for them.
//
//	action and its result        ─▶ ForOutcome
//	attempt of a probe           ─▶ ForProbe
//	decision before and now      ─▶ ForDecision
//	eviction of a deleted pod    ─▶ ForEviction
//	resize before and now        ─▶ ForResize
//	node before and now          ─▶ ForNodeChange
//	problems of manifests        ─▶ ForProblems
//
// The functions of the package are pure. The part of podd that performs an action or makes a
// decision records the event once. So a restart of podd does not repeat the events of pods that
// already run. As in the kubelet's events, the output of a probe is part of the message and the
// output of a hook is not.
//
// podd does not use these reasons of the kubelet:
//
//	InvalidImageID                       podd keeps no images by runtime class
//	FailedAttachVolume, SuccessfulAttachVolume   the cluster attaches volumes and
//	                                     records these events
//	SuccessfulMountVolume                only for block volumes in the kubelet, where it
//	                                     repeats that the pod starts
//	VolumeResizeSuccessful               the cluster resizes volumes and records this
//	FileSystemResizeSuccessful           the claim's status reports the resize
//	FileSystemResizeFailed               in the kubelet only for a read-only volume, which it
//	                                     does not expand; podd passes the request to the
//	                                     driver, whose error is VolumeResizeFailed
//	FailedMountOnFilesystemMismatch      an event of the PersistentVolume; podd only records
//	                                     events of pods and the node: FailedMount contains
//	                                     both file systems
//	FailedCreatePodContainer             the cgroup of a pod is created with its sandbox:
//	                                     FailedCreatePodSandBox
//	KubeletSetupFailed                   podd exits, and its log contains the error
//	FailedPrepareDynamicResources        podd supports no DRA drivers
//	FailedNodeDeclaredFeaturesCheck      podd declares all features that a resize of a pod
//	                                     can require
//	AlreadyMountedVolume                 podd gives the files of a local volume to the fsGroup
//	                                     of each pod, not only of the first
//	FailedToRetrieveImagePullSecret      the event of the failed pull names the missing Secret
//	HostIPsIPFamilyMismatch              if the addresses of the Node change, podd also changes
//	                                     the status of its pods
package event

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/manifest/redact"
	"podd/reconcile/plan"
)

// An Event is an event of a pod, of one of its containers, or of the node.
type Event struct {
	Type    string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason  string
	Message string
	// Pod is the full name of the pod; the zero value means the node.
	Pod types.NamespacedName
	UID types.UID
	// FieldPath is the field path of the container, such as "spec.containers{web}"; "" if
	// the event is not about a container.
	FieldPath string
	Time      time.Time
	// Annotations are the annotations of the event, which must not be modified; may be nil.
	Annotations map[string]string
}

// A Subject is the pod that events are about, and the time of the events.
type Subject struct {
	Key types.NamespacedName
	UID types.UID
	// Pod provides the kinds of the containers and the secrets to redact. It is nil if
	// podd has no manifest of the pod.
	Pod *manifest.Pod
	At  time.Time
}

// NewSubject returns the Subject for events of version p. at is the time of the events.
func NewSubject(p *manifest.Pod, at time.Time) Subject { return Subject{p.Key, p.UID, p, at} }

// NewNormalEvent returns a normal event of the named container, or of the whole pod if
// container is "".
func (s Subject) NewNormalEvent(reason, container, message string) Event {
	return s.newEvent(v1.EventTypeNormal, reason, container, message)
}

// NewWarningEvent returns a warning event of the named container, or of the whole pod if
// container is "".
func (s Subject) NewWarningEvent(reason, container, message string) Event {
	return s.newEvent(v1.EventTypeWarning, reason, container, message)
}

func (s Subject) newEvent(kind, reason, container, message string) Event {
	if s.Pod != nil {
		message = redact.Text(message, s.Pod.Object)
	}
	return Event{
		Type: kind, Reason: reason, Message: truncate(message), Pod: s.Key, UID: s.UID, FieldPath: s.containerFieldPath(container), Time: s.At,
	}
}

func (s Subject) containerFieldPath(container string) string {
	if container == "" {
		return ""
	}
	if s.Pod != nil {
		for _, c := range s.Pod.Object.Spec.InitContainers {
			if c.Name == container {
				return fieldPath(container, plan.KindInit)
			}
		}
		for _, c := range s.Pod.Object.Spec.EphemeralContainers {
			if c.Name == container {
				return fieldPath(container, plan.KindEphemeral)
			}
		}
	}
	return fieldPath(container, plan.KindRegular)
}

func fieldPath(container string, kind plan.Kind) string {
	list := "containers"
	switch kind {
	case plan.KindInit, plan.KindSidecar:
		list = "initContainers"
	case plan.KindEphemeral:
		list = "ephemeralContainers"
	}
	return fmt.Sprintf("spec.%s{%s}", list, container)
}

// maxMessageBytes is the maximum length of a message in bytes, the limit of the API server.
const maxMessageBytes = 1024

// truncate returns s as valid UTF-8 text of at most maxMessageBytes bytes. The output of a
// container or of a registry can have any length.
func truncate(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessageBytes {
		return s
	}
	cut := maxMessageBytes - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
