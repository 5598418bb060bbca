// Package event says what happened to pods and to the node as a kubelet of
// Kubernetes 1.34 does: with its reasons, and the texts that people look for.
//
//	action + what came of it     ─▶ Did
//	attempt of a probe           ─▶ Probed
//	decision before and now      ─▶ Decided
//	node before and now          ─▶ NodeChanged
//	problems of manifests        ─▶ Refused
//
// It is pure: values in, values out. Who did or decided a thing tells it, once,
// so that a podd that starts anew repeats nothing of what runs already. What a
// hook said is in no event, what a probe said is, as with a kubelet.
//
// A kubelet's reasons that there are none of, since podd does nothing of the kind:
//
//	ImageGCFailed, FreeDiskSpaceFailed   it removes no images to make room
//	EvictionThresholdMet                 it ends no pods for the node's pressure, which
//	                                     its conditions tell of
//	FailedAttachVolume, SuccessfulAttachVolume   the cluster attaches, and tells of it
//	FileSystemResizeSuccessful           the claim's status says so
//	FailedPrepareDynamicResources        there are no drivers of devices that it would
//	                                     ask for this
//	FailedPodSandBoxStatus               a sandbox that cannot be looked at was not made:
//	                                     FailedCreatePodSandBox
//	ExceededGracePeriod                  what did not end is killed, and that failing is
//	                                     FailedKillPod
package event

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/manifest"
	"podd/reconcile/plan"
)

// Event is one thing that happened.
type Event struct {
	Type    string // v1.EventTypeNormal or v1.EventTypeWarning
	Reason  string
	Message string
	// Pod is whom it happened to, with its full name; zero: the node.
	Pod types.NamespacedName
	UID types.UID
	// Field names the container, as "spec.containers{web}"; "" for none.
	Field string
	Time  time.Time
}

// Subject is the pod that events are about, and when they happened.
type Subject struct {
	Key types.NamespacedName
	UID types.UID
	// Pod tells init containers from others; nil where podd has no manifest.
	Pod *manifest.Pod
	At  time.Time
}

// On is the Subject of a version.
func On(p *manifest.Pod, at time.Time) Subject { return Subject{p.Key, p.UID, p, at} }

// Normal is an event of a container, or of the pod as a whole for "".
func (s Subject) Normal(reason, container, message string) Event {
	return s.event(v1.EventTypeNormal, reason, container, message)
}

// Warning likewise.
func (s Subject) Warning(reason, container, message string) Event {
	return s.event(v1.EventTypeWarning, reason, container, message)
}

func (s Subject) event(kind, reason, container, message string) Event {
	return Event{kind, reason, clip(message), s.Key, s.UID, s.field(container), s.At}
}

func (s Subject) field(container string) string {
	if container == "" {
		return ""
	}
	if s.Pod != nil {
		for _, c := range s.Pod.Spec.Spec.InitContainers {
			if c.Name == container {
				return fieldOf(container, plan.Init)
			}
		}
		for _, c := range s.Pod.Spec.Spec.EphemeralContainers {
			if c.Name == container {
				return fieldOf(container, plan.Ephemeral)
			}
		}
	}
	return fieldOf(container, plan.Regular)
}

func fieldOf(container string, kind plan.Kind) string {
	list := "containers"
	switch kind {
	case plan.Init, plan.Sidecar:
		list = "initContainers"
	case plan.Ephemeral:
		list = "ephemeralContainers"
	}
	return fmt.Sprintf("spec.%s{%s}", list, container)
}

// longest is how much of a message is kept, the limit of an apiserver.
const longest = 1024

// clip keeps a message short: what a container or a registry says may be of any
// length.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= longest {
		return s
	}
	cut := longest - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
